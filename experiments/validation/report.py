#!/usr/bin/env python3
"""Predicts the measured runs, and writes how far off the predictions are.

Nothing is fitted: each run is predicted with host = "linux" and with its own conditions (conditions.csv): congestion
control, where the queue of its uplink was and how long, and socket buffers.

  report.py            rewrites the figures in README.md between their two marks, and these files beside it:
                       errors.csv (each series, group of runs and quantity), predictions.csv (each run),
                       envelope.csv (the ranges that were tried), accuracy.csv (errors by network terms and latencies,
                       for fomoe simulate)
  report.py --check    writes nothing; exit status 1 if any of these files differs from what the runs give
"""
import argparse
import csv
import io
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

from cases import network_terms

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- figures: report.py -->\n", "<!-- end of figures -->\n"
QUANTITIES = ["wall_clock", "compute", "communication", "synchronization", "utilization", "first_round", "later_rounds"]
# Runs in runs/ whose names end so are series of their own.
SUFFIXES = {"-router": "router", "-shallow": "shallow", "-reno": "reno", "-quota0.4": "computed-quota",
            "-computed": "computed"}
TITLES = {"chosen": "chosen cases",
          "drawn": "drawn cases",
          "router": "one queue behind each site (`-router`)",
          "shallow": "one short queue behind each site (`-shallow`)",
          "reno": "TCP with Reno (`-reno`)",
          "computed": "real steps, predicted from a profile taken just before (`-computed`)",
          "computed-quota": "real steps at four sites with 0.4 cores each (`-quota0.4`)",
          "unequal": "latencies that differ (`unequal`)",
          "blind": "latencies that differ (`blind`)",
          "blind-2": "latencies that differ (`blind-2`)",
          "blind-3": "latencies, queues and socket buffers that differ (`blind-3`)",
          "blind-4": "the same, with 1 to 8 connections (`blind-4`)",
          "blind-5": "the same as `blind-4` (`blind-5`)",
          "blind-5-computed": "the same as `blind-4`, with real steps (`blind-5`)",
          "blind-6": "the same, fewer packets (`blind-6`)",
          "blind-6-computed": "the same, with real steps (`blind-6`)",
          "blind-7-computed": "real steps again (`blind-7`)",
          "system": "the system's socket buffers (`system`)"}
UNEQUAL = ["unequal", "blind", "blind-2", "blind-3", "blind-4", "blind-5", "blind-6", "blind-7"]
# Further runs of the cases of a series.
AGAIN = {"drawn": ["drawn-again"], "blind": ["blind-again"], "blind-2": ["blind-2-again"], "blind-5": ["blind-5-again"],
         "blind-7": ["blind-7-again"]}
COMPUTED = ["computed", "computed-quota", "blind-5-computed", "blind-6-computed", "blind-7-computed"]
LATE_S = 4e-4  # mean delay of the emulator's packets above which runs are shown apart


def fomoe(arguments, binary):
    done = subprocess.run([str(binary)] + [str(a) for a in arguments], capture_output=True, text=True, cwd=HERE)
    if done.returncode != 0:
        sys.exit(f"fomoe {arguments[0]}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


IDEAL = ("network_model.host=ideal",)


def settings_of(condition):
    return network_terms(*(condition[key] for key in ("congestion_control", "uplink_queue", "queue", "socket_buffers")))


def validated(runs, conditions, binary):
    """What fomoe validate says of each run, each with its own conditions; with ideal hosts if conditions is None."""
    groups = {}
    for run in runs:
        groups.setdefault(tuple(settings_of(conditions[run.stem])) if conditions else IDEAL, []).append(run)
    answers = []
    for settings, of in groups.items():
        words = [word for setting in settings for word in ("--set", setting)]
        answers += json.loads(fomoe(["validate", *of, *words, "--output", "-"], binary))["runs"]
    return sorted(answers, key=lambda run: run["run"])


def series(folders):
    """The files of each series."""
    members = {name: [] for name in TITLES}
    for run in sorted((HERE / "runs").glob("*.json")):
        members[next((name for suffix, name in SUFFIXES.items() if run.stem.endswith(suffix)), "chosen")].append(run)
    for name in folders:
        for run in sorted((HERE / name).glob("*.json")):
            paced = json.loads(run.read_text())["run"]["paced"]
            members[name if paced else f"{name}-computed"].append(run)
    return members


def late_runs(members):
    """The names of runs for which this machine was too busy to emulate the links in time. Repeated
    runs have the names of the first ones, so that the rows of conditions.csv are found by the identity of the run."""
    late = {row["id"] for row in csv.DictReader((HERE / "conditions.csv").open()) if float(row["relay_mean_late_s"]) > LATE_S}
    return {path.stem for paths in members.values() for path in paths if json.loads(path.read_text())["run"]["id"] in late}


def by_lateness(answers, late_names):
    """Errors of runs in which this machine delayed packets, and of all others."""
    groups = {True: [], False: []}
    for run in (run for runs in answers.values() for run in runs):
        groups[run["run"] in late_names].append(run["errors"]["wall_clock"])
    late, others = groups[True], groups[False]
    def text(errors):
        return f"({len(errors)}): {', '.join(percents(statistic(errors)))} %, bias {100 * statistics.median(errors):+.1f} %"

    return f"- Emulator late by more than {1e3 * LATE_S:g} ms on average {text(late)}; all others {text(others)}.\n"


def statistic(errors):
    """Median, p95 and worst of the sizes of errors."""
    sizes = sorted(abs(error) for error in errors)
    return statistics.median(sizes), sizes[math.ceil(0.95 * len(sizes)) - 1], sizes[-1]


def percents(shares):
    return [f"{100 * share:.1f}" for share in shares]


def csv_text(header, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def errors_csv(answers):
    """One row for each series, group of runs and quantity, in percent; for utilization in percentage points."""
    rows = []
    for name, runs in answers.items():
        groups = {"all": runs}
        for run in runs:
            groups.setdefault(run["bound"], []).append(run)
        for group, of in groups.items():
            for quantity in QUANTITIES:
                errors = [run["errors"][quantity] for run in of if run["errors"].get(quantity) is not None]
                if errors:
                    rows.append([name, group, len(errors), quantity, *percents(statistic(errors)),
                                 f"{100 * statistics.median(errors):+.1f}"])
    return csv_text(["series", "group", "runs", "error_of", "median", "p95", "worst", "bias"], rows)


def predictions_csv(answers):
    """One row for each run, errors in percent. Rounds that overlap have no duration of their own, so they have no errors."""
    rows = [[name, run["run"], f"{run['measured']['wall_clock_s']:.2f}", f"{run['predicted']['wall_clock_s']:.2f}",
             *("" if run["errors"].get(key) is None else f"{100 * run['errors'][key]:+.1f}"
               for key in ("wall_clock", "first_round", "later_rounds"))]
            for name, runs in answers.items() for run in runs]
    return csv_text(["series", "run", "measured_s", "predicted_s", "wall_clock_error", "first_round_error",
                     "later_rounds_error"], rows)


def waited_s(answer):
    """What a run takes beside computation, in seconds."""
    return answer["wall_clock_s"] * (1 - answer["compute_utilization"])


def waiting_error(run):
    return waited_s(run["predicted"]) / waited_s(run["measured"]) - 1


def like(answers, latencies):
    """The runs with equal or unequal latencies, by series, whose steps take a given time."""
    return {name: runs for name, runs in answers.items()
            if name not in COMPUTED and (name in UNEQUAL) == (latencies == "unequal")}


def accuracy_csv(answers, without_terms):
    """One row for each kind of network terms and latencies: errors in percent, of the wall clock and of all but computation."""
    rows = []
    for terms, of in (("none", without_terms), ("linux", answers)):
        for latencies in ("equal", "unequal"):
            runs = [run for of_series in like(of, latencies).values() for run in of_series]
            rows.append([terms, latencies, len(runs), *percents(statistic([run["errors"]["wall_clock"] for run in runs])),
                         percents(statistic([waiting_error(run) for run in runs]))[1]])
    return csv_text(["terms", "latencies", "runs", "median", "p95", "worst", "waiting_p95"], rows)


def coverage(answers):
    """How many runs of each series lie in the interval that the other series give, and how wide that is."""
    inside, widths = 0, []
    for latencies in ("equal", "unequal"):
        of = like(answers, latencies)
        for left_out, runs in of.items():
            p95 = statistic([waiting_error(run) for name, others in of.items() if name != left_out for run in others])[1]
            for run in runs:
                waits = waited_s(run["predicted"])
                computes = run["predicted"]["wall_clock_s"] - waits
                low, high = computes + waits / (1 + p95), computes + waits / (1 - p95)
                inside += low <= run["measured"]["wall_clock_s"] <= high
                widths.append((high - low) / run["measured"]["wall_clock_s"])
    return (f"- Intervals by other series' errors contain {100 * inside / len(widths):.1f} % of {len(widths)} runs; "
            f"widths: {', '.join(percents(statistic(widths)))} % of the wall clock.\n")


def table(answers, without_terms):
    lines = ["| series | runs | median | p95 | worst | bias | without network terms: median, p95, worst |",
             "|---|--:|--:|--:|--:|--:|---|"]
    for name, runs in answers.items():
        errors = [run["errors"]["wall_clock"] for run in runs]
        fluid = [run["errors"]["wall_clock"] for run in without_terms[name]]
        lines.append(f"| {TITLES[name]} | {len(runs)} | " + " | ".join(f"{x} %" for x in percents(statistic(errors)))
                     + f" | {100 * statistics.median(errors):+.1f} % | "
                     + ", ".join(f"{x} %" for x in percents(statistic(fluid))) + " |")
    return "\n".join(lines) + "\n"


def by_congestion_control(answers, conditions):
    """Errors of the runs with unequal latencies, by congestion control and by queue."""
    runs = [run for name in UNEQUAL for run in answers.get(name, [])]
    lines = []
    for key, values in (("congestion_control", ("cubic", "reno", "bbr")), ("uplink_queue", ("host", "router"))):
        for value in values:
            of = [run["errors"]["wall_clock"] for run in runs if conditions[run["run"]][key] == value]
            lines.append(f"{value} ({len(of)} runs) {', '.join(percents(statistic(of)))} %")
    return "- Latencies that differ: " + "; ".join(lines) + ".\n"


def repeated(first, folders):
    """How far runs of the same case differ from their mean: no prediction can be nearer to all of them."""
    of_case = {run["run"]: [run["measured"]["wall_clock_s"]] for run in first}
    for path in (path for folder in folders for path in sorted((HERE / folder).glob("*.json"))):
        of_case[path.stem].append(json.loads(path.read_text())["wall_clock_s"])
    clocks = {name: several for name, several in of_case.items() if len(several) == 1 + len(folders)}
    singly = [clock / statistics.mean(several) - 1 for several in clocks.values() for clock in several]
    errors = [run["predicted"]["wall_clock_s"] / statistics.mean(clocks[run["run"]]) - 1 for run in first if run["run"] in clocks]
    return f"{len(clocks)} | {', '.join(percents(statistic(singly)))} % | {', '.join(percents(statistic(errors)))} %"


def load_line(names):
    rows = [row for row in csv.DictReader((HERE / "conditions.csv").open()) if row["run"] in names]
    load = [float(row["load_before"]) for row in rows]
    late = [float(row["relay_mean_late_s"]) * 1e6 for row in rows]
    return (f"{len(rows)} runs on 2 cores; load average before a run: {min(load):.1f} to {max(load):.1f}, median "
            f"{statistics.median(load):.1f}; mean delay of the relay: {statistics.median(late):.0f} µs (median over runs; "
            f"largest {max(late):.0f} µs).\n")


def envelope(answers):
    """The ranges that were run, over all links between two sites; `fomoe simulate` says how far a case lies outside."""
    seen = {"sites": [], "bytes_per_s": [], "latency_s": [], "bytes_sent_per_site_per_round": []}
    methods = set()
    for run in (run for runs in answers.values() for run in runs):
        platform = run["scenario"]["platform"]
        up = {site["name"]: site["uplink_bytes_per_s"] for site in platform["sites"]}
        down = {site["name"]: site["downlink_bytes_per_s"] for site in platform["sites"]}
        seen["sites"].append(len(up))
        seen["bytes_per_s"] += [min(up[path["from"]], down[path["to"]]) for path in platform["paths"]]
        seen["latency_s"] += [path["latency_s"] for path in platform["paths"]]
        seen["bytes_sent_per_site_per_round"].append(run["measured"]["bytes_sent_per_site_per_round"])
        methods.add(run["scenario"]["strategy"]["method"])
    lines = ["quantity,low,high"] + [f"{key},{min(values):.7g},{max(values):.7g}" for key, values in seen.items()]
    return "\n".join(lines + [f"method,{name}," for name in sorted(methods)]) + "\n"


def figures(binary):
    """The text between the marks of README.md, and the content of each file beside it."""
    conditions = {row["run"]: row for row in csv.DictReader((HERE / "conditions.csv").open())}
    members = series(["drawn", *UNEQUAL, "system"])
    late_names = late_runs(members)
    answers = {name: validated(runs, conditions, binary) for name, runs in members.items()}
    without_terms = {name: validated(runs, None, binary) for name, runs in members.items()}
    text = load_line({run.stem for runs in members.values() for run in runs}) + "\n"
    text += table(answers, without_terms) + "\nEach triple is the median, the p95 and the worst value:\n\n"
    text += by_congestion_control(answers, conditions)
    text += by_lateness(answers, late_names)
    text += coverage(answers)
    text += ("\n| repeated series | cases | single runs differ from the case's mean by | predictions by |\n"
             "|---|--:|---|---|\n")
    for name, folders in AGAIN.items():
        first = answers.get(name, []) + answers.get(f"{name}-computed", [])
        text += f"| `{name}` | {repeated(first, folders)} |\n"
    return text, {"errors.csv": errors_csv(answers), "predictions.csv": predictions_csv(answers),
                  "envelope.csv": envelope(answers), "accuracy.csv": accuracy_csv(answers, without_terms)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", type=Path, default=ROOT / "build/release/bin/fomoe", help="the program")
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    arguments = parser.parse_args()
    before, rest = (HERE / "README.md").read_text().split(BEGIN)
    text, wanted = figures(arguments.fomoe.resolve())
    wanted["README.md"] = before + BEGIN + text + END + rest.split(END)[1]
    stale = [name for name, content in wanted.items()
             if not (HERE / name).exists() or (HERE / name).read_text() != content]
    if arguments.check:
        if stale:
            print(f"{', '.join(stale)}: different from what the runs give; run report.py to update", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        temporary = HERE / (name + ".tmp")
        temporary.write_text(wanted[name])
        temporary.replace(HERE / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
