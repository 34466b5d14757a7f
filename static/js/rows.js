// Lists to pick from ([data-pick]): one row is in the tab order, j and k move, Enter expands, o opens.
import { $, $$, onContent, typing } from "./dom.js";

const rowsOf = (list) => [...list.children].filter((row) => row.matches("[aria-selected]") && !row.hidden);
const lists = () => $$("[data-pick]").filter((list) => list.offsetParent !== null || list.getClientRects().length);

export function pick(row, { focus = true } = {}) {
  const list = row.closest("[data-pick]");
  for (const other of list.querySelectorAll(":scope > [aria-selected=true]")) other.setAttribute("aria-selected", "false");
  for (const other of list.querySelectorAll(":scope > [tabindex='0']")) other.tabIndex = -1;
  row.setAttribute("aria-selected", "true");
  row.tabIndex = 0;
  if (focus) row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  row.dispatchEvent(new CustomEvent("agentx:pick", { bubbles: true }));
}

export function toggle(row) {
  const detail = document.getElementById(row.getAttribute("aria-controls"));
  if (!detail) return;
  const open = row.getAttribute("aria-expanded") !== "true";
  row.setAttribute("aria-expanded", String(open));
  detail.hidden = !open;
  if (open) detail.dispatchEvent(new CustomEvent("agentx:expand", { bubbles: true }));
}

document.addEventListener("click", (event) => {
  const row = event.target.closest("[data-pick] > [aria-selected]");
  if (!row || event.target.closest("a, button, input, label, select, textarea, summary, [data-more]")) return;
  if (String(getSelection()).length > 2) return; // somebody is copying text
  pick(row);
  if (row.matches("[data-toggle]")) toggle(row);
});

document.addEventListener("agentx:key", ({ detail: event }) => {
  if (typing(event.target)) return;
  const list = event.target.closest?.("[data-pick]") ?? lists()[0];
  if (!list || list.matches("[data-tree]")) return;
  const all = rowsOf(list);
  if (!all.length) return;
  const now = all.findIndex((row) => row.getAttribute("aria-selected") === "true");
  const inside = list.contains(event.target);
  const step = { j: 1, k: -1, ...(inside ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
  if (step) { event.preventDefault(); return pick(all[Math.min(all.length - 1, Math.max(0, now + step))]); }
  if (inside && (event.key === "Home" || event.key === "End")) { event.preventDefault(); return pick(all.at(event.key === "Home" ? 0 : -1)); }
  const row = all[now];
  if (!row || (event.target !== row && inside && event.target.closest("a, button"))) return;
  if (event.key === "Enter" && row.matches("[data-toggle]") && (inside || event.target === document.body)) { event.preventDefault(); toggle(row); }
  else if (event.key === "o" || (event.key === "Enter" && inside)) { const link = $("a.open, a", row) ?? (row.matches("a") ? row : null); if (link) { event.preventDefault(); location.assign(link.href); } }
});

// Exactly one row of each list is reachable by Tab.
onContent((part) => {
  for (const list of $$("[data-pick]", part.matches?.("[data-pick]") ? part.parentElement : part)) {
    const all = rowsOf(list);
    if (all.length && !all.some((row) => row.tabIndex === 0)) all[0].tabIndex = 0;
  }
});
