// The waterfall: keys of a treegrid, folding with rows asked for on demand, and the rail that follows the selection.
import { $, $$, announce, reason, toast, typing, word } from "./dom.js";
import { pick } from "./rows.js";

const tree = () => $("[data-tree]");
const rows = () => $$(":scope > .wf-row", tree()).filter((row) => !row.hidden);
const level = (row) => Number(row.getAttribute("aria-level"));
let asked = null;
let timer = 0;

// Network failures have technical messages of the browser's own; refusals have the server's sentence.
const tell = (error) => toast(error.constructor === Error ? error.message : word("failed"), { verdict: "warn" });

// ---- Folding ----

function* below(row) {
  const own = level(row);
  for (let next = row.nextElementSibling; next && level(next) > own; next = next.nextElementSibling) yield next;
}

function fold(row) {
  row.setAttribute("aria-expanded", "false");
  for (const child of below(row)) child.hidden = true;
}

function reveal(row) {
  row.setAttribute("aria-expanded", "true");
  let closed = Infinity; // rows below a folded row stay hidden
  for (const child of below(row)) {
    const depth = level(child);
    if (depth > closed) continue;
    closed = child.getAttribute("aria-expanded") === "false" ? depth : Infinity;
    child.hidden = false;
  }
}

async function rowsFrom(key, from) {
  const box = $("#timeline");
  const url = new URL(box.dataset.children, location.href);
  url.searchParams.set("of", key);
  if (from) url.searchParams.set("from", from);
  if (box.dataset.top) url.searchParams.set("top", box.dataset.top);
  const answer = await fetch(url, { signal: AbortSignal.timeout(20000) });
  if (!answer.ok) throw new Error(await reason(answer));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...page.body.children];
}

async function unfold(row) {
  const first = row.nextElementSibling;
  if (first && level(first) > level(row)) return reveal(row);
  if (row.getAttribute("aria-busy") === "true") return;
  row.setAttribute("aria-busy", "true");
  try {
    row.after(...(await rowsFrom(row.dataset.key)));
    row.setAttribute("aria-expanded", "true");
  } catch (error) { tell(error); } finally { row.removeAttribute("aria-busy"); }
}

function turn(row) {
  if (!row.hasAttribute("aria-expanded")) return;
  if (row.getAttribute("aria-expanded") === "true") fold(row); else unfold(row);
}

async function more(button) {
  const holder = button.closest(".wf-more");
  button.disabled = true;
  try {
    const next = await rowsFrom(button.dataset.of, button.dataset.from);
    holder.replaceWith(...next);
    if (next[0]?.matches(".wf-row")) pick(next[0]);
  } catch (error) { button.disabled = false; tell(error); }
}

// ---- The rail ----

function follow(address, key) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    const rail = $("#rail");
    try {
      const answer = await fetch(address, { signal: AbortSignal.any([asked.signal, AbortSignal.timeout(20000)]) });
      if (!answer.ok) throw new Error(await reason(answer));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      rail.replaceChildren(...page.body.childNodes);
      rail.scrollTop = 0;
      const url = new URL(location.href);
      url.searchParams.set("span", key);
      history.replaceState(history.state, "", url);
      document.dispatchEvent(new CustomEvent("htmx:load", { detail: { elt: rail } }));
    } catch (error) {
      if (error.name !== "AbortError") tell(error);
    }
  }, 90);
}

document.addEventListener("agentx:pick", (event) => {
  const row = event.target;
  if (row.matches(".wf-row[data-rail]")) follow(row.dataset.rail, row.dataset.key);
});

document.addEventListener("click", (event) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  const button = event.target.closest(".wf-more [data-more]");
  if (button) return more(button);
  const node = event.target.closest(".graph .node");
  if (node) {
    event.preventDefault();
    for (const other of $$(".graph .node[aria-current]")) other.removeAttribute("aria-current");
    node.setAttribute("aria-current", "true");
    return follow(node.dataset.rail, new URL(node.href.baseVal ?? node.getAttribute("href"), location.href).searchParams.get("span"));
  }
  const row = event.target.closest("[data-tree] > .wf-row");
  if (!row) return;
  if (event.target.closest(".twist")) { event.preventDefault(); turn(row); }
  else if (event.target.closest(".wf-link")) { event.preventDefault(); pick(row); }
});
document.addEventListener("dblclick", (event) => {
  const row = event.target.closest("[data-tree] > .wf-row");
  if (row && !event.target.closest(".twist, a")) turn(row);
});

// ---- Keys ----

async function nextError(from) {
  const keys = ($("#timeline")?.dataset.errors ?? "").split(" ").filter(Boolean);
  if (!keys.length) return;
  const at = keys.indexOf(from?.dataset.key);
  const drawn = rows();
  let target = keys[(at + 1) % keys.length];
  if (at < 0 && from) {
    // From a step that did not fail: the first failed one after it.
    const place = drawn.indexOf(from);
    target = drawn.slice(place + 1).find((row) => keys.includes(row.dataset.key))?.dataset.key ?? target;
  }
  const row = $(`[data-tree] > .wf-row[data-key="${CSS.escape(target)}"]`);
  if (row && !row.hidden) return pick(row);
  const url = new URL(location.href); // not drawn yet: the server opens the way to it
  url.searchParams.set("span", target);
  url.searchParams.delete("kind");
  location.assign(url);
}

document.addEventListener("agentx:key", ({ detail: event }) => {
  if (!tree() || typing(event.target)) return;
  const inside = tree().contains(event.target);
  if (!inside && event.target.closest?.("a, button, summary, [tabindex='0']") && event.key.length > 1) return;
  const all = rows();
  const now = all.find((row) => row.getAttribute("aria-selected") === "true") ?? all[0];
  if (!now) return;
  const place = all.indexOf(now);
  const go = (row) => { if (row) { event.preventDefault(); pick(row); } };
  switch (event.key) {
    case "j": case "ArrowDown": return go(all[Math.min(all.length - 1, place + 1)]);
    case "k": case "ArrowUp": return go(all[Math.max(0, place - 1)]);
    case "Home": return go(all[0]);
    case "End": return go(all.at(-1));
    case "ArrowRight":
      event.preventDefault();
      if (now.getAttribute("aria-expanded") === "false") return unfold(now);
      return level(all[place + 1] ?? now) > level(now) ? go(all[place + 1]) : undefined;
    case "ArrowLeft":
      event.preventDefault();
      if (now.getAttribute("aria-expanded") === "true") return fold(now);
      return go(all.slice(0, place).reverse().find((row) => level(row) < level(now)));
    case "Enter":
      event.preventDefault();
      return $("#rail")?.focus();
    case "e": event.preventDefault(); return void nextError(now);
    case "Escape": return tree().querySelector("[tabindex='0']")?.focus();
    default:
  }
});

// The selected row of an opened address is in view.
const chosen = tree()?.querySelector(":scope > [aria-selected=true]");
if (chosen && new URLSearchParams(location.search).has("span")) {
  chosen.scrollIntoView({ block: "center" });
  announce(chosen.textContent.trim().slice(0, 80));
}
const canvas = $(".graph-scroll");
if (canvas) {
  const node = $(".node[aria-current]", canvas) ?? $(".node", canvas);
  const box = node?.querySelector("rect");
  if (box) canvas.scrollTo(Number(box.getAttribute("x")) - canvas.clientWidth / 2 + 94, Math.max(0, Number(box.getAttribute("y")) - 60));
}
