// Where the answers come from: the server of the page, or the grid in a page that was exported. Both have the functions
// formula(), compare() and simulate(), which take the settings and return the JSON that requests.hpp describes.
"use strict";

class Mistakes extends Error {
  constructor(list) { super("mistakes"); this.list = list; }
}

class Served {
  constructor() { this.page = Math.random().toString(36).slice(2); }

  async ask(name, body) {
    let reply;
    try {
      reply = await fetch(name, {method: "POST", body: JSON.stringify({...body, page: this.page})});
    } catch {
      throw new Mistakes([{key: "", text: "fomoe explore does not answer. Start it again, and open the address that it prints."}]);
    }
    if (reply.status === 409) return null;  // a newer request replaced this one
    if (reply.ok) return reply;
    const told = await reply.text();
    let list;
    try { list = JSON.parse(told).mistakes; } catch { list = [{key: "", text: told}]; }
    throw new Mistakes(list);
  }
  async json(name, chosen) {
    const reply = await this.ask(name, {settings: chosen});
    return reply && reply.json();
  }
  formula(chosen) { return this.json("formula", chosen); }
  compare(chosen) { return this.json("compare", chosen); }
  simulate(chosen) { return this.json("simulate", chosen); }
  toml(chosen) { return this.json("toml", chosen); }
  async report(results) { return (await this.ask("report", {results})).blob(); }
}

class Precomputed {
  constructor(start, simulated) {
    this.start = start;
    this.simulated = simulated;
    this.defaults = Object.fromEntries(start.controls.map((control) => [control.key, control.value]));
  }

  // The settings with the defaults of the page.
  all(chosen) { return {...this.defaults, ...chosen}; }

  // The settings with another method. As in formula.cpp, one site holds each expert if nothing says how many do.
  with(method, chosen) {
    const all = this.all(chosen), overlap = this.start.controls.find((control) => control.key === "strategy.expert_overlap");
    const given = "strategy.expert_overlap" in chosen || this.start.options.includes("strategy.expert_overlap=") || !overlap ||
      String(overlap.value) !== String(overlap.choices.at(-1));
    return method === all["strategy.method"] || given ? all : {...all, "strategy.expert_overlap": overlap.choices[0]};
  }

  block(method, format, overlap) {
    const {blocks} = this.start.grid;
    return blocks[`${method}|${format}|0`] || blocks[`${method}|${format}|${overlap}`];
  }

  // The label and a function that finds the values at a rate; null if the settings were refused.
  line(method, all, steps) {
    const overlap = all["strategy.expert_overlap"], block = this.block(method, all["strategy.payload_dtype"], overlap);
    if (!block) return null;
    const {rates, latencies} = this.start.grid;
    const k = block.every_step ? 0 : block.local_steps.indexOf(steps);
    const latency = latencies.indexOf(Number(all["network_model.latency_factor"]));
    const partial = Boolean(this.start.grid.blocks[`${method}|${all["strategy.payload_dtype"]}|${overlap}`]);
    const at = (rate) => {
      const i = (k * latencies.length + latency) * rates.length + rate;
      return block.wall_clock_s[i] === null ? null
        : {wall_clock_s: block.wall_clock_s[i], utilization: block.utilization[i], cost: block.cost[i], bytes: block.bytes[i]};
    };
    const label = method + (block.every_step ? "" : ` K=${steps}`) + (partial ? ` O_e=${overlap}` : "");
    return {label, at, block, problem: block.problems[k]};
  }

  command(chosen) {
    const quoted = (word) => /^[\w.\-+=/:%,@]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
    return `fomoe simulate ${quoted(this.start.path)}${this.start.options}` +
      Object.entries(chosen).map(([key, value]) => ` --set ${quoted(key + "=" + value)}`).join("");
  }

  async formula(chosen) {
    const all = this.all(chosen), {grid} = this.start, method = all["strategy.method"];
    const line = this.line(method, all, Number(all["strategy.local_steps"]));
    const rate = grid.rates.indexOf(Number(all["platform.rate_factor"]));
    const point = line && line.at(rate);
    if (!point) throw new Mistakes([{key: "", text: "The scenario's reader refuses these settings together."}]);
    return {
      report: {wall_clock_s: point.wall_clock_s, compute_utilization: point.utilization, memory_problem: line.problem,
        bytes_sent_per_site_per_round: point.bytes, notes: [],
        cost: point.cost === undefined ? null : {cost_total: point.cost, currency: this.start.currency}},
      label: line.label, method, exact: line.block.exact, sites: grid.sites, gpus_per_site: grid.gpus_per_site,
      rate_bytes_per_s: grid.rate_bytes_per_s * grid.rates[rate] / grid.rate_factor,
      curve: this.curve(line, rate), command: this.command(chosen), sent: null,
    };
  }

  curve(line, now) {
    const {rates} = this.start.grid;
    return rates.map((rate, i) => [rate / rates[now], line.at(i)]).filter(([, point]) => point)
      .map(([factor, point]) => [factor, point.utilization, point.wall_clock_s]);
  }

  async compare(chosen) {
    const all = this.all(chosen), {grid} = this.start, present = all["strategy.method"];
    const now = grid.rates.indexOf(Number(all["platform.rate_factor"])), steps = Number(all["strategy.local_steps"]);
    const methods = [], found = [];
    const choices = this.start.controls.find((control) => control.key === "strategy.method").choices;
    for (const name of choices) {
      const line = this.line(name, this.with(name, chosen), steps);
      if (!line) continue;
      if (name === present || ["ddp", "diloco", "streaming_diloco", "fomoe"].includes(name)) {
        const curve = this.curve(line, now);
        if (curve.length === 0) continue;  // refused with this K
        methods.push({name, label: line.label, present: name === present, curve,
          needed: kTargets.map((target) => between(curve, target))});
      }
      for (const k of line.block.local_steps) {
        const other = this.line(name, this.with(name, chosen), k), point = other.at(now);
        if (!point || point.cost === undefined || other.problem) continue;
        found.push({method: name, label: other.label, local_steps: k, present: name === present && (line.block.every_step || k === steps),
          wall_clock_s: point.wall_clock_s, cost: point.cost, utilization: point.utilization});
      }
    }
    methods.sort((a, b) => b.present - a.present);
    for (const point of found) {
      point.front = !found.some((other) => other.wall_clock_s <= point.wall_clock_s && other.cost <= point.cost &&
        (other.wall_clock_s < point.wall_clock_s || other.cost < point.cost));
    }
    return {methods, points: found, left_out: []};
  }

  async simulate(chosen) {
    const same = Object.entries(chosen).every(([key, value]) => this.defaults[key] === value);
    return same ? this.simulated : null;
  }
}

// The smallest factor on the rates that reaches the utilisation, between two points of the curve; null if none does.
function between(curve, target) {
  for (let i = 0; i < curve.length; ++i) {
    const [factor, share] = curve[i];
    if (share < target) continue;
    if (i === 0) return factor;
    const [before, less] = curve[i - 1];
    return before * (factor / before) ** ((target - less) / (share - less));
  }
  return null;
}
