// The case editor. The list of cases is the JSON in #id_questions: this page edits it, the form saves it as one version.
import { $, $$ } from "./dom.js";
import "./code-scorers.js";

const form = $("#dataset-form");
const store = $("#id_questions");
const box = $("#case-editor");
const list = $("[data-case-list]", box);
const card = $("[data-case-card]", box);
const none = $("[data-case-empty]", box);
const search = $("[data-case-search]", box);
const SHOWN = 500;

let cases = [];
try { cases = JSON.parse(store.value || "[]"); } catch { cases = []; }
let at = cases.length ? 0 : -1;
let turn = 0; // 0 is the main question, 1… the follow-ups

const main = (one) => (one.main_question ??= { query: "" });
const follow = (one) => (one.follow_up_questions ??= []);
const question = () => (turn ? follow(cases[at])[turn - 1] : main(cases[at]));
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const chunks = (text) => text.split(/\n[ \t]*\n/).map((part) => part.trim()).filter(Boolean);

function changed() {
  store.value = JSON.stringify(cases);
  store.dispatchEvent(new Event("input", { bubbles: true }));
  for (const count of $$("[data-case-count]")) count.textContent = String(cases.length);
}

// --- The list

function describe(one) {
  const words = [...(main(one).splits ?? [])];
  const n = follow(one).length;
  const small = $("#case-row").content.querySelector("small");
  if (n) words.push(`${n} ${n === 1 ? small.dataset.one : small.dataset.many}`);
  return words.join(" · ");
}

function fillRow(row, index) {
  const one = cases[index];
  row.dataset.index = String(index);
  $(".caseno", row).textContent = String(index + 1);
  const name = $(".strong", row);
  name.textContent = main(one).query?.trim().slice(0, 200) || name.dataset.blank;
  $("small", row).textContent = describe(one);
  $("[data-born]", row).hidden = !one.source;
  row.setAttribute("aria-selected", String(index === at));
  row.tabIndex = index === at ? 0 : -1;
}

function drawList() {
  const wanted = search.value.trim().toLowerCase();
  const shown = cases.map((_, index) => index).filter((index) => !wanted || JSON.stringify(cases[index]).toLowerCase().includes(wanted));
  const rows = shown.slice(0, SHOWN).map((index) => {
    const row = $("#case-row").content.firstElementChild.cloneNode(true);
    fillRow(row, index);
    return row;
  });
  list.replaceChildren(...rows);
  if (rows.length && !rows.some((row) => row.tabIndex === 0)) rows[0].tabIndex = 0;
  list.hidden = !rows.length;
  $("[data-case-none]", box).hidden = !(cases.length && !rows.length);
  $("[data-case-more]", box).hidden = shown.length <= SHOWN;
}

const rowOf = (index) => $(`[data-index="${index}"]`, list);

// --- The fields

function show(index, { focus = false, which = 0 } = {}) {
  at = index;
  turn = which;
  for (const row of $$("[role=option]", list)) {
    const on = Number(row.dataset.index) === at;
    row.setAttribute("aria-selected", String(on));
    row.tabIndex = on ? 0 : -1;
    if (on) row.scrollIntoView({ block: "nearest" });
  }
  card.hidden = at < 0;
  none.hidden = at >= 0 || cases.length > 0;
  if (at < 0) return;
  const heading = $("#case-h");
  heading.textContent = `${heading.dataset.title} ${at + 1}`;
  showSource(cases[at].source);
  drawTurns();
  fill();
  if (focus) $("#f-query").focus();
}

function showSource(source) {
  const badge = $("[data-case-source]", card);
  const kind = source?.traceId ? "trace" : source?.sessionId ? "session" : "";
  badge.hidden = !kind;
  if (!kind) return;
  const id = source.traceId ?? source.sessionId;
  badge.href = box.dataset[`${kind}Url`].replace(/ID$/, encodeURIComponent(id));
  const said = $("span", badge);
  said.textContent = `${said.dataset[kind]} ${id.length > 24 ? `${id.slice(0, 21)}…` : id}`;
}

function drawTurns() {
  const bar = $("[data-turns]", card);
  const count = follow(cases[at]).length;
  bar.hidden = !count;
  bar.replaceChildren(...Array.from({ length: count + 1 }, (_, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.turn = String(index);
    button.setAttribute("aria-pressed", String(index === turn));
    button.textContent = index ? `${bar.dataset.later} ${index}` : bar.dataset.first;
    return button;
  }));
  $("[data-turn=delete]", card).hidden = turn === 0;
  for (const part of $$("[data-main-only]", card)) part.hidden = turn > 0;
}

function fill() {
  const q = question();
  for (const field of $$("[data-f]", card)) {
    const value = q[field.dataset.f];
    field.value = Array.isArray(value) ? value.join(field.dataset.t === "chunks" ? "\n\n" : "\n") : value ?? "";
  }
  const path = q.expectedTrajectory;
  const mode = $("[data-mode]", card);
  const tools = path?.tools ?? [];
  mode.value = !Array.isArray(path?.tools) ? "" : tools.length ? path.mode ?? "strict" : "none";
  const box2 = $("[data-tools]", card);
  box2.value = tools.join("\n");
  box2.disabled = mode.value === "" || mode.value === "none";
  const smoke = q.smokeTest ?? {};
  $("[data-smoke=enabled]", card).checked = smoke.enabled === true;
  $("[data-smoke=count]", card).value = smoke.count ?? 3;
  $("[data-smoke=guidance]", card).value = smoke.guidance ?? "";
  $("[data-smoke-more]", card).hidden = smoke.enabled !== true;
}

function put(q, key, value) {
  const empty = value === "" || (Array.isArray(value) && !value.length);
  if (empty && key !== "query") delete q[key]; else q[key] = value;
}

function readTools(q) {
  const mode = $("[data-mode]", card).value;
  const field = $("[data-tools]", card);
  field.disabled = mode === "" || mode === "none";
  if (mode === "") { delete q.expectedTrajectory; return; }
  const tools = mode === "none" ? [] : lines(field.value);
  // Without a tool yet there is nothing to hold an answer to; "No tool is called" says it on purpose.
  if (!tools.length && mode !== "none") { delete q.expectedTrajectory; return; }
  q.expectedTrajectory = { ...q.expectedTrajectory, tools, mode: mode === "none" ? "strict" : mode };
}

function readSmoke(q) {
  const enabled = $("[data-smoke=enabled]", card).checked;
  $("[data-smoke-more]", card).hidden = !enabled;
  if (!enabled && !q.smokeTest) return;
  const count = Math.min(10, Math.max(1, Math.round(Number($("[data-smoke=count]", card).value) || 1)));
  const next = { ...q.smokeTest, enabled, count };
  put(next, "guidance", $("[data-smoke=guidance]", card).value);
  q.smokeTest = next;
}

card.addEventListener("input", (event) => {
  const field = event.target;
  if (at < 0) return;
  const q = question();
  if (field.matches("[data-f]")) {
    const { f, t } = field.dataset;
    if (t === "text") put(q, f, field.value);
    else if (t === "list") put(q, f, [...new Set(lines(field.value))]);
    else put(q, f, chunks(field.value));
  } else if (field.matches("[data-mode], [data-tools]")) readTools(q);
  else if (field.matches("[data-smoke]")) readSmoke(q);
  else return;
  const row = rowOf(at);
  if (row) fillRow(row, at);
  changed();
});

// --- What the buttons do

const doing = {
  add() {
    cases.push({ main_question: { query: "" }, follow_up_questions: [] });
    search.value = "";
    at = cases.length - 1;
  },
  copy() {
    const twin = structuredClone(cases[at]);
    delete twin.source; // the copy was written, not recorded
    cases.splice(at + 1, 0, twin);
    at += 1;
  },
  delete() { cases.splice(at, 1); at = Math.min(at, cases.length - 1); },
  up() { move(-1); },
  down() { move(1); },
};

function move(step) {
  const to = at + step;
  if (to < 0 || to >= cases.length) return;
  [cases[at], cases[to]] = [cases[to], cases[at]];
  at = to;
}

box.addEventListener("click", (event) => {
  const button = event.target.closest("[data-case]");
  if (button) {
    doing[button.dataset.case]();
    drawList();
    show(at, { focus: button.dataset.case === "add" || button.dataset.case === "copy" });
    changed();
    return;
  }
  const row = event.target.closest("[role=option]");
  if (row) { show(Number(row.dataset.index)); return; }
  const which = event.target.closest("[data-turn]")?.dataset.turn;
  if (which === undefined) return;
  if (which === "add") { follow(cases[at]).push({ query: "" }); turn = follow(cases[at]).length; }
  else if (which === "delete") { follow(cases[at]).splice(turn - 1, 1); turn -= 1; }
  else turn = Number(which);
  show(at, { which: turn, focus: which === "add" });
  if (which === "add" || which === "delete") { const one = rowOf(at); if (one) fillRow(one, at); changed(); }
});

list.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
  if (!step) return;
  const rows = $$("[role=option]", list);
  const next = rows[rows.indexOf(document.activeElement) + step];
  event.preventDefault();
  event.stopPropagation();
  if (next) { show(Number(next.dataset.index)); next.focus(); }
});

search.addEventListener("input", (event) => { event.stopPropagation(); drawList(); });
search.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });

// --- The form as a whole

const mark = $("#unsaved");
form.addEventListener("input", () => { if (mark) mark.hidden = false; });
document.addEventListener("agentx:shown", (event) => { form.elements.tab.value = event.target.id; });
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); form.requestSubmit(); }
});
// Cases that came from elsewhere on the page (generated from a text).
document.addEventListener("agentx:cases", (event) => {
  cases.push(...event.detail);
  drawList();
  show(cases.length - event.detail.length);
  changed();
});

document.addEventListener("click", (event) => {
  const keep = event.target.closest("[data-keep]");
  if (!keep) return;
  const boxes = $$("input[data-generated]:checked", keep.closest("[data-checklist]"));
  const made = boxes.map((one) => JSON.parse(one.dataset.generated)).map(({ query, expectedResults }) => ({
    main_question: expectedResults ? { query, expectedResults } : { query }, follow_up_questions: [],
  }));
  if (!made.length) return;
  document.dispatchEvent(new CustomEvent("agentx:cases", { detail: made }));
  keep.closest("[data-checklist]").remove();
  $("#tab-cases").click();
});

drawList();
show(at);
if (form.dataset.changed) form.dispatchEvent(new Event("input", { bubbles: true }));
