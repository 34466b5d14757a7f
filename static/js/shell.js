// Theme, density, sidebar, dialogs, copying, tabs: what the shell's buttons do. Without scripts the same buttons post forms.
import { $, $$, root, prefer, toast, word, announce } from "./dom.js";

const isDark = () => root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

export const acts = {
  theme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    prefer("theme", root.dataset.theme);
    document.dispatchEvent(new CustomEvent("agentx:theme"));
  },
  density() {
    const next = { "": "compact", compact: "roomy", roomy: "" }[root.dataset.density ?? ""];
    if (next) root.dataset.density = next; else delete root.dataset.density;
    prefer("density", next);
  },
  rail() {
    const folded = root.dataset.sidebar === "rail";
    if (folded) delete root.dataset.sidebar; else root.dataset.sidebar = "rail";
    prefer("sidebar", folded ? "" : "rail");
  },
  nav(button) {
    const open = root.dataset.nav !== "open";
    if (open) root.dataset.nav = "open"; else delete root.dataset.nav;
    (button ?? $(".menu-open"))?.setAttribute("aria-expanded", String(open));
    if (open) $(".sidebar a, .sidebar button")?.focus();
  },
  palette() { document.dispatchEvent(new CustomEvent("agentx:palette")); },
  help() { open($("#help")); },
  dialog(button) { open(document.getElementById(button.dataset.for), button); },
  close(button) { button.closest("dialog")?.close(); },
  dismiss(button) { button.closest(".toast, .banner")?.remove(); },
  async copy(button) {
    const source = button.dataset.for ? document.getElementById(button.dataset.for) : null;
    const text = button.dataset.text ?? source?.dataset.copy ?? source?.textContent ?? "";
    try {
      await navigator.clipboard.writeText(text.trim());
      toast(word("copied"), { keep: 2000 });
    } catch {
      select(source);
      toast(word("not-copied"), { verdict: "warn" });
    }
  },
  async "copy-url"(button) {
    // The text is fetched first: it may be larger than anything a page should hold.
    try {
      const answer = await fetch(button.dataset.url, { signal: AbortSignal.timeout(30000) });
      await navigator.clipboard.writeText(await answer.text());
      toast(word("copied"), { keep: 2000 });
    } catch { toast(word("not-copied"), { verdict: "warn" }); }
  },
};

function select(element) {
  if (!element) return;
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

function open(dialog, opener) {
  if (!dialog?.showModal || dialog.open) return;
  dialog.showModal();
  if (opener) dialog.addEventListener("close", () => opener.focus(), { once: true });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button && acts[button.dataset.act]) {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    acts[button.dataset.act](button);
    return;
  }
  if (root.dataset.nav === "open" && !event.target.closest(".sidebar, .menu-open")) acts.nav();
  const dialog = event.target.closest("dialog");
  if (dialog && event.target === dialog && event.detail) dialog.close(); // the backdrop
  const one = event.target.closest("[data-one] > button[aria-pressed]");
  if (one) choose(one);
  const tab = event.target.closest("[role=tab][aria-controls]");
  if (tab) showTab(tab, event);
});

// A group of exclusive buttons; `data-shows` names the element that goes with one, its siblings hide.
function choose(button) {
  for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
  const shown = button.dataset.shows && document.getElementById(button.dataset.shows);
  if (shown) for (const panel of shown.parentElement.children) if (panel.matches("[data-panel]")) panel.hidden = panel !== shown;
}

function showTab(tab, event) {
  const panel = document.getElementById(tab.getAttribute("aria-controls"));
  if (!panel) return; // a link to its own address
  event?.preventDefault();
  for (const other of $$("[role=tab]", tab.closest("[role=tablist]"))) {
    const on = other === tab;
    other.setAttribute("aria-selected", String(on));
    other.tabIndex = on ? 0 : -1;
    const its = document.getElementById(other.getAttribute("aria-controls"));
    if (its) its.hidden = !on;
  }
  if (tab.href) history.replaceState(history.state, "", tab.href);
  panel.dispatchEvent(new CustomEvent("agentx:shown", { bubbles: true }));
}

document.addEventListener("keydown", (event) => {
  const list = event.target.closest?.("[role=tablist]");
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (list && step) {
    const tabs = $$("[role=tab]", list);
    const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
    event.preventDefault();
    next?.focus();
    if (next) showTab(next);
  }
  if (event.key === "Escape" && root.dataset.nav === "open") { acts.nav(); $(".menu-open")?.focus(); }
});

// Popovers are placed by CSS where anchor positioning exists; elsewhere they open under their button.
const anchored = CSS.supports("position-area: block-end");
document.addEventListener("toggle", (event) => {
  const menu = event.target;
  if (anchored || event.newState !== "open" || !menu.matches?.(".menu, .tip")) return;
  const opener = $(`[popovertarget="${CSS.escape(menu.id)}"]`);
  if (!opener) return;
  const box = opener.getBoundingClientRect();
  menu.style.setProperty("left", `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`);
  menu.style.setProperty("top", `${Math.min(box.bottom, innerHeight - menu.offsetHeight - 8)}px`);
}, true);

for (const message of $$(".toasts > .toast")) setTimeout(() => message.remove(), 8000);
if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of $$("[data-mod-k]")) key.textContent = "⌘K";
const heading = $("h1");
if (heading && location.hash === "" && performance.getEntriesByType("navigation")[0]?.type === "navigate") announce(heading.textContent.trim());
