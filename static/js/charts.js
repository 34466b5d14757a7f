// Draws the charts of a page: every <canvas data-chart="id"> reads its figures from the JSON script with that id.
// Chart.js comes from the chartkick package and is loaded before this module; the page's table holds the same numbers.

const charts = new Map();
// Pixels that a label like "Wed 25" and the space beside it take.
const LABEL_WIDTH = 48;

/** The token a series is painted with: a number is a place in the palette, a word a verdict. */
function tokenOf(slot) {
  return { fail: "--fail-fill", pass: "--pass-fill", warn: "--warn-fill", none: "--chart-6" }[slot] ?? `--chart-${slot}`;
}

/** Resolves colour tokens to rgb: Chart.js' colour helper does not read oklch(), a painted pixel does. */
function painter() {
  const probe = document.createElement("i");
  document.body.append(probe);
  const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
    willReadFrequently: true,
  });
  const known = new Map();
  const paint = (token, alpha = 1) => {
    if (!known.has(token)) {
      probe.style.color = `var(${token})`;
      pixel.fillStyle = getComputedStyle(probe).color;
      pixel.fillRect(0, 0, 1, 1);
      known.set(token, [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", "));
    }
    return `rgba(${known.get(token)}, ${alpha})`;
  };
  return { paint, done: () => probe.remove() };
}

const language = document.documentElement.lang || "en";
const plain = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });
const two = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });

/** Milliseconds below one keep two digits: rounded, every line of the axis would read 0 ms. */
const millis = (v) => `${(v < 1 ? two : plain).format(v)} ms`;

const full = {
  count: (v) => plain.format(v),
  tokens: (v) => plain.format(v),
  usd: (v) => (v === 0 ? "$0" : v < 1 ? `$${v.toFixed(4)}` : `$${two.format(v)}`),
  ms: (v) => (v < 999.5 ? millis(v) : v < 120000 ? `${two.format(v / 1000)} s` : `${two.format(v / 60000)} min`),
  percent: (v) => `${two.format(v * 100)} %`,
};
const tick = {
  count: (v) => (Number.isInteger(v) ? short.format(v) : ""),
  tokens: (v) => short.format(v),
  usd: (v) => `$${v >= 1000 ? short.format(v) : v === 0 || v >= 0.01 ? two.format(v) : v.toFixed(v >= 0.0001 ? 4 : 6)}`,
  ms: (v) => (v < 1000 ? millis(v) : v < 120000 ? `${two.format(v / 1000)} s` : `${two.format(v / 60000)} min`),
  percent: (v) => `${plain.format(v * 100)} %`,
};

/** A hatched fill for the bucket that is still being filled. */
function hatch(colour) {
  const tile = Object.assign(document.createElement("canvas"), { width: 6, height: 6 });
  const pen = tile.getContext("2d");
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const x of [-3, 3]) {
    pen.moveTo(x, 6);
    pen.lineTo(x + 6, 0);
  }
  pen.stroke();
  return pen.createPattern(tile, "repeat");
}

function dataset(series, spec, colour) {
  const last = series.values.length - 1;
  if (spec.kind === "bar") {
    const solid = colour(tokenOf(series.slot));
    const unfinished = spec.partial ? hatch(solid) : solid;
    return {
      label: series.label,
      data: series.values,
      backgroundColor: series.values.map((_, index) => (index === last ? unfinished : solid)),
      borderWidth: 0,
      borderRadius: 1,
      maxBarThickness: 28,
      categoryPercentage: 0.82,
      barPercentage: 0.96,
    };
  }
  const stroke = colour(tokenOf(series.slot));
  return {
    label: series.label,
    data: series.values,
    borderColor: stroke,
    backgroundColor: colour(tokenOf(series.slot), 0.1),
    borderWidth: series.dashed ? 1.25 : 1.75,
    borderDash: series.dashed ? [3, 3] : undefined,
    fill: Boolean(series.area),
    tension: 0,
    spanGaps: false,
    pointRadius: (point) => (isLone(series.values, point.dataIndex) ? 2 : 0),
    pointHoverRadius: 3,
    pointBackgroundColor: stroke,
    segment: { borderDash: (s) => (spec.partial && s.p1DataIndex === last ? [3, 3] : undefined) },
  };
}

/** A value between two gaps has no line, so it is drawn as a point. */
function isLone(values, index) {
  return values[index] != null && values[index - 1] == null && values[index + 1] == null;
}

/** Labels that stand at some buckets only (one a day): every second, third, … when the axis is too narrow for all. */
function sparseLabel(labels) {
  const named = labels.flatMap((label, index) => (label ? [index] : []));
  return function (value, index) {
    const step = Math.max(1, Math.ceil((named.length * LABEL_WIDTH) / this.chart.width));
    return named.indexOf(index) % step === 0 ? labels[index] : "";
  };
}

function config(spec) {
  const { paint: colour, done } = painter();
  const text = colour("--chart-text");
  const grid = colour("--chart-grid");
  const built = {
    type: spec.kind,
    data: { labels: spec.labels, datasets: spec.series.map((series) => dataset(series, spec, colour)) },
    options: {
      animation: false,
      // A bucket leads to its traces; the same addresses stand in the table for the keyboard.
      onClick: (event, items) => { if (items.length && spec.links?.length) location.assign(spec.links[items[0].index]); },
      onHover: (event, items) => { event.native.target.style.cursor = items.length && spec.links?.length ? "pointer" : "default"; },
      responsive: true,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      layout: { padding: { top: 6 } },
      scales: {
        x: {
          stacked: Boolean(spec.stacked),
          grid: { display: false },
          border: { display: false },
          ticks: { color: text, font: { size: 11 }, maxRotation: 0, autoSkip: !spec.sparse, autoSkipPadding: 16, ...(spec.sparse && { callback: sparseLabel(spec.labels) }) },
        },
        y: {
          stacked: Boolean(spec.stacked),
          beginAtZero: true,
          grid: { color: grid, drawTicks: false },
          border: { display: false },
          ticks: {
            color: text,
            font: { size: 11 },
            maxTicksLimit: 5,
            padding: 6,
            callback: (value) => (tick[spec.unit] ?? tick.count)(value),
          },
        },
      },
      plugins: {
        legend: { display: false },
        tooltip: {
          backgroundColor: colour("--raised"),
          titleColor: colour("--text"),
          bodyColor: colour("--text-2"),
          borderColor: colour("--line"),
          borderWidth: 1,
          padding: 10,
          cornerRadius: 6,
          boxWidth: 8,
          boxHeight: 8,
          boxPadding: 4,
          titleFont: { size: 12, weight: "600" },
          bodyFont: { size: 12 },
          filter: (item) => item.raw != null && (item.raw !== 0 || spec.series.length < 3),
          callbacks: {
            title: (items) => (items.length ? (spec.titles ?? spec.labels)[items[0].dataIndex] : ""),
            label: (item) => ` ${item.dataset.label}  ${(full[spec.unit] ?? full.count)(item.raw)}`,
          },
        },
      },
    },
  };
  done();
  return built;
}

function draw(canvas) {
  const source = document.getElementById(canvas.dataset.chart);
  if (!source || !window.Chart) return;
  const spec = JSON.parse(source.textContent);
  window.Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  charts.get(canvas)?.destroy();
  const chart = new window.Chart(canvas, config(spec));
  charts.set(canvas, chart);
  const figure = canvas.closest("[data-figure]");
  figure?.querySelectorAll("[data-series]").forEach((button) => {
    chart.setDatasetVisibility(Number(button.dataset.series), button.getAttribute("aria-pressed") !== "false");
  });
  chart.update("none");
}

/** Draws what is new and forgets what left the page; called again after each swap. */
export function drawCharts() {
  for (const [canvas, chart] of charts) {
    if (!canvas.isConnected) {
      chart.destroy();
      charts.delete(canvas);
    }
  }
  document.querySelectorAll("canvas[data-chart]").forEach((canvas) => {
    if (!charts.has(canvas)) draw(canvas);
  });
}

function redraw() {
  [...charts.keys()].forEach((canvas) => draw(canvas));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-series]");
  const canvas = button?.closest("[data-figure]")?.querySelector("canvas[data-chart]");
  const chart = canvas && charts.get(canvas);
  if (!chart) return;
  const shown = button.getAttribute("aria-pressed") === "false";
  button.setAttribute("aria-pressed", String(shown));
  chart.setDatasetVisibility(Number(button.dataset.series), shown);
  chart.update("none");
});
document.addEventListener("htmx:afterSettle", drawCharts);
document.addEventListener("htmx:historyRestore", drawCharts);
new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
drawCharts();
