// Shows the answers: figures, charts and tables.
"use strict";

const tile = (name, value, more, key) => element("div", {id: "figure-" + key}, element("dt", {}, name),
  element("dd", {}, value, more ? element("small", {}, more) : null));
const money = (cost) => cost && cost.currency ? humanMoney(cost.cost_total, cost.currency) : "no prices";

function lossText(loss) {
  if (!loss.known) return "unknown";
  const signed = points => (points < 0 ? "−" : "+") + Math.abs(points).toFixed(2);
  return `${signed(loss.points)} ± ${(loss.high - loss.points).toFixed(2)} %`;
}

function perplexity(quality) {
  if (!quality.known) return "unknown";
  return quality.perplexity.toFixed(2) + (quality.plus_minus ? " ± " + quality.plus_minus.toFixed(2) : "");
}

function renderFigures() {
  const {formula, simulate} = answers, closed = formula.report, report = simulate ? simulate.report : closed;
  const engine = simulate ? "simulated" : "closed form";
  const other = (of) => !simulate ? engine : of(closed) === of(report) ? "simulated and closed form" : `simulated; closed form ${of(closed)}`;
  const {round, bottleneck, quality} = report;
  const list = [
    tile("wall clock", humanTime(report.wall_clock_s), other((one) => humanTime(one.wall_clock_s)), "time"),
    tile("compute utilisation", humanPercent(report.compute_utilization), other((one) => humanPercent(one.compute_utilization)), "utilization"),
    tile("cost", money(report.cost), report.cost && report.cost.currency ? other((one) => money(one.cost)) : "add [prices] to the scenario", "cost"),
    tile("sent per site and round", humanBytes(report.bytes_sent_per_site_per_round), engine, "bytes"),
  ];
  if (round && round.duration_s > 0)
    list.push(tile("waits for the network", humanPercent(round.exposed_communication_s / round.duration_s),
      `busiest link ${humanPercent(bottleneck.link_busy_share)} busy`, "waits"));
  if (report.goodput)
    list.push(tile("median with failures", report.goodput.finish_p50_s === null ? "never ends" : humanTime(report.goodput.finish_p50_s),
      report.goodput.cost_p50 === undefined ? "the other figures leave failures out" : `${humanMoney(report.goodput.cost_p50, report.cost.currency)}; the other figures leave failures out`, "failures"));
  if (quality?.loss)
    list.push(tile("loss against data-parallel training", lossText(quality.loss), quality.loss.known ? quality.source : quality.reason, "quality"));
  else if (quality) list.push(tile("perplexity", perplexity(quality), quality.known ? quality.source : quality.reason, "quality"));
  else if (report.tokens_per_s) list.push(tile("throughput", humanCount(report.tokens_per_s) + " tokens/s", engine, "throughput"));
  byId("figures").replaceChildren(...list);
  const problems = (report.warnings || []).map((line) => `Warning: ${line}.`);
  if (report.memory_problem) problems.push("This scenario cannot run as configured: it " + report.memory_problem);
  byId("memory").hidden = problems.length === 0;
  byId("memory").textContent = problems.join(" ");
  byId("status").textContent = statusText(formula, simulate);
}

function statusText(formula, simulate) {
  const text = `${formula.label}, ${formula.sites} ${formula.sites === 1 ? "site" : "sites"} × ${formula.gpus_per_site} GPUs: `;
  if (!simulate) return text + (start.grid ? "closed form." : "closed form; the simulation is running …");
  const {interval} = simulate;
  const sure = interval?.withheld ? ` No interval is given, because ${interval.withheld}.`
    : interval ? ` 95 % of such runs would take ${humanTime(interval.low_s)} to ${humanTime(interval.high_s)}.` : "";
  return text + "simulated." + sure;
}

// A factor on all rates, as a rate if all sites are equal.
const uniform = () => Boolean(control("platform.bandwidth"));
const xOf = (factor) => uniform() ? factor * answers.formula.rate_bytes_per_s * 8e-9 : factor;
const rateTitle = () => uniform() ? "bandwidth of a site, Gb/s (log)" : "factor on the rate of every link (log)";

// The rates of the paths between the sites with the present settings, "30.37 Gb/s to 135.9 Gb/s", as soon as a simulation
// has said them; empty if all sites are equal. An exported page has one simulation, whose rates it scales.
function pathRates() {
  const simulate = answers.simulate || source.simulated, factor = control("platform.rate_factor");
  if (uniform() || !simulate) return "";
  const scale = answers.simulate || !factor ? 1 : (chosen[factor.control.key] ?? factor.control.value) / factor.control.value;
  const rates = simulate.matrix.rows.flat().map((cell) => cell && cell.rate_bytes_per_s * scale).filter(Boolean);
  const [least, most] = [Math.min(...rates), Math.max(...rates)].map(humanRate);
  return rates.length === 0 ? "" : least === most ? least : `${least} to ${most}`;
}

function renderRates() {
  const rates = pathRates(), factor = control("platform.rate_factor");
  byId("needed-title").textContent = (uniform() ? "Bandwidth" : "Factor on all rates") + " that each utilisation needs" +
    (rates && ` (× 1: ${rates} between two sites)`);
  if (factor) factor.hint.textContent = factor.control.hint + (rates && `, now ${rates}`);
}

function renderCurve() {
  const {formula, compare} = answers;
  const methods = compare ? compare.methods.map((method) => method.present ? {...method, label: formula.label, curve: formula.curve} : method)
    : [{name: formula.method, label: formula.label, present: true, curve: formula.curve}];
  // Old answers for the other methods are not drawn beside a method that was chosen after them.
  const shown = compare && methods[0].name === formula.method ? methods
    : [{name: formula.method, label: formula.label, present: true, curve: formula.curve}];
  show("curve", curveChart(shown, formula.report.compute_utilization, xOf, rateTitle()));
  byId("curve-caption").textContent = "Computed by the closed form" +
    (formula.exact ? "." : ", which does not represent these sites or this schedule exactly; trust the simulation of the present settings more.") +
    " All links are scaled together.";
  if (!compare) return;
  const shownAs = (factor) => uniform() ? humanRate(factor * formula.rate_bytes_per_s) : "× " + digits(factor, 3);
  // The grid of an exported page ends; beyond its ends, nothing is known.
  const needs = (factor, curve) => start.grid && factor === null ? "more than " + shownAs(curve.at(-1)[0])
    : start.grid && factor === curve[0][0] ? "at most " + shownAs(factor)
    : factor === null ? "never" : factor === 0 ? "any" : shownAs(factor);
  renderRates();
  fillTable(byId("needed"), ["Method", ...kMarks],
    compare.methods.map((method) => ({mark: method.present, cells: [method.label, ...method.needed.map((factor) => needs(factor, method.curve))]})));
}

function renderFront() {
  const {compare, formula} = answers;
  const has = compare && compare.points.length > 0;
  byId("front-view").hidden = !has;
  if (!has) return;
  const here = {label: "now", wall_clock_s: formula.report.wall_clock_s, cost: formula.report.cost.cost_total};
  const marked = [here, ...pins.map((pin, i) => ({...pin, label: "ABCD"[i]}))];
  const shown = nearFront(compare.points), far = compare.points.length - shown.length;
  show("front", frontChart(shown, compare.methods, start.currency, marked));
  const left = compare.left_out.map(({method}) => method);
  byId("front-caption").textContent = "All methods with K from 1 to 1024 at the present bandwidth, computed by the closed form. " +
    "Settings that do not fit into memory are left out. The methods may differ in the quality of the trained model." +
    (far ? ` ${far} settings that take more than ${kLongest} times the shortest time, or cost more than ${kDearest} times the least, are outside of the picture.` : "") +
    (left.length ? ` Not possible here: ${left.join(", ")}.` : "");
  const front = compare.points.filter((point) => point.front).sort((a, b) => a.wall_clock_s - b.wall_clock_s);
  fillTable(byId("front-table"), ["Setting", "wall clock", `cost, ${start.currency}`, "utilisation"],
    front.map((point) => [point.label, humanTime(point.wall_clock_s), humanMoney(point.cost), humanPercent(point.utilization)]));
}

function renderBytes() {
  const {formula} = answers;
  if (!formula.sent) { byId("bytes").closest("section").hidden = true; return; }
  const all = [{label: "now", sent: formula.sent}, ...pins.filter((pin) => pin.sent).map((pin, i) => ({label: "ABCD"[i], sent: pin.sent}))];
  const total = (one) => Object.values(one.sent).reduce((sum, bytes) => sum + bytes, 0);
  byId("bytes-drawing").style.height = 6.5 + 2.4 * all.length + "rem";
  const none = all.every((one) => total(one) === 0);
  byId("bytes-drawing").hidden = none;
  byId("bytes-caption").textContent = none ? "Nothing is sent between the sites." : "Computed by the closed form.";
  if (!none) show("bytes", bytesChart(all));
  const classes = Object.keys(formula.sent).filter((key) => all.some((one) => one.sent[key] > 0));
  fillTable(byId("bytes-table"), ["Settings", ...classes.map(className), "total"],
    all.map((one) => [one.label, ...classes.map((key) => humanBytes(one.sent[key])), humanBytes(total(one))]));
}

function renderSimulation() {
  const {simulate} = answers, has = Boolean(simulate);
  renderRates();
  for (const id of ["round-view", "matrix-view"]) byId(id).classList.toggle("old", !has);
  if (!has) {
    if (start.grid) for (const id of ["round-view", "matrix-view"]) byId(id).hidden = true;
    return;
  }
  for (const id of ["round-view", "matrix-view"]) byId(id).hidden = false;
  const round = simulate.round_timeline;
  byId("round-view").hidden = !round;
  if (round) {
    byId("round-drawing").style.height = 6 + 2.6 * round.nodes.length + "rem";
    show("round", roundChart(round));
    byId("round-caption").textContent = `Simulated round ${round.round + 1}, which takes ${humanTime(round.duration_s)}.` +
      (round.left_out_nodes ? ` ${round.left_out_nodes} more nodes are not shown.` : "");
    const rounds = simulate.report.round.count;
    fillTable(byId("sites"), ["Site", "compute", "waits for the network", "idle", "sent", "received"], simulate.report.sites.map((site) =>
      [site.name, humanTime(site.compute_s), humanTime(site.exposed_communication_s), humanTime(site.idle_s),
        humanBytes(site.bytes_sent / rounds), humanBytes(site.bytes_received / rounds)]));
  }
  renderMatrix(simulate.matrix, simulate.report.bottleneck);
  byId("notes").replaceChildren(...[...simulate.report.notes, ...simulate.report.provenance.map((entry) =>
    `${entry.what} (${entry.origin}): ${entry.detail}`)].map((text) => element("li", {}, text)));
}

function renderMatrix({sites, rows, left_out}, {link, link_busy_share}) {
  const most = Math.max(1e-12, ...rows.flat().filter(Boolean).map((cell) => cell.busy));
  const busiest = (name) => name === link;
  const cellOf = (cell, i, j) => {
    if (!cell) return element("td", {className: "self"}, "–");
    const here = busiest(`path ${sites[i].name} to ${sites[j].name}`);
    const td = element("td", {className: "number" + (here ? " busiest" : ""), title: (cell.rate_bytes_per_s ? humanRate(cell.rate_bytes_per_s) + ", " : "") +
      humanTime(cell.latency_s) + " one way"}, element("strong", {}, humanPercent(cell.busy)), element("br"), humanBytes(cell.bytes));
    td.style.setProperty("--heat", String(Math.round(100 * cell.busy / most) * 0.45) + "%");
    if (here) td.append(element("br"), element("span", {className: "tag"}, "busiest"));
    return td;
  };
  const named = (text, name) => busiest(name) ? [text, element("br"), element("span", {className: "tag"}, "busiest")] : [text];
  const head = element("tr", {}, element("th", {scope: "col"}, "from ↓ to →"), ...sites.map((site) =>
    element("th", {scope: "col", className: "number"}, ...named(site.name, "downlink of " + site.name))));
  byId("matrix").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows.map((row, i) => element("tr", {},
    element("th", {scope: "row"}, ...named(sites[i].name, "uplink of " + sites[i].name)), ...row.map((cell, j) => cellOf(cell, i, j))))));
  byId("matrix-caption").textContent = `Busiest: ${link}, ${humanPercent(link_busy_share)} of the time. Each cell has the share of a round for which ` +
    "the transfers between two sites would keep their route busy, and their bytes in a round." + (left_out > 0 ? ` ${left_out} more sites are not shown.` : "");
}

function renderPins() {
  byId("pins-view").hidden = pins.length === 0;
  byId("pin").disabled = pins.length === kMostPins;
  byId("pin").textContent = pins.length === kMostPins ? "Four settings are pinned" : "Pin these settings";
  const {formula, simulate} = answers;
  const rows = [...(formula ? [{...present(), label: "now: " + formula.label}] : []), ...pins];
  const changes = (pin) => Object.entries(pin.settings).map(([key, text]) => `${key.split(".").at(-1)}=${text}`).join(", ") || "as in the file";
  fillTable(byId("pins"), ["Settings", "wall clock", "utilisation", "cost", "sent per site and round", ""], rows.map((pin, i) => {
    const at = formula ? i - 1 : i, now = at < 0;
    const button = (text, action) => element("button", {type: "button", onclick: action, "aria-label": `${text} ${"ABCD"[at]}`}, text);
    return {mark: now, cells: [
      element("span", {}, now ? pin.label : pinLabel(pin, at), element("small", {}, changes(pin))),
      humanTime(pin.wall_clock_s), humanPercent(pin.utilization),
      pin.cost === undefined ? "–" : humanMoney(pin.cost, start.currency), humanBytes(pin.bytes),
      now ? "" : element("span", {className: "buttons"}, button("Restore", () => restore(pins[at].settings)),
        button("Remove", () => { pins.splice(at, 1); renderAllPins(); }))]};
  }));
}

function renderAllPins() {
  renderPins();
  renderFront();
  renderBytes();
}

function render(name) {
  if (!answers.formula) return;
  renderFigures();
  if (name === "formula") {
    byId("command").textContent = answers.formula.command;
    renderBytes();
  }
  if (name !== "simulate") { renderCurve(); renderFront(); }
  if (name !== "compare") renderSimulation();
  renderPins();
}

if (start.grid) {
  byId("limits").hidden = false;
  byId("limits").textContent = "This page was exported, and computes nothing itself. It has the closed form on a grid: K in powers of two, " +
    "bandwidths from 1/16 to 16 times those of the scenario in steps of √2, latencies from 1/4 to 4 times. The bandwidths in the table are " +
    "interpolated between these steps. Simulations are shown for the original settings only. The command below the charts simulates any of the settings with fomoe.";
}
fields = start.controls.map(makeField);
byId("fields").replaceChildren(...fields.map((field) => field.row));
connect();
restore(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
