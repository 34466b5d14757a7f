// A conversation: j and k move between turns, e to the next one with an error, and all span trees unfold at once.
import { $$, typing } from "./dom.js";

const turns = () => $$("[data-turns] > .turn");

function current(all) {
  const focused = all.findIndex((turn) => turn.contains(document.activeElement));
  if (focused >= 0) return focused;
  return all.findIndex((turn) => turn.getBoundingClientRect().bottom > 120) - 1;
}

document.addEventListener("keydown", (event) => {
  if (typing(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
  if (document.documentElement.dataset.keys === "off" || document.querySelector("dialog[open]")) return;
  const all = turns();
  const at = current(all);
  let next = null;
  if (event.key === "j") next = all[Math.min(at + 1, all.length - 1)];
  else if (event.key === "k") next = all[Math.max(at - 1, 0)];
  else if (event.key === "e") next = all.slice(at + 1).find((turn) => turn.matches("[data-flag]")) ?? all.find((turn) => turn.matches("[data-flag]"));
  if (!next) return;
  event.preventDefault();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-trees]");
  if (!button) return;
  const open = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(open));
  button.querySelector("span").textContent = open ? button.dataset.on : button.dataset.off;
  for (const details of $$("[data-turns] details.turn-tree")) details.open = open;
});
