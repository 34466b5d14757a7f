// The judge scorer editor: code scorers, the unsaved mark, saving by key.
import { $ } from "./dom.js";
import "./code-scorers.js";

const form = $("#scorer-form");
const mark = $("#unsaved");
form.addEventListener("input", () => { if (mark) mark.hidden = false; });
document.addEventListener("agentx:shown", (event) => { form.elements.tab.value = event.target.id; });
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && !$("fieldset:disabled", form)) { event.preventDefault(); form.requestSubmit(); }
});
if (form.dataset.changed) form.dispatchEvent(new Event("input", { bubbles: true }));
