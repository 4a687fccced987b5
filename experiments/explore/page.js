// The controls of the page and what happens when one of them moves.
"use strict";

const start = JSON.parse(document.getElementById("start").textContent);
const source = start.grid ? new Precomputed(start, JSON.parse(document.getElementById("simulated").textContent)) : new Served();
const byId = (id) => document.getElementById(id);
const kMostPins = 4, kCompareAfter = 150, kSimulateAfter = 250;  // milliseconds without a further move

let chosen = {};   // key → text, for those settings that differ from the scenario
let fields = [];   // the controls with their elements
let pins = [];     // {label, settings, wall_clock_s, compute_utilization, cost, bytes, sent}
let answers = {};  // the last formula, compare and simulated answers, each for its own settings
let moves = 0;     // answers to older moves are dropped

const round2 = (value) => Number(value.toPrecision(2));
const control = (key) => fields.find((field) => field.control.key === key);

function makeField(control, i) {
  const id = "field-" + i, field = {control, id};
  const error = element("p", {id: id + "-error", className: "error", hidden: true});
  const hint = control.hint ? element("span", {className: "hint", id: id + "-hint"}, control.hint) : null;
  const described = (hint ? hint.id + " " : "") + error.id;
  const label = element("label", {htmlFor: id}, control.label, " ");
  let inputs;
  if (control.kind === "choice") {
    field.input = element("select", {id, "aria-describedby": described}, ...control.choices.map((value) =>
      element("option", {value}, value || (control.key === "quality.model" ? "none" : "default of the method"))));
    field.input.addEventListener("change", () => set(field, field.input.value));
    inputs = [field.input];
  } else if (control.kind === "sites") {
    field.boxes = control.choices.map((name) => element("input", {type: "checkbox", value: name}));
    for (const box of field.boxes) box.addEventListener("change", () =>
      set(field, field.boxes.filter((one) => one.checked).map((one) => one.value).join(", ")));
    const list = element("div", {className: "sites", role: "group", "aria-label": control.label, "aria-describedby": described},
      ...field.boxes.map((box) => element("label", {}, box, " " + box.value)));
    field.row = element("div", {className: "field"}, element("details", {open: control.choices.length <= 10},
      element("summary", {}, control.label, " ", hint), list), error);
  } else if (control.kind === "steps") {
    field.slider = element("input", {type: "range", id, min: 0, max: control.choices.length - 1, step: 1, "aria-describedby": described});
    field.output = element("output", {htmlFor: id});
    field.slider.addEventListener("input", () => set(field, control.choices[field.slider.value]));
    inputs = [field.slider, field.output];
  } else {
    field.slider = element("input", {type: "range", min: 0, max: control.whole && !control.log ? control.max - control.min : 240, step: 1,
      "aria-label": control.label + ", slider"});
    field.input = element("input", {type: "text", id, inputMode: control.unit === "count" ? "numeric" : "text", spellcheck: false,
      "aria-describedby": described});
    field.slider.addEventListener("input", () => set(field, written(atSlider(field), control)));
    field.input.addEventListener("input", () => set(field, field.input.value.trim()));
    inputs = [field.slider, field.input];
  }
  field.error = error;
  field.hint = hint;
  field.row ||= element("div", {className: "field"}, element("div", {className: "label"}, label, hint), element("div", {className: "inputs"}, ...inputs), error);
  return field;
}

function atSlider({control, slider}) {
  const share = slider.value / slider.max, {min, max} = control;
  const value = control.log ? min * (max / min) ** share : min + (max - min) * share;
  if (control.whole) return control.log && value > 20 ? round2(value) : Math.round(value);
  return round2(value);
}

const ownText = ({control}) => control.kind === "number" ? written(control.value, control)
  : control.kind === "sites" ? control.value.join(", ") : control.value;

// Shows a setting in all elements of its field except the one that the user is typing into.
function showField(field) {
  const {control} = field, text = chosen[control.key] ?? ownText(field);
  if (field.boxes) {
    const names = text.split(",").map((name) => name.trim());
    for (const box of field.boxes) box.checked = names.includes(box.value);
    return;
  }
  if (control.kind === "steps") {
    field.slider.value = control.choices.indexOf(text);
    field.output.textContent = text;
    field.slider.setAttribute("aria-valuetext", text);
    return;
  }
  if (document.activeElement !== field.input) field.input.value = text;
  if (!field.slider) return;
  const value = meant(text, control), {min, max} = control;
  if (!(value >= 0)) return;
  const share = control.log ? Math.log(Math.max(value, min) / min) / Math.log(max / min) : (value - min) / (max - min);
  if (document.activeElement !== field.slider) field.slider.value = Math.round(Math.min(1, Math.max(0, share)) * field.slider.max);
  field.slider.setAttribute("aria-valuetext", text);
}

function set(field, text) {
  const {key} = field.control;
  if (text === ownText(field) || (text === "" && field.control.kind === "choice")) delete chosen[key]; else chosen[key] = text;
  moved();
}

// The settings of the fields, and those of the box for other keys.
function allChosen() {
  const all = {...chosen};
  for (const line of byId("other").value.split("\n")) {
    const text = line.trim();
    if (!text) continue;
    const at = text.indexOf("=");
    all[at < 0 ? text : text.slice(0, at).trim()] = at < 0 ? "" : text.slice(at + 1).trim();
  }
  return all;
}

function showMethod() {
  const field = control("strategy.method"), method = field.input.value, about = field.control.methods[method];
  for (const [key, unused] of [["strategy.local_steps", about.every_step], ["strategy.expert_overlap", !about.overlap]]) {
    const other = control(key);
    if (!other) continue;
    other.row.classList.toggle("unused", unused);
    other.hint.textContent = unused ? `not used by ${method}` : other.control.hint;
  }
  field.input.title = about.text;
}

function showMistakes(list) {
  for (const field of fields) mark(marked(field), field.error, "");
  mark(byId("other"), byId("other-error"), "");
  const general = [];
  for (const {key, text} of list) {
    const field = control(key);
    if (field) mark(marked(field), field.error, text);
    else if (key in allChosen()) mark(byId("other"), byId("other-error"), `${key}: ${text}`);
    else general.push(key ? `${key}: ${text}` : text);
  }
  byId("general-error").textContent = general.join("\n");
  byId("general-error").hidden = general.length === 0;
  document.body.classList.toggle("wrong", list.length > 0);
  if (list.length) byId("status").textContent = "These settings are not possible; the numbers are those of the last possible ones.";
}

const marked = (field) => field.input || field.slider || field.boxes[0];

function mark(input, error, text) {
  error.textContent = text;
  error.hidden = !text;
  input.setAttribute("aria-invalid", String(Boolean(text)));
}

let timers = [], inFlight = false, again = false;
const awaited = new Set();  // the answers that the last move still waits for

function arrived(name) {
  awaited.delete(name);
  document.body.dataset.state = awaited.size ? "moving" : "settled";
}

function moved() {
  ++moves;
  for (const name of ["formula", "compare", "simulate"]) awaited.add(name);
  document.body.dataset.state = "moving";
  for (const field of fields) showField(field);
  showMethod();
  history.replaceState(null, "", "#" + new URLSearchParams(allChosen()));
  for (const timer of timers) clearTimeout(timer);
  timers = [setTimeout(() => ask("compare"), kCompareAfter), setTimeout(() => ask("simulate"), kSimulateAfter)];
  askFormula();
}

// One request at a time: while it is under way, only the last of several moves is remembered.
async function askFormula() {
  if (inFlight) { again = true; return; }
  inFlight = true;
  do {
    again = false;
    await ask("formula");
  } while (again);
  inFlight = false;
}

async function ask(name) {
  const now = moves, asked = allChosen();
  try {
    const answer = await source[name](asked);
    if (name === "formula" ? answer : now === moves) {
      answers[name] = answer;
      if (name === "formula") { answers.simulate = null; showMistakes([]); }
      render(name);
    }
    if (now === moves) arrived(name);
  } catch (error) {
    if (!(error instanceof Mistakes)) throw error;
    if (now === moves) showMistakes(error.list);
  }
}

// The present settings as a pin.
function present() {
  const {formula, simulate} = answers, {report} = simulate || formula;
  return {label: formula.label, settings: allChosen(), wall_clock_s: report.wall_clock_s, simulated: Boolean(simulate),
    utilization: report.compute_utilization, cost: report.cost && report.cost.currency ? report.cost.cost_total : undefined,
    bytes: report.bytes_sent_per_site_per_round, sent: formula.sent, perplexity: report.quality};
}

function pinLabel(pin, i) { return `${"ABCD"[i]}: ${pin.label}`; }

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    byId("taken").textContent = `Copied the ${what}.`;
    byId("copied").hidden = true;
  } catch {
    byId("copied").value = text;
    byId("copied").hidden = false;
    byId("copied").select();
    byId("taken").textContent = `The browser does not allow copying. The ${what} is selected below: press Ctrl+C.`;
  }
}

async function guarded(action) {
  try { await action(); } catch (error) {
    if (!(error instanceof Mistakes)) throw error;
    byId("taken").textContent = error.list.map(({key, text}) => (key ? key + ": " : "") + text).join("\n");
  }
}

function connect() {
  byId("pin").addEventListener("click", () => {
    if (!answers.formula || pins.length === kMostPins) return;
    pins.push(present());
    renderAllPins();
    byId("status").textContent = `Pinned as ${pinLabel(pins.at(-1), pins.length - 1)}. ${statusText(answers.formula, answers.simulate)}`;
  });
  byId("reset").addEventListener("click", () => { restore({}); });
  byId("other").addEventListener("input", moved);
  byId("copy-command").addEventListener("click", () => copy(byId("command").textContent, "command"));
  if (start.grid) {
    for (const id of ["copy-toml", "save-report", "more"]) byId(id).hidden = true;
  } else {
    byId("copy-toml").addEventListener("click", () => guarded(async () => copy((await source.toml(allChosen())).toml, "scenario")));
    byId("save-report").addEventListener("click", () => guarded(saveReport));
  }
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  // Paper has a light background and another width.
  for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", () => {
    forgetCharts();
    ["formula", "compare", "simulate"].forEach(render);
  });
}

async function saveReport() {
  byId("taken").textContent = "The simulations of the report are running …";
  const results = [{name: answers.formula.label, settings: allChosen()},
    ...pins.map((pin, i) => ({name: pinLabel(pin, i), settings: pin.settings}))];
  const link = element("a", {href: URL.createObjectURL(await source.report(results)), download: "report.html"});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  byId("taken").textContent = "Saved report.html.";
}

function restore(settings) {
  chosen = {};
  const others = [];
  for (const [key, text] of Object.entries(settings)) {
    if (control(key)) chosen[key] = text; else others.push(`${key}=${text}`);
  }
  byId("other").value = others.join("\n");
  moved();
}
