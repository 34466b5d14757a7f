// The command palette: pages and actions at once, then what the server finds for the text.
import { $, $$, word } from "./dom.js";
import { acts } from "./shell.js";

const palette = $("#palette");
const input = palette && $("input", palette);
const found = $("#palette-found");
let opener = null;
let asked = null;
let timer = 0;

const options = () => $$("[role=option]", palette).filter((option) => !option.hidden);

function mark(option) {
  for (const other of $$("[role=option]", palette)) other.setAttribute("aria-selected", String(other === option));
  if (option) {
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  } else input.removeAttribute("aria-activedescendant");
}

function filter() {
  const text = input.value.trim().toLowerCase();
  for (const group of $$("[role=group]", palette)) {
    if (group === found) continue;
    let any = false;
    for (const option of $$("[role=option]", group)) {
      option.hidden = Boolean(text) && !option.textContent.toLowerCase().includes(text);
      any ||= !option.hidden;
    }
    group.hidden = !any;
  }
  const shown = options();
  mark(shown[0]);
  $("#palette-none").hidden = shown.length > 0;
}

async function ask() {
  const text = input.value.trim();
  asked?.abort();
  if (text.length < 2) { found.replaceChildren(); return filter(); }
  asked = new AbortController();
  try {
    const answer = await fetch(`${input.dataset.source}?q=${encodeURIComponent(text)}`, {
      signal: AbortSignal.any([asked.signal, AbortSignal.timeout(10000)]),
    });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    found.replaceChildren(...page.body.childNodes);
  } catch (error) {
    if (error.name === "AbortError") return;
    found.textContent = word("failed");
  }
  filter();
}

function run(option) {
  if (!option) return;
  const { href, run: action, copy } = option.dataset;
  opener = null;
  palette.close();
  if (href) location.assign(href);
  else if (copy) acts.copy({ dataset: { text: copy } });
  else acts[action]?.(option);
}

if (palette) {
  document.addEventListener("agentx:palette", () => {
    if (palette.open) return;
    opener = document.activeElement;
    input.value = "";
    found.replaceChildren();
    palette.showModal();
    input.focus();
    filter();
  });
  palette.addEventListener("close", () => opener?.focus?.());
  input.addEventListener("input", () => { filter(); clearTimeout(timer); timer = setTimeout(ask, 120); });
  input.addEventListener("keydown", (event) => {
    const shown = options();
    const now = shown.findIndex((option) => option.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) { event.preventDefault(); mark(shown[(now + step + shown.length) % shown.length]); }
    if (event.key === "Enter") { event.preventDefault(); run(shown[now]); }
  });
  palette.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) run(option);
  });
}
