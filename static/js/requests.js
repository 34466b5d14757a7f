// What htmx requests have in common: focus after a swap, failures told, the limiter's message shown.
import { $, toast, word, announce } from "./dom.js";

let focusFirst = "";
document.addEventListener("htmx:beforeRequest", (event) => {
  focusFirst = event.detail.elt.closest("[data-focus-first]") ? event.detail.target?.id ?? "" : "";
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (focusFirst && event.detail.target?.id === focusFirst) {
    const box = document.getElementById(focusFirst);
    box?.querySelector("[data-pick] > [tabindex]")?.focus();
    box?.scrollIntoView({ block: "start" });
    focusFirst = "";
  }
  const said = document.getElementById(event.detail.target?.id ?? "")?.querySelector("[data-announce]");
  if (said) announce(said.textContent.trim());
});
document.addEventListener("htmx:responseError", (event) => {
  const { status, responseText } = event.detail.xhr;
  let text = word("failed");
  try {
    const body = JSON.parse(responseText);
    text = body.message ?? body.error ?? text;
  } catch {
    if (status === 429) text = word("slow");
  }
  toast(text, { verdict: "fail", keep: 12000 });
});
document.addEventListener("htmx:sendError", () => toast(word("failed"), { verdict: "fail", keep: 12000 }));
document.addEventListener("htmx:timeout", () => toast(word("slow"), { verdict: "warn", keep: 12000 }));
