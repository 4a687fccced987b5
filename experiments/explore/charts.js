// The charts of the page. axis(), logAxis(), marks, settings(), timeline(), bars(), colour(), seriesColour() and shapes are
// those of the report's charts.
"use strict";

const drawnCharts = {};

function show(name, config) {
  const old = drawnCharts[name];
  if (old && old.config.type === config.type) {
    old.data = config.data;
    old.options = config.options;
    old.update("none");
    return;
  }
  if (old) old.destroy();
  drawnCharts[name] = new Chart(document.getElementById(name), config);
}

// The next show() of each chart then draws it in the present size and colours.
function forgetCharts() {
  for (const [name, chart] of Object.entries(drawnCharts)) {
    chart.destroy();
    delete drawnCharts[name];
  }
}

const kLegend = () => ({color: colour("--text"), usePointStyle: true, boxWidth: 10, boxHeight: 8, padding: 12,
  filter: (item) => !item.text.startsWith("now")});

// `xOf` turns a factor on all link rates into a value of the axis.
function curveChart(methods, now, xOf, title) {
  const datasets = methods.map((method, i) => ({
    label: method.label, showLine: true, pointRadius: method.present ? 3 : 2, borderWidth: method.present ? 3 : 2,
    borderColor: seriesColour(i), backgroundColor: seriesColour(i), pointStyle: shapes[i % shapes.length], clip: false,
    borderDash: method.present ? [] : [[6, 3], [2, 3], [8, 3, 2, 3], [3, 3]][(i - 1) % 4],
    data: method.curve.map(([factor, share, seconds]) => ({x: xOf(factor), y: share * 100, text:
      `${method.label}: ${humanPercent(share)}, ${humanTime(seconds)}`})),
  }));
  datasets.unshift({label: "now", pointRadius: 8, pointStyle: "crossRot", borderWidth: 3, borderColor: colour("--text"),
    showLine: false, clip: false, data: [{x: xOf(1), y: now * 100, mark: "now", first: true, text: "now: " + humanPercent(now)}]});
  const xs = datasets.flatMap((set) => set.data.map((point) => point.x));
  const options = settings({series: methods, kind: "points"}, {
    x: logAxis(title, xs), y: axis("compute utilisation, %", {min: 0, max: 100}),
  }, {label: ({raw}) => raw.text});
  options.plugins.legend.labels = kLegend();
  options.plugins.legend.display = true;
  return {type: "scatter", data: {datasets}, options, plugins: [marks]};
}

// Settings far from the front are left out of the picture: they would squeeze the others into a corner.
const kLongest = 3, kDearest = 5;
function nearFront(points) {
  const time = Math.min(...points.map((point) => point.wall_clock_s)), cost = Math.min(...points.map((point) => point.cost));
  return points.filter((point) => point.present || (point.wall_clock_s <= kLongest * time && point.cost <= kDearest * cost));
}

function frontChart(points, methods, currency, pins) {
  const unit = timeUnit(Math.max(...points.map((point) => point.wall_clock_s)));
  const at = (point) => ({x: point.wall_clock_s / unit[0], y: point.cost, mark: point.front ? point.label : "",
    text: `${point.label}: ${humanTime(point.wall_clock_s)}, ${humanMoney(point.cost, currency)}`});
  const known = new Set(methods.map((method) => method.name));
  const datasets = methods.map((method, i) => ({
    label: method.name, showLine: true, borderWidth: 1.5, pointRadius: 4, borderColor: seriesColour(i), clip: false,
    backgroundColor: seriesColour(i), pointStyle: shapes[i % shapes.length],
    data: points.filter((point) => point.method === method.name).map(at),
  }));
  datasets.push({label: "other methods", pointRadius: 3, borderColor: colour("--quiet"), backgroundColor: colour("--line"), clip: false,
    data: points.filter((point) => !known.has(point.method)).map(at)});
  const front = points.filter((point) => point.front).sort((a, b) => a.wall_clock_s - b.wall_clock_s);
  datasets.push({label: "Pareto front", showLine: true, stepped: true, pointRadius: 0, borderWidth: 3, borderDash: [2, 4],
    borderColor: colour("--text"), backgroundColor: colour("--text"), pointStyle: "line", clip: false,
    data: front.map((point) => ({...at(point), mark: ""}))});
  const marked = pins.filter((pin) => pin.cost !== undefined).map((pin) => ({...at(pin), mark: pin.label, first: true}));
  datasets.unshift({label: "now and pins", pointRadius: 8, pointStyle: "crossRot", borderWidth: 3, borderColor: colour("--text"),
    backgroundColor: colour("--text"), clip: false, data: marked});
  const xs = datasets.flatMap((set) => set.data.map((point) => point.x)), ys = datasets.flatMap((set) => set.data.map((point) => point.y));
  const options = settings({series: datasets, kind: "points"}, {
    x: wide(xs) ? logAxis(`wall clock, ${unit[1]} (log)`, xs, 1.1) : axis(`wall clock, ${unit[1]}`),
    y: wide(ys) ? logAxis(`cost, ${currency} (log)`, ys, 1.1) : axis(`cost, ${currency}`, {grace: "8%"}),
  }, {label: ({raw}) => raw.text});
  options.plugins.legend.labels = kLegend();
  return {type: "scatter", data: {datasets}, options, plugins: [marks]};
}

function roundChart(round) {
  const unit = timeUnit(round.duration_s);
  const names = {compute: "compute", transfer: "transfer, including waiting", "bytes under way": "bytes under way", upkeep: "validation, checkpoints, logs"};
  return timeline({
    kind: "timeline", rows: round.nodes, x_title: "time since the start of the round, " + unit[1], x_most: round.duration_s / unit[0],
    series: Object.entries(names).filter(([kind]) => kind !== "upkeep" || round.spans.some((span) => span.kind === kind)).map(([kind, name]) => ({name, spans: round.spans.filter((span) => span.kind === kind)
      .map((span) => [span.node, span.start_s / unit[0], span.end_s / unit[0], span.what])})),
  });
}

const kClasses = {expert_sync: "experts", checkpoint: "checkpoints", rejoin: "returning sites"};
const className = (key) => kClasses[key] || key;

// One bar for each of the settings: {label, sent}.
function bytesChart(all) {
  const classes = Object.keys(all[0].sent).filter((key) => all.some((one) => one.sent[key] > 0));
  const total = (one) => Object.values(one.sent).reduce((sum, bytes) => sum + bytes, 0);
  const unit = bytesUnit(Math.max(...all.map(total)));
  return bars({
    kind: "bars", stacked: true, labels: all.map((one) => one.label), x_title: `bytes sent by a site in the mean round, ${unit[1]}`,
    series: classes.map((key) => ({name: className(key), values: all.map((one) => one.sent[key] / unit[0])})),
  });
}
