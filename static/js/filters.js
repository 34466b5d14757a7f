// Filter forms ([data-filters]): a change sends the form; empty fields stay out of the address.
import { $$ } from "./dom.js";

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-filters]") ?? event.target.form;
  if (form?.matches?.("[data-filters]") && event.target.type !== "search") form.requestSubmit();
});
let timer = 0;
document.addEventListener("input", (event) => {
  if (event.target.type !== "search" || !event.target.form?.matches("[data-filters]")) return;
  clearTimeout(timer);
  timer = setTimeout(() => event.target.form.requestSubmit(), 300);
});
document.addEventListener("formdata", (event) => {
  if (!event.target.matches("[data-filters]")) return;
  for (const name of new Set(event.formData.keys())) {
    const values = event.formData.getAll(name).filter(Boolean);
    event.formData.delete(name);
    for (const value of values) event.formData.append(name, value);
  }
});
// htmx reads forms itself: the same tidying for it.
document.addEventListener("htmx:configRequest", (event) => {
  if (!event.detail.elt.matches?.("[data-filters]")) return;
  const given = event.detail.parameters;
  for (const name of Object.keys(given)) {
    const value = given[name];
    if (value === "" || (Array.isArray(value) && !value.length)) delete given[name];
  }
});
// A chart's bar leads to its own range.
document.addEventListener("click", (event) => {
  const bar = event.target.closest("svg [data-href]");
  if (bar) location.assign(bar.dataset.href);
});
// Links that carry the list's query follow it after a swap.
document.addEventListener("htmx:pushedIntoHistory", () => {
  for (const link of $$("a[data-same-query]")) link.search = location.search;
});
export const filterForms = () => $$("form[data-filters]");
