// Small shared helpers.
export const root = document.documentElement;
export const $ = (selector, base = document) => base.querySelector(selector);
export const $$ = (selector, base = document) => [...base.querySelectorAll(selector)];
export const typing = (target) => Boolean(target?.closest?.("input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]"));
export const word = (name) => $("#text")?.content.querySelector(`[data-${name}]`)?.textContent ?? "";

// Runs for the page as it is and again for every part htmx puts in.
export function onContent(run) {
  run(document);
  document.addEventListener("htmx:load", (event) => run(event.detail.elt));
}

export function announce(text) {
  const region = $("#announce");
  if (region && text) { region.textContent = ""; setTimeout(() => { region.textContent = text; }, 50); }
}

export function toast(text, { verdict = "", keep = 6000 } = {}) {
  const box = document.createElement("div");
  box.className = "toast";
  if (verdict) box.dataset.v = verdict;
  const said = document.createElement("p");
  said.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn";
  close.dataset.size = "s";
  close.dataset.variant = "ghost";
  close.dataset.act = "dismiss";
  close.textContent = word("dismiss");
  box.append(said, close);
  $(".toasts")?.append(box);
  if (keep) setTimeout(() => box.remove(), keep);
}

// What a refused answer says: the limiter's message, our own error text, else the general sentence.
export async function reason(answer) {
  try {
    const body = JSON.parse(await answer.text());
    return body.message ?? body.error ?? word("failed");
  } catch { return word(answer.status === 429 ? "slow" : "failed"); }
}

export function csrf() {
  return $("input[name=csrfmiddlewaretoken]")?.value ?? "";
}

export function prefer(name, value) {
  const body = new URLSearchParams({ [name]: value });
  fetch(document.body.dataset.preferences, {
    method: "POST", body, headers: { "X-CSRFToken": csrf(), Accept: "application/json" }, signal: AbortSignal.timeout(10000),
  }).catch(() => toast(word("failed"), { verdict: "warn" }));
}
