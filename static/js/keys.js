// Keys of every page. Single keys rest inside fields, in open dialogs, and when the person switched them off.
import { $, $$, root, typing } from "./dom.js";
import { acts } from "./shell.js";

let went = 0; // when `g` was pressed

document.addEventListener("keydown", (event) => {
  if ((event.metaKey || event.ctrlKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return acts.palette();
  }
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === "Escape" && event.target.matches?.("[type=search]")) return event.target.blur();
  if (typing(event.target) || root.dataset.keys === "off" || $("dialog[open]")) return;
  if (went && Date.now() - went < 1500 && event.key.length === 1) {
    went = 0;
    const link = $$("[data-go]").find((entry) => entry.dataset.go === event.key);
    if (link) { event.preventDefault(); return location.assign(link.href); }
  }
  went = 0;
  switch (event.key) {
    case "g": went = Date.now(); return;
    case "?": event.preventDefault(); return acts.help();
    case "[": return acts.rail();
    case "/": {
      const search = $("main [type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
      return;
    }
    default:
      document.dispatchEvent(new CustomEvent("agentx:key", { detail: event }));
  }
});
