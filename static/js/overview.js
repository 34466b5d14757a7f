// The Overview says how old it is, and renews itself each minute while somebody may be looking and nobody is at work in it.
import { $ } from "./dom.js";

const RENEW_MS = 60_000;
let updated = Date.now();

function tell() {
  const age = $("[data-age]");
  if (!age) return;
  const seconds = Math.round((Date.now() - updated) / 1000);
  if (seconds < 5) age.textContent = age.dataset.now;
  else if (seconds < 60) age.textContent = age.dataset.seconds.replace("{n}", String(seconds));
  else age.textContent = age.dataset.minutes.replace("{n}", String(Math.floor(seconds / 60)));
}

function busy() {
  const region = $("#overview");
  if (!region || $("dialog[open]") || region.querySelector("details[open], [data-series][aria-pressed=false]")) return true;
  return region.contains(document.activeElement) && document.activeElement.matches("select, input");
}

setInterval(() => {
  tell();
  if (Date.now() - updated >= RENEW_MS && document.visibilityState === "visible" && !busy()) $("[data-refresh]")?.click();
}, 5000);
document.addEventListener("htmx:afterSettle", () => { updated = Date.now(); tell(); });
tell();
