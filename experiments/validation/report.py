#!/usr/bin/env python3
"""Predicts the measured runs, and writes how far off the predictions are.

The chosen runs that can be calibrated with are sorted by name; the network terms (network-bbr.toml) are fitted to every
other one. All other runs are predicted with these terms: the rest of the chosen runs, the runs whose synchronisation
overlaps with compute, the series with other queues, with Reno and with real steps, and the drawn cases, which were run
twice (drawn/ and drawn-again/).

  report.py            rewrites the figures in README.md between their two marks, and these files beside it:
                       errors.csv (each series, group and quantity), predictions.csv (each drawn case),
                       network-bbr.toml (the fitted terms), envelope.csv (the ranges that were tried),
                       accuracy.csv (errors by network terms and latencies, for fomoe simulate)
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
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- figures: report.py -->\n", "<!-- end of figures -->\n"
# These terms are known, so they are given instead of fitted. Headers take 52 of each packet's 1500 bytes, and every
# second segment of the other direction is acknowledged by 52 more: 1448 / 1526. Linux starts with 10 segments, and
# halves windows of idle connections, except BBR's. checks/ shows that the relay's latency is the one asked for.
GIVEN = [word for term in ("bandwidth_efficiency=0.949", "initial_window=14480B", "idle_restart=true",
                           "congestion_control=bbr")
         for word in ("--set", "network_model." + term)]
QUANTITIES = ["wall_clock", "compute", "communication", "synchronization", "utilization", "first_round", "later_rounds"]
# The groups of errors.csv; of other series the group of all runs.
BOUNDS = ["all", "compute-bound", "communication-bound", "overlapped"]
GROUPS = {"chosen": [*BOUNDS, "ddp", "diloco", "fomoe", "local_adamw", "streaming_diloco"], "drawn": BOUNDS}
# Runs whose names end so are series of their own.
SUFFIXES = {"-router": "router", "-shallow": "shallow", "-reno": "reno", "-quota0.4": "computed-quota",
            "-computed": "computed"}
TITLES = {"chosen": "chosen runs that were not used for the fit",
          "drawn": "drawn cases",
          "router": "one queue behind each site for all its connections (`-router`)",
          "shallow": "one short queue behind each site, which loses packets (`-shallow`)",
          "reno": "TCP with Reno, with the terms fitted to BBR (`-reno`)",
          "computed": "real steps, predicted from a profile taken just before (`-computed`)",
          "computed-quota": "real steps at four sites with 0.4 cores each (`-quota0.4`)"}


def fomoe(arguments, binary):
    done = subprocess.run([str(binary)] + [str(a) for a in arguments], capture_output=True, text=True, cwd=HERE)
    if done.returncode != 0:
        sys.exit(f"fomoe {arguments[0]}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def halves(runs):
    """The runs to fit and the runs to predict. Overlapped runs do not show how long a transfer takes by itself, so they
    are predicted only."""
    usable = [run for run in runs if not run.name.startswith("streaming")]
    return usable[::2], [run for run in runs if run not in usable[::2]]


def validated(runs, network, binary, settings=()):
    more = ["--network-model", network] if network else []
    more += [word for setting in settings for word in ("--set", "network_model." + setting)]
    return json.loads(fomoe(["validate", *runs, *more, "--output", "-"], binary))


def congestion_of(run, conditions):
    return conditions[run.stem]["congestion_control"]


def accuracy_csv(equal, unequal, network, binary):
    """One row for each kind of network terms and latencies: the errors of the wall clock in percent. Each run is
    predicted with its own congestion control and with send buffers as large as they were. `network` is the file of the fitted terms."""
    conditions = {row["run"]: row for row in csv.DictReader((HERE / "conditions.csv").open())}
    rows = []
    for terms, file, settings in (("none", None, []), ("linux", None, ["host=linux", "send_buffer=1GB"]), ("fitted", network, [])):
        for latencies, runs in (("equal", equal), ("unequal", unequal)):
            errors = []
            for congestion in sorted({congestion_of(run, conditions) for run in runs}):
                of = [run for run in runs if congestion_of(run, conditions) == congestion]
                control = [] if terms == "none" else [f"congestion_control={congestion}"]
                errors += [abs(run["errors"]["wall_clock"])
                           for run in validated(of, file, binary, settings + control)["runs"]]
            errors.sort()
            triple = statistics.median(errors), errors[math.ceil(0.95 * len(errors)) - 1], errors[-1]
            rows.append([terms, latencies, len(errors), *(f"{100 * error:.1f}" for error in triple)])
    return csv_text(["terms", "latencies", "runs", "median", "p95", "worst"], rows)


def percent(share, unit="%"):
    return f"{100 * share:.1f} {unit}"


def csv_text(header, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def errors_csv(answers):
    """One row for each series, group of runs and quantity, in percent; for utilization in percentage points."""
    columns = ["median", "p95", "worst"]
    rows = [[series, group["name"], group["runs"], quantity, *(f"{100 * errors[column]:.1f}" for column in columns),
             f"{100 * errors['bias']:+.1f}", errors["worst_run"]]
            for series, answer in answers.items() for group in answer["groups"] for quantity in QUANTITIES
            if group["name"] in GROUPS.get(series, ["all"]) and (errors := group["errors"].get(quantity)) is not None]
    return csv_text(["series", "group", "runs", "error_of", *columns, "bias", "worst_run"], rows)


def predictions_csv(answer):
    """One row for each drawn case, errors in percent."""
    rows = []
    for run in answer["runs"]:
        scenario = run["scenario"]
        errors = [run["errors"][quantity] for quantity in ("wall_clock", "first_round", "later_rounds")]
        rows.append([run["run"], len(scenario["platform"]["sites"]), scenario["strategy"]["local_steps"],
                     f"{run['measured']['wall_clock_s']:.2f}", f"{run['predicted']['wall_clock_s']:.2f}",
                     # Rounds that overlap have no duration of their own, so they have no errors.
                     *("" if error is None else f"{100 * error:+.1f}" for error in errors)])
    return csv_text(["run", "sites", "local_steps", "measured_s", "predicted_s", "wall_clock_error", "first_round_error",
                     "later_rounds_error"], rows)


def wall_clock_table(answers, without_terms):
    lines = ["| series | runs | median | p95 | worst | bias | worst run | without network terms: median, p95, worst |",
             "|---|--:|--:|--:|--:|--:|---|---|"]
    for series, answer in answers.items():
        errors = answer["groups"][0]["errors"]["wall_clock"]
        fluid = without_terms[series]["groups"][0]["errors"]["wall_clock"]
        lines.append(f"| {TITLES[series]} | {answer['groups'][0]['runs']} | "
                     + " | ".join(percent(errors[key]) for key in ("median", "p95", "worst"))
                     + f" | {100 * errors['bias']:+.1f} % | {errors['worst_run']} | "
                     + ", ".join(percent(fluid[key]) for key in ("median", "p95", "worst")) + " |")
    return "\n".join(lines) + "\n"


def spread(shares):
    shares = sorted(abs(share) for share in shares)
    return ", ".join(percent(share) for share in (
        statistics.median(shares), shares[math.ceil(0.95 * len(shares)) - 1], shares[-1]))


def synchronous(series, runs):
    """Wall clock of the runs that do not overlap; synchronization of those that communicate for 30 % of the time."""
    runs = [run for run in runs if run["bound"] != "overlapped"]
    busy = [run for run in runs if run["bound"] == "communication-bound"]
    return (f"- The {len(runs)} {series} runs without overlap: wall clock "
            f"{spread(run['errors']['wall_clock'] for run in runs)}; synchronization of the {len(busy)} runs among "
            f"them that communicate for 30 % of the time or more: {spread(run['errors']['synchronization'] for run in busy)}.\n")


def repeated(first, second):
    """How far two runs of the same case differ: no prediction can be nearer to both."""
    pairs = [(one, other) for one in first for other in second if one["run"] == other["run"]]
    clocks = [(one["measured"]["wall_clock_s"], other["measured"]["wall_clock_s"]) for one, other in pairs]
    predicted = [one["predicted"]["wall_clock_s"] for one, _ in pairs]
    return (f"- {len(pairs)} drawn cases were run twice (`drawn-again/`). Second runs differ from first runs by "
            f"{spread(b / a - 1 for a, b in clocks)}; predictions differ from second runs by "
            f"{spread(p / b - 1 for p, (_, b) in zip(predicted, clocks))}, and from the mean of both runs by "
            f"{spread(2 * p / (a + b) - 1 for p, (a, b) in zip(predicted, clocks))}.\n")


def load_line(names):
    rows = [row for row in csv.DictReader((HERE / "conditions.csv").open()) if row["run"] in names]
    load = [float(row["load_before"]) for row in rows]
    late = [float(row["relay_mean_late_s"]) * 1e6 for row in rows]
    return (f"{len(rows)} runs on 2 cores, each drawn case twice; load average before a run: "
            f"{min(load):.1f} to {max(load):.1f}, median {statistics.median(load):.1f}; mean delay of "
            f"the relay: {statistics.median(late):.0f} µs (median over runs; largest {max(late):.0f} µs). "
            f"`conditions.csv` has the conditions of each run.\n")


def envelope(answers):
    """The ranges that were run, over all links between two sites; `fomoe simulate` says how far a case lies outside."""
    seen = {"sites": [], "bytes_per_s": [], "latency_s": [], "bytes_sent_per_site_per_round": []}
    methods = set()
    for run in (run for answer in answers for run in answer["runs"]):
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
    runs, drawn, again = (sorted((HERE / folder).glob("*.json")) for folder in ("runs", "drawn", "drawn-again"))
    fitted_to, held_out = halves([run for run in runs if not run.stem.endswith(tuple(SUFFIXES))])
    members = {"chosen": held_out, "drawn": drawn}
    members |= {SUFFIXES[suffix]: [run for run in runs if run.stem.endswith(suffix)] for suffix in SUFFIXES}
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "network-bbr.toml"
        fomoe(["calibrate", *fitted_to, "--terms", "call_overhead,payload_rate", *GIVEN, "--output", network], binary)
        terms = network.read_text()
        drawn_unequal = sorted([*(HERE / "unequal").glob("*.json"), *(HERE / "blind").glob("*.json")])
        reno = [run for run in runs if run.stem.endswith("-reno")]
        accuracy = accuracy_csv(held_out + drawn + reno, drawn_unequal, network, binary)
        answers = {series: validated(members[series], network, binary) for series in TITLES}
        second_runs = validated(again, network, binary)["runs"]
    without_terms = {series: validated(members[series], None, binary) for series in TITLES}
    text = load_line({run.stem for run in runs + drawn})
    text += f"\n{len(fitted_to)} of the chosen runs were used for the fit (`network-bbr.toml`).\n\n### Wall clock\n\n"
    text += wall_clock_table(answers, without_terms) + "\nEach triple is the median, the p95 and the worst value:\n\n"
    text += "".join(synchronous(series, answers[series]["runs"]) for series in ("chosen", "drawn"))
    text += repeated(answers["drawn"]["runs"], second_runs)
    ranges = [*answers.values(), validated(fitted_to, None, binary), validated(drawn_unequal, None, binary)]
    return text, {"errors.csv": errors_csv(answers), "predictions.csv": predictions_csv(answers["drawn"]),
                  "network-bbr.toml": terms, "envelope.csv": envelope(ranges), "accuracy.csv": accuracy}


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
