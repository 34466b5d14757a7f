// Settings and guides: the project's key on demand, forms that unfold, switches between fields, unsaved changes.
import { csrf, onContent, toast, $$ } from "./dom.js";

async function readKey(url) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "X-CSRFToken": csrf(), Accept: "application/json" },
    signal: AbortSignal.timeout(10000),
  });
  if (!answer.ok) throw new Error(String(answer.status));
  return (await answer.json()).key;
}

// The key is in the page only while it is shown; leaving or hiding puts the masked text back.
async function showKey(button) {
  const box = button.closest("[data-secret]");
  const code = box.querySelector("code");
  const word = button.querySelector("[data-on]");
  const shown = button.getAttribute("aria-pressed") === "true";
  code.dataset.masked ??= code.textContent;
  try {
    code.textContent = shown ? code.dataset.masked : await readKey(box.dataset.secret);
  } catch {
    toast(box.dataset.failed, { verdict: "fail" });
    return;
  }
  button.setAttribute("aria-pressed", String(!shown));
  word.textContent = shown ? word.dataset.off : word.dataset.on;
}

async function copyKey(button) {
  const box = button.closest("[data-secret]");
  try {
    await navigator.clipboard.writeText(await readKey(box.dataset.secret));
    toast(button.dataset.done, { keep: 2000 });
  } catch {
    toast(box.dataset.failed, { verdict: "fail" });
  }
}

async function copyWithKey(button) {
  try {
    const text = document.getElementById(button.dataset.from).textContent;
    const key = await readKey(button.dataset.copyWithKey);
    await navigator.clipboard.writeText(text.replaceAll(button.dataset.mask, key).trim());
    toast(button.dataset.done, { keep: 2000 });
  } catch {
    toast(button.dataset.failed, { verdict: "fail" });
  }
}

document.addEventListener("click", (event) => {
  const show = event.target.closest("[data-secret-show]");
  if (show) showKey(show);
  const copy = event.target.closest("[data-secret-copy]");
  if (copy) copyKey(copy);
  const snippet = event.target.closest("[data-copy-with-key]");
  if (snippet) copyWithKey(snippet);
  const toggle = event.target.closest("[data-toggles]");
  if (toggle) {
    const panel = document.getElementById(toggle.dataset.toggles);
    panel.hidden = !panel.hidden;
    toggle.setAttribute("aria-expanded", String(!panel.hidden));
    if (!panel.hidden) panel.querySelector("input:not([type=hidden]), textarea, select")?.focus();
  }
});

// On a narrow screen the entries stand in one row that scrolls: the current one is brought into it.
const entries = document.querySelector(".split > .nav");
const current = entries?.querySelector("[aria-current]");
if (current) {
  const gap = current.getBoundingClientRect().left - entries.getBoundingClientRect().left;
  entries.scrollLeft += gap - (entries.clientWidth - current.clientWidth) / 2;
}

addEventListener("pagehide", () => {
  for (const button of $$("[data-secret-show][aria-pressed=true]")) {
    const code = button.closest("[data-secret]").querySelector("code");
    code.textContent = code.dataset.masked;
  }
});

onContent((part) => {
  // A dangerous button waits for the typed name; the server checks it again.
  for (const button of $$("[data-needs]", part)) {
    const input = document.getElementById(button.dataset.needs);
    const check = () => { button.disabled = input.value.trim() !== button.dataset.value.trim(); };
    input.addEventListener("input", check);
    check();
  }
  for (const block of $$("[data-when]", part)) {
    const select = document.getElementById(block.dataset.when);
    const check = () => { block.hidden = select.value !== block.dataset.is; };
    select.addEventListener("change", check);
    check();
  }
  for (const dialog of $$("dialog[data-open]", part)) dialog.showModal();
  for (const form of $$("form[data-busy]", part)) {
    form.addEventListener("submit", () => {
      const button = form.querySelector("button");
      button.setAttribute("aria-busy", "true");
      setTimeout(() => { button.disabled = true; }, 0);
    });
  }
});

// Leaving a form with changes asks first.
let unsaved = false;
document.addEventListener("input", (event) => { if (event.target.closest("form[data-unsaved]")) unsaved = true; });
document.addEventListener("submit", (event) => { if (event.target.matches("form:not([hx-post])")) unsaved = false; });
addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
