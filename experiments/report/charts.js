// Draws each figure of class chart with Chart.js, from the JSON inside the figure. The numbers are already in the
// units of the axes; this script computes only the positions of marks.
"use strict";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColour = (i) => colour("--series-" + (i % 5));
const shapes = ["circle", "rectRot", "triangle", "rect", "star"];  // distinguish series without colour

function axis(title, more) {
  return Object.assign({
    title: {display: Boolean(title), text: title, color: colour("--quiet")},
    ticks: {color: colour("--quiet"), maxRotation: 0, autoSkipPadding: 12},
    grid: {color: colour("--line")},
  }, more);
}

function settings(data, scales, tooltip) {
  return {
    animation: false, responsive: true, maintainAspectRatio: false, locale: "en",
    scales,
    plugins: {
      legend: {display: data.series.length > 1, labels: {
        color: colour("--text"), usePointStyle: data.kind === "points", boxWidth: 12, boxHeight: data.kind === "points" ? 8 : 12,
      }},
      tooltip: {callbacks: tooltip},
    },
  };
}

// Breaks long names into several lines at dots, colons and underscores.
function lines(label) {
  const wrapped = [""];
  for (const part of label.split(/(?<=[._: -])/)) {
    if (wrapped.at(-1) && wrapped.at(-1).length + part.length > 18) wrapped.push("");
    wrapped[wrapped.length - 1] += part;
  }
  return wrapped;
}

function names(more) {
  const scale = axis("", more);
  scale.ticks.autoSkip = false;
  scale.ticks.callback = function (value) { return lines(this.getLabelForValue(value)); };
  return scale;
}

const short = (value, digits = 4) => value.toLocaleString("en", {maximumSignificantDigits: digits});

// Draws one bar for each span, in the row of its site and the lane of its series.
function timeline(data) {
  return {
    type: "bar",
    data: {
      labels: data.rows,
      datasets: data.series.map((series, i) => ({
        label: series.name, backgroundColor: seriesColour(i), categoryPercentage: 0.8, barPercentage: 1, minBarLength: 1,
        data: series.spans.map(([row, start, end, what]) => ({y: data.rows[row], x: [start, end], what})),
      })),
    },
    options: Object.assign(settings(data, {
      x: axis(data.x_title, {min: 0, max: data.x_most}),
      y: names({type: "category", labels: data.rows, offset: true}),
    }, {
      label: ({dataset, raw}) =>
        `${dataset.label}${raw.what ? " (" + raw.what + ")" : ""}: ${short(raw.x[0])} to ${short(raw.x[1])}`,
    }), {indexAxis: "y"}),
  };
}

function bars(data) {
  return {
    type: "bar",
    data: {
      labels: data.labels,
      datasets: data.series.map((series, i) => ({
        label: series.name, data: series.values, backgroundColor: seriesColour(i), maxBarThickness: 28,
      })),
    },
    options: Object.assign(settings(data, {
      x: axis(data.x_title, {stacked: Boolean(data.stacked)}),
      y: names({stacked: Boolean(data.stacked)}),
    }, {label: ({dataset, parsed}) => `${dataset.label}: ${short(parsed.x)}`}), {indexAxis: "y"}),
  };
}

function points(data) {
  const x = data.x_log ? {type: "logarithmic"} : {type: "linear"};
  const chart = {
    type: "scatter",
    data: {
      datasets: data.series.map((series, i) => ({
        label: series.name, showLine: Boolean(series.line), pointStyle: shapes[i % shapes.length], pointRadius: 5,
        borderColor: seriesColour(i), backgroundColor: seriesColour(i), borderWidth: 2, clip: false,
        data: series.points.map(([px, py, text]) => ({x: px, y: py, text})),
      })),
    },
    options: settings(data, {x: axis(data.x_title, x), y: axis(data.y_title, {beginAtZero: Boolean(data.y_zero)})}, {
      label: ({raw}) => raw.text,
    }),
  };
  if (data.x_log) {
    // Puts a tick at each point, because a short axis has too few powers of ten.
    const values = [...new Set(data.series.flatMap((series) => series.points.map((point) => point[0])))];
    values.sort((a, b) => a - b);
    const scale = chart.options.scales.x;
    scale.afterBuildTicks = (built) => { built.ticks = values.map((value) => ({value})); };
    scale.ticks.callback = (value) => short(value, 3);
    scale.ticks.autoSkip = true;
    scale.min = values[0];
    scale.max = values.at(-1);
  }
  return chart;
}

const kinds = {timeline, bars, points};
let drawn = [];

function draw() {
  for (const chart of drawn) chart.destroy();
  drawn = [...document.querySelectorAll("figure.chart")].map((figure) => {
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    return new Chart(figure.querySelector("canvas"), kinds[data.kind](data));
  });
}

// Paper cannot unfold sections and has a light background. All results are printed, but only those tables and
// scenarios that are open.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("article > details:first-child:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});
for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", draw);
draw();
