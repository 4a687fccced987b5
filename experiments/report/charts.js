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

// Writes the text of each point that has a `mark`, where it covers neither another text nor a border.
const marks = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea} = chart, taken = [], texts = [];
    ctx.save();
    ctx.font = `${Chart.defaults.font.size}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = colour("--text");
    const found = [], all = [];
    chart.data.datasets.forEach((dataset, i) => {
      if (!chart.isDatasetVisible(i)) return;
      dataset.data.forEach((point, j) => {
        const at = chart.getDatasetMeta(i).data[j];
        all.push([at.x - 5, at.y - 5, at.x + 5, at.y + 5]);
        if (!point.mark) return;
        // Points that lie on each other share a text.
        const same = found.find((one) => Math.hypot(one.x - at.x, one.y - at.y) < 2 && one.text.length < 40);
        if (!same) found.push({text: point.mark, first: point.first, x: at.x, y: at.y});
        else if (!same.text.split(", ").includes(point.mark)) same.text += ", " + point.mark;
      });
    });
    found.sort((a, b) => (b.first ? 1 : 0) - (a.first ? 1 : 0));
    for (const {x, y} of found) taken.push([x - 6, y - 6, x + 6, y + 6]);
    const spotsOf = (text, x, y) => {
      const width = ctx.measureText(text).width;
      return [[x + 10, y], [x - 10 - width, y], [x - width / 2, y - 15], [x - width / 2, y + 15], [x + 8, y - 17],
              [x + 8, y + 17], [x - 8 - width, y - 17], [x - 8 - width, y + 17], [x + 8, y - 27], [x - 8 - width, y - 27]].map(([left, middle]) => ({text, left, middle, width}));
    };
    // Spots that are farther away, to which a thin line leads.
    const farSpots = (text, x, y) => {
      const width = ctx.measureText(text).width, spots = [];
      for (const away of [45, 70, 100, 140]) {
        for (const [right, down] of [[1, 0.4], [1, -0.4], [0.6, 0.9], [0.6, -0.9], [-1, 0.4], [-1, -0.4], [-0.6, -0.9]]) {
          const at = x + right * away;
          spots.push({text, left: right > 0 ? at : at - width, middle: y + down * away, width, from: [x, y], to: at});
        }
      }
      return spots;
    };
    // Places on the line that leads to a spot; no text may be there.
    const lineTo = ({from, to, middle}) => !from ? [] :
      Array.from({length: 24}, (_, i) => [from[0] + (to - from[0]) * i / 23, from[1] + (middle - from[1]) * i / 23]);
    for (const {text, x, y} of found) {
      const own = (box) => box[0] < x && x < box[2] && box[1] < y && y < box[3];
      const free = (others) => (spot) => {
        const {left, middle, width} = spot;
        const box = [left - 3, middle - 8, left + width + 3, middle + 8];  // texts side by side need a gap
        return box[0] >= chartArea.left && box[2] <= chartArea.right && box[1] >= chartArea.top && box[3] <= chartArea.bottom &&
          !others.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]) &&
          !lineTo(spot).some(([right, down]) => texts.some((other) => other[0] < right && right < other[2] && other[1] < down && down < other[3]));
      };
      // Best is a spot that covers no point, near or far; then one that covers no named point; then one for the beginning of a long text.
      const points = [...taken, ...all.filter((box) => !own(box))], spots = spotsOf(text, x, y);
      const brief = text.length > 22 ? spotsOf(text.slice(0, 20).trimEnd() + "…", x, y) : [];
      const spot = spots.find(free(points)) || farSpots(text, x, y).find(free(points)) || spots.find(free(taken)) ||
        brief.find(free(points)) || brief.find(free(taken));
      if (!spot) continue;  // the tooltip and the table have it
      texts.push([spot.left, spot.middle - 8, spot.left + spot.width, spot.middle + 8]);
      taken.push(texts.at(-1), ...lineTo(spot).map(([right, down]) => [right - 1, down - 1, right + 1, down + 1]));
      if (spot.from) {
        ctx.strokeStyle = colour("--quiet");
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.moveTo(...spot.from);
        ctx.lineTo(spot.to + (spot.to > spot.from[0] ? -3 : 3), spot.middle);
        ctx.stroke();
      }
      ctx.fillText(spot.text, spot.left, spot.middle);
    }
    ctx.restore();
  },
};

// `margin` is room at both ends, as a factor.
function logAxis(title, values, margin = 1) {
  const least = Math.min(...values) / margin, most = Math.max(...values) * margin;
  const scale = axis(title, {type: "logarithmic", min: least, max: most});
  scale.ticks.autoSkip = true;
  scale.ticks.callback = (value) => short(value, 3);
  scale.afterBuildTicks = (built) => {
    const ticks = [], steps = most / least > 1e4 ? [1] : most / least > 50 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); ++power) {
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= least * 0.999 && value <= most * 1.001) ticks.push({value});
      }
    }
    built.ticks = ticks.length > 1 ? ticks : [{value: least}, {value: most}];
  };
  return scale;
}

// Breaks long names into several lines at dots, colons and underscores.
function lines(label) {
  const wrapped = [""];
  for (const part of label.split(/(?<=[._: -])/)) {
    if (wrapped.at(-1) && wrapped.at(-1).length + part.length > 20) wrapped.push("");
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

// Bars are cut off if they are this many times as long as half of the bars, so that the others can be told apart.
const kBreak = 3;

// How many bars are cut off, at most a third of them, and the longest of the others. Each of the former is twice as long.
function breakAt(totals) {
  const sorted = [...totals].sort((a, b) => b - a), usual = sorted[Math.floor(sorted.length / 2)];
  let cut = totals.length > 2 && usual > 0 ? sorted.filter((total) => total > kBreak * usual).length : 0;
  while (cut > 0 && sorted[cut - 1] < 2 * sorted[cut]) --cut;
  return cut <= totals.length / 3 ? {cut, most: sorted[cut]} : {cut: 0, most: sorted[0]};
}

// Makes the axis long enough for the bars up to `most`, the texts behind them and the gaps of bars that are cut off.
const roomForEnds = (ends, totals, {cut, most}) => (scale) => {
  const {ctx} = scale.chart, room = scale.maxWidth || scale.chart.width;
  ctx.save();
  ctx.font = `${Chart.defaults.font.size}px system-ui, sans-serif`;
  scale.max = most * (cut ? 1.2 : 1);
  totals.forEach((total, i) => {
    const share = Math.min(0.7, (ctx.measureText(ends[i]).width + 10) / room);
    if (total <= most) scale.max = Math.max(scale.max, total / (1 - share));
  });
  ctx.restore();
};

// The texts behind the bars, with their second parts where there is room.
const endsOf = (data) => data.ends && data.ends.map((text, i) => text + (data.more_of_ends && window.innerWidth > 700 ? data.more_of_ends[i] : ""));

// Writes these texts behind the bars, and a gap into those that are cut off.
const ends = (data, totals) => ({
  id: "ends",
  afterDatasetsDraw(chart) {
    if (!data.ends) return;
    const {ctx, chartArea, scales} = chart, texts = endsOf(data);
    ctx.save();
    ctx.font = `${Chart.defaults.font.size}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    totals.forEach((total, i) => {
      const y = scales.y.getPixelForValue(data.labels[i], i), end = scales.x.getPixelForValue(total);
      const cut = end > chartArea.right + 1, text = texts[i], width = ctx.measureText(text).width;
      const x = cut ? chartArea.right - width - 8 : Math.min(end + 6, chartArea.right - width - 2);
      if (cut || x < end) {
        ctx.fillStyle = colour("--back");
        ctx.fillRect(x - 4, y - 9, width + 8, 18);
      }
      if (cut) {
        ctx.strokeStyle = colour("--back");
        ctx.lineWidth = 4;
        for (const left of [x - 24, x - 15]) {
          ctx.beginPath();
          ctx.moveTo(left, y + 16);
          ctx.lineTo(left + 8, y - 16);
          ctx.stroke();
        }
      }
      ctx.fillStyle = colour("--text");
      ctx.fillText(text, x, y);
    });
    ctx.restore();
  },
});

function bars(data) {
  const totals = data.labels.map((_, i) => data.series.reduce((sum, series) => sum + series.values[i], 0));
  const at = data.ends ? breakAt(totals) : {cut: 0};
  const said = at.cut ? ` (the longest ${at.cut > 1 ? at.cut + " bars are" : "bar is"} cut off)` : "";
  const options = Object.assign(settings(data, {
    x: axis(data.x_title + said, {stacked: Boolean(data.stacked),
      afterDataLimits: data.ends ? roomForEnds(endsOf(data), totals, at) : undefined}),
    y: names({stacked: Boolean(data.stacked)}),
  }, {label: ({dataset, parsed}) => `${dataset.label}: ${short(parsed.x)}`}), {indexAxis: "y"});
  return {
    type: "bar",
    data: {
      labels: data.labels,
      datasets: data.series.map((series, i) => ({
        label: series.name, data: series.values, backgroundColor: seriesColour(i), maxBarThickness: 28,
      })),
    },
    options, plugins: [ends(data, totals)],
  };
}

// Values of which one is many times another need a logarithmic axis.
const wide = (values, times = 8) => values.length > 1 && Math.min(...values) > 0 && Math.max(...values) > times * Math.min(...values);

function points(data) {
  const all = data.series.flatMap((series) => series.points);
  const scaleOf = (title, values, log, more) =>
    log ? logAxis(title + " (log)", values, data.series.some((series) => !series.line) ? 1.2 : 1) : axis(title, Object.assign({grace: data.series.some((series) => !series.line) ? "15%" : "5%"}, more));
  const xs = all.map((point) => point[0]), ys = all.map((point) => point[1]), radius = all.length > 60 ? 3 : 5;
  return {
    type: "scatter",
    data: {
      datasets: data.series.map((series, i) => ({
        label: series.name, showLine: Boolean(series.line), pointStyle: series.plain ? "line" : shapes[i % shapes.length],
        pointRadius: series.plain ? 0 : radius, borderWidth: series.plain ? 1.5 : 2, clip: false,
        borderColor: series.plain ? colour("--quiet") : seriesColour(i), backgroundColor: seriesColour(i),
        data: series.points.map(([px, py, text, mark]) => ({x: px, y: py, text, mark})),
      })),
    },
    options: settings(data, {
      x: scaleOf(data.x_title, xs, wide(xs, data.log_from) && !data.linear, {grace: 0, beginAtZero: Boolean(data.linear)}),
      y: scaleOf(data.y_title, ys, wide(ys, data.log_from) && !data.y_most, data.y_most ? {min: 0, max: data.y_most} : {beginAtZero: Boolean(data.y_zero)}),
    }, {label: ({raw}) => raw.text}),
    plugins: [marks],
  };
}

const kinds = {timeline, bars, points};
let drawn = [];

function draw() {
  Chart.defaults.font.size = matchMedia("print").matches ? 9 : 12;
  for (const chart of drawn) chart.destroy();
  drawn = [...document.querySelectorAll("figure.chart")].map((figure) => {
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    return new Chart(figure.querySelector("canvas"), kinds[data.kind](data));
  });
}

// Paper has a light background. It has what is open on the screen: one result, or the comparison of several.
for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", draw);
draw();
