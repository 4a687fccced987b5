// Numbers as text, in the same form as the command line prints them (experiments/text/human.cpp), and values with
// units as the scenario reads them.
"use strict";

const digits = (value, count) => String(Number(value.toPrecision(count)));
// The same with an exponent for what is tiny or huge, as "{:.4g}" has it.
function general(value, count) {
  const rounded = Number(value.toPrecision(count)), size = Math.abs(rounded);
  if (rounded === 0 || (size >= 1e-4 && size < 10 ** count)) return String(rounded);
  const [mantissa, exponent] = rounded.toExponential().split("e");
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

function scaled(value, prefixes, unit) {
  let i = 0;
  while (i + 1 < prefixes.length && Math.abs(value) >= 999.95) { value /= 1000; ++i; }
  return general(value, 4) + (prefixes[i] || unit ? " " : "") + prefixes[i] + unit;
}
const humanBytes = (bytes) => scaled(bytes, ["", "k", "M", "G", "T", "P", "E"], "B");
const humanCount = (count) => scaled(count, ["", "k", "M", "G", "T", "P", "E"], "");
const humanRate = (bytesPerSecond) => scaled(bytesPerSecond * 8, ["", "k", "M", "G", "T", "P"], "b/s");

function humanTime(seconds) {
  if (seconds < 1e-9) return "0 s";
  if (seconds < 0.9995e-3) return general(seconds * 1e6, 3) + " us";
  if (seconds < 0.9995) return general(seconds * 1e3, 3) + " ms";
  if (seconds < 119.95) return general(seconds, 4) + " s";
  const split = (big, small, bigName, smallName) => {
    const parts = Math.round(seconds / small), each = big / small;
    return `${Math.floor(parts / each)} ${bigName} ${parts % each} ${smallName}`;
  };
  if (seconds < 3599.5) return split(60, 1, "min", "s");
  if (seconds > 86400e6) return humanCount(seconds / 86400) + " d";
  if (seconds < 2 * 86400 - 30) return split(3600, 60, "h", "min");
  return split(86400, 3600, "d", "h");
}

function humanPercent(share) {
  const percent = Math.abs(share) < 1e-9 ? 0 : share * 100;
  return percent >= 10 ? percent.toFixed(1) + " %" : general(percent, 3) + " %";
}

function humanMoney(amount, currency) {
  const large = Math.abs(amount) >= 999.995;
  return (large ? Math.round(amount).toLocaleString("en-US") : amount.toFixed(2)) + (currency ? " " + currency : "");
}

// Units of an axis: [size, name].
function timeUnit(most) {
  return most < 1e-3 ? [1e-6, "us"] : most < 1 ? [1e-3, "ms"] : most < 120 ? [1, "s"] : most < 7200 ? [60, "min"]
    : most < 172800 ? [3600, "h"] : [86400, "d"];
}
function bytesUnit(most) {
  const names = ["B", "kB", "MB", "GB", "TB", "PB"];
  let i = 0, size = 1;
  while (i + 1 < names.length && most >= size * 1000) { size *= 1000; ++i; }
  return [size, names[i]];
}

// A number in SI units as the scenario takes it: 1.25e8 of the unit "rate" is "1Gbps".
const kUnits = {
  rate: [[1.25e11, "Tbps"], [1.25e8, "Gbps"], [1.25e5, "Mbps"], [125, "kbps"]],
  time: [[1, "s"], [1e-3, "ms"], [1e-6, "us"]],
};
function written(value, control) {
  if (control.unit === "rate" || control.unit === "time") {
    const units = kUnits[control.unit];
    const [size, name] = units.find(([size]) => value >= size * 0.9995) || units.at(-1);
    return digits(value / size, 3) + name;
  }
  if (control.unit === "share") return digits(value * 100, 3) + "%";
  if (control.whole && value >= 1e6) {  // 20e9, as people write numbers of tokens
    const power = 3 * Math.floor(Math.log10(value * 1.000001) / 3), text = digits(value / 10 ** power, 6);
    return `${text}e${power}`;
  }
  if (control.whole) return String(Math.round(value));
  return digits(value, 3);
}
// The number that a text means, for the position of the slider only; the reader of the scenario checks the text.
function meant(text, control) {
  const found = /^\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-zA-Z%]*)\s*$/.exec(text);
  if (!found) return NaN;
  const number = Number(found[1]);
  if (control.unit === "share") return found[2] === "%" ? number / 100 : number;
  if (!(control.unit in kUnits)) return number;
  const sizes = Object.fromEntries(kUnits[control.unit].map(([size, name]) => [name, size]));
  Object.assign(sizes, control.unit === "time" ? {min: 60, h: 3600} : {bps: 0.125, GBps: 1e9, MBps: 1e6, TBps: 1e12});
  return number * (sizes[found[2]] ?? NaN);
}

const kMarks = ["50 %", "80 %", "90 %", "95 %", "99 %"];
const kTargets = [0.5, 0.8, 0.9, 0.95, 0.99];  // experiments/explore/formula.hpp

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value; else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Fills a table: `columns` are titles, `rows` are lists of texts or nodes; the first cell of a row is its heading.
function fillTable(table, columns, rows) {
  const head = element("tr", {}, ...columns.map((title, i) =>
    element("th", {scope: "col", className: i ? "number" : ""}, title)));
  const body = rows.map((row) => element("tr", {className: row.mark ? "marked" : ""}, ...(row.cells || row).map((cell, i) =>
    i ? element("td", {className: "number"}, cell) : element("th", {scope: "row"}, cell))));
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}
