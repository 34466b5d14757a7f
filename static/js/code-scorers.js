// Code scorers of a dataset or a judge scorer: the list is JSON in a hidden field.
import { $, $$, onContent } from "./dom.js";

// Bodies a person starts from; "Weighted final score" blends over whatever the result has.
const TEMPLATES = {
  weighted: {
    name: "Weighted final score",
    code: `// Weights add up to anything: what a result does not have is left out and the rest is blended again.
// higherIsBetter: false inverts an entry whose high values are bad (1 - value / 10).
const WEIGHTS = {
  rating: { weight: 0.5, higherIsBetter: true },
  vectorSimilarity: { weight: 0.2, higherIsBetter: true },
  rougeScore: { weight: 0.3, higherIsBetter: true },
};
// Additional judge scorers by name, for example: "Toxicity": { weight: 0.2, higherIsBetter: false }
const JUDGES = {};
if (typeof scores === "undefined" || !scores) return { score: null, reasoning: "Nothing was scored before" };
let total = 0, used = 0;
const add = (value, entry) => {
  if (value === null || value === undefined) return;
  total += (entry.higherIsBetter ? value : 1 - value) * entry.weight;
  used += entry.weight;
};
for (const [name, entry] of Object.entries(WEIGHTS)) {
  const value = scores[name];
  add(name === "rating" && value !== null && value !== undefined ? value / 10 : value, entry);
}
for (const [name, entry] of Object.entries(JUDGES)) {
  const value = scores.judges[name];
  add(value === null || value === undefined ? null : value / 10, entry);
}
return used > 0 ? { score: total / used } : { score: null, reasoning: "No weighted score is there" };`,
  },
  worst: {
    name: "Worst judge wins",
    code: `// The lowest verdict of the primary judge and every additional one.
if (typeof scores === "undefined" || !scores) return { score: null, reasoning: "Nothing was judged before" };
const verdicts = [["primary judge", scores.rating], ...Object.entries(scores.judges)]
  .filter(([, value]) => value !== null && value !== undefined);
if (!verdicts.length) return { score: null, reasoning: "No judge gave a rating" };
const [name, value] = verdicts.reduce((low, one) => (one[1] < low[1] ? one : low));
return { score: value / 10, reasoning: "Lowest: " + name };`,
  },
};

function setUp(section) {
  const field = document.getElementById(section.dataset.value);
  const list = $("[data-code-list]", section);
  let items = [];
  try { items = JSON.parse(field.value || "[]"); } catch { items = []; }

  const changed = () => {
    field.value = JSON.stringify(items);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const draw = () => {
    list.replaceChildren(...items.map((item, index) => {
      const row = $("[data-code-row]", section).content.firstElementChild.cloneNode(true);
      row.dataset.index = String(index);
      for (const input of $$("[data-k]", row)) {
        const key = input.dataset.k;
        input.id = `code-${index}-${key}`;
        const label = input.closest(".field")?.querySelector("label");
        if (label) label.htmlFor = input.id;
        if (key === "enabled") input.checked = item.enabled !== false; else input.value = item[key] ?? "";
      }
      return row;
    }));
  };
  section.addEventListener("input", (event) => {
    const key = event.target.dataset.k;
    if (!key) return;
    event.stopPropagation();
    const item = items[Number(event.target.closest("[data-code-item]").dataset.index)];
    item[key] = key === "enabled" ? event.target.checked : event.target.value;
    changed();
  });
  section.addEventListener("click", (event) => {
    const what = event.target.closest("[data-code]")?.dataset.code;
    if (!what) return;
    if (what === "delete") items.splice(Number(event.target.closest("[data-code-item]").dataset.index), 1);
    else items.push({ name: "", code: "", enabled: true, ...(TEMPLATES[what] ?? {}) });
    draw();
    if (what !== "delete") $(`#code-${items.length - 1}-${what === "add" ? "name" : "code"}`)?.focus();
    changed();
  });
  draw();
}

onContent((part) => { for (const section of $$("[data-code-scorers]", part)) setUp(section); });
