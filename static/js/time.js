// Times: the server writes UTC and ages; the reader's own zone and a living age are added here.
import { $$, onContent } from "./dom.js";

const full = new Intl.DateTimeFormat(document.documentElement.lang, {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23", timeZoneName: "short",
});
const minute = new Intl.DateTimeFormat(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(document.documentElement.lang, { day: "numeric", month: "short" });
const clock = new Intl.DateTimeFormat(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

onContent((part) => {
  for (const time of $$("time[datetime]", part)) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = `${full.format(moment)} · ${time.dateTime}`;
    if (time.dataset.local === "full") time.textContent = full.format(moment);
    else if (time.dataset.local === "clock") time.textContent = clock.format(moment);
    else if (time.dataset.local === "minute") time.textContent = minute.format(moment);
    else if (time.dataset.local === "day") time.textContent = day.format(moment);
  }
});
