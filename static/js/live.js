// New traces, told by the server as they are stored. The list never moves under the pointer: they wait behind a button.
import { $, announce, word } from "./dom.js";

const RATE_WINDOW = 60000;
let source = null;
let waiting = 0;
let arrivals = [];

const region = () => $("[data-live-list]");

function show() {
  const list = region();
  if (!list) return;
  const badge = $("[data-live-state]");
  const now = Date.now();
  arrivals = arrivals.filter(([at]) => now - at < RATE_WINDOW);
  if (badge) {
    const on = source?.readyState === EventSource.OPEN;
    badge.hidden = !on;
    badge.dataset.v = "pass";
    const rate = arrivals.reduce((sum, [, n]) => sum + n, 0);
    $("[data-live-text]", badge).textContent = rate ? word("live-rate").replace("{n}", String(rate)) : word("live");
  }
  const holder = $(".new-rows", list);
  if (!holder || !waiting) return;
  holder.hidden = false;
  const label = waiting === 1 ? word("new-one") : word("new-many").replace("{n}", String(waiting));
  $("span", holder).textContent = label;
}

let looking = 0;

// The server says that there is news; how much of it this list would show is asked with the list's own filters.
async function arrived(event) {
  let data = {};
  try { data = JSON.parse(event.data); } catch { /* a bare signal */ }
  const list = region();
  if (!list) return;
  if ("liveReload" in list.dataset) return location.reload();
  arrivals.push([Date.now(), Number(data.count ?? 1)]);
  const newest = list.dataset.newest;
  if (!("liveQuiet" in list.dataset) && Date.now() - looking > 900) {
    looking = Date.now();
    const url = new URL(list.dataset.liveCount, location.href);
    for (const [name, value] of new URLSearchParams(location.search)) url.searchParams.append(name, value);
    url.searchParams.set("after", newest || "");
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(10000) });
      const { count } = await answer.json();
      if (count && !waiting) announce(word("new-one"));
      if (region()?.dataset.newest === newest) waiting = count;
    } catch { /* the next news asks again */ }
  }
  show();
}

function connect() {
  const list = region();
  if (!list || source || !list.dataset.liveList) return;
  source = new EventSource(list.dataset.liveList);
  for (const name of ["message", "trace", "traces"]) source.addEventListener(name, arrived);
  source.addEventListener("open", show);
  source.addEventListener("error", show); // the browser reconnects by itself
}

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id === "traces") { waiting = 0; show(); }
});
document.addEventListener("visibilitychange", () => {
  // A page in the background holds no connection: browsers allow few of them for one server.
  if (document.hidden) { source?.close(); source = null; }
  else connect();
});
window.addEventListener("pagehide", () => { source?.close(); source = null; });
window.addEventListener("pageshow", connect);
setInterval(show, 5000);
connect();
