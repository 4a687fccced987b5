#!/usr/bin/env python3
"""Recomputes the figures in README.md, between its two marks, from the raw runs in runs/.

Half of the runs that can be calibrated with, every other one by name, are what the network terms are fitted
to (network-bbr.toml); the other half, all that overlap, the series with other queues, with Reno and with real
steps, and the cases drawn by chance (drawn/, and run a second time: drawn-again/) are predicted with these terms.

  report.py            rewrites README.md, network-bbr.toml and envelope.csv: the ranges that were tried
  report.py --check    exit status 1 where README.md has other figures than the runs give
"""
import argparse
import csv
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
# What is known and not fitted: headers take 52 of 1500 bytes, and every second segment of the other direction is
# acknowledged by 52 more: 1448 / 1526; Linux starts with 10 segments, its send buffers grow to 4 MiB at most
# (tcp_wmem), the relay's latency is what was asked (checks/).
GIVEN = [word for term in ("bandwidth_efficiency=0.949", "initial_window=14480B", "early_receives=true",
                           "send_buffer=4MiB", "congestion_control=bbr")
         for word in ("--set", "network_model." + term)]
BOUNDS = ["all", "compute-bound", "communication-bound", "overlapped"]
SHOWN = ["wall_clock", "compute", "communication", "synchronization", "utilization", "first_round", "later_rounds"]


def fomoe(arguments, binary):
    done = subprocess.run([str(binary)] + [str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, cwd=HERE)
    if done.returncode != 0:
        sys.exit(f"fomoe {arguments[0]}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def halves(runs):
    """Overlapped runs tell nothing of how long one transfer takes by itself: they are predicted only."""
    usable = [run for run in runs if not run.name.startswith("streaming")]
    return usable[::2], [run for run in runs if run not in usable[::2]]


def validated(runs, network, binary):
    more = ["--network-model", network] if network else []
    return json.loads(fomoe(["validate", *runs, *more, "--output", "-"], binary))


def errors_table(answer):
    lines = ["| runs | | error of | median | p95 | worst | bias | worst run |", "|---|---|---|---|---|---|---|---|"]
    for group in answer["groups"]:
        for quantity in SHOWN:
            e = group["errors"].get(quantity)
            if e is None:
                continue
            unit = "pt" if quantity == "utilization" else "%"
            first = quantity == SHOWN[0]
            cells = [f"{100 * e[k]:.1f} {unit}" for k in ("median", "p95", "worst")]
            lines.append(f"| {group['name'] if first else ''} | {group['runs'] if first else ''} | {quantity} | "
                         + " | ".join(cells) + f" | {100 * e['bias']:+.1f} {unit} | {e['worst_run']} |")
    return "\n".join(lines) + "\n"


def runs_table(answer):
    """Each run with what was drawn for it."""
    lines = ["", "| run | sites | K | measured | predicted | wall clock | first round | later rounds |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for run in answer["runs"]:
        scenario = run["scenario"]
        errors = [run["errors"][key] for key in ("wall_clock", "first_round", "later_rounds")]
        errors = ["" if error is None else f"{100 * error:+.1f} %" for error in errors]  # none: rounds overlap
        lines.append(f"| {run['run']} | {len(scenario['platform']['sites'])} | {scenario['strategy']['local_steps']} | "
                     f"{run['measured']['wall_clock_s']:.2f} s | {run['predicted']['wall_clock_s']:.2f} s | "
                     + " | ".join(errors) + " |")
    return "\n".join(lines) + "\n"


def short(answer):
    group = answer["groups"][0]
    e = group["errors"]["wall_clock"]
    return f"{100 * e['median']:.1f} %, {100 * e['p95']:.1f} %, {100 * e['worst']:.1f} %"


def spread(shares):
    shares = sorted(abs(share) for share in shares)
    return ", ".join(f"{100 * share:.1f} %" for share in (
        statistics.median(shares), shares[math.ceil(0.95 * len(shares)) - 1], shares[-1]))


def synchronous(runs):
    """Wall clock of runs that do not overlap, and synchronization of those that communicate for 30 % of a round or more."""
    runs = [run for run in runs if run["bound"] != "overlapped"]
    busy = [run for run in runs if run["bound"] == "communication-bound"]
    if not busy:
        return ""
    return (f"Of the {len(runs)} that do not overlap, median, p95 and worst: wall clock "
            f"{spread(run['errors']['wall_clock'] for run in runs)}; synchronization, of the {len(busy)} that communicate for "
            f"30 % of the time or more, {spread(run['errors']['synchronization'] for run in busy)}.\n\n")


def repeated(first, second):
    """What a run's wall clock says about another run of the same case: less error than that nobody can predict."""
    pairs = [(one, other) for one in first for other in second if one["run"] == other["run"]]
    clocks = [(one["measured"]["wall_clock_s"], other["measured"]["wall_clock_s"]) for one, other in pairs]
    predicted = [one["predicted"]["wall_clock_s"] for one, _ in pairs]
    return (f"{len(pairs)} cases were run twice (`drawn-again/`). Median, p95 and worst: second runs differ from first ones by "
            f"{spread(b / a - 1 for a, b in clocks)}; predictions differ from second runs by "
            f"{spread(p / b - 1 for p, (_, b) in zip(predicted, clocks))}, from the mean of both by "
            f"{spread(2 * p / (a + b) - 1 for p, (a, b) in zip(predicted, clocks))}.\n\n")


def load_line(names):
    rows = [row for row in csv.DictReader((HERE / "conditions.csv").open()) if row["run"] in names]
    load = [float(row["load_before"]) for row in rows]
    late = [float(row["relay_mean_late_s"]) * 1e6 for row in rows]
    return (f"{len(rows)} runs on 2 cores, drawn ones twice; load average before a run {min(load):.1f} to {max(load):.1f}, median "
            f"{statistics.median(load):.1f}; the relay was {statistics.median(late):.0f} µs late on average "
            f"(median over runs; the latest {max(late):.0f} µs). Conditions of each run: `conditions.csv`.\n")


def envelope(answers):
    """Ranges of what was run, of all links between two sites; `fomoe simulate` says how far a case lies outside."""
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


def wall_clocks(after, before):
    return (f"Wall clock, median, p95 and worst error: {short(after)}; without any term of `[network_model]`: "
            f"{short(before)}.\n\n")


def figures(binary):
    runs = sorted((HERE / "runs").glob("*.json"))
    drawn = sorted((HERE / "drawn").glob("*.json"))
    text = load_line({run.stem for run in runs + drawn})
    apart = {"-router": "One queue for all connections behind each site, predicted with the same terms",
             "-shallow": "Such queues of one product of rate and round trip, which lose packets, predicted with the same terms",
             "-reno": "TCP with Reno, predicted with the terms that were fitted to BBR",
             "-quota0.4": "Steps computed for real at four sites of 0.4 cores each, predicted from a profile taken there",
             "-computed": "Steps computed for real, predicted from a profile measured just before each run"}
    written, answers = {}, []
    fitted_to, held_out = halves([run for run in runs if not run.stem.endswith(tuple(apart))])
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "network-bbr.toml"
        fomoe(["calibrate", *fitted_to, "--terms", "call_overhead,payload_rate",
               *GIVEN, "--output", network], binary)
        written[network.name] = network.read_text()
        shown = written[network.name].split("\n[calibration]")[0]
        text += f"\n### TCP with BBR: {len(fitted_to)} runs to fit, {len(held_out)} to predict\n\n"
        text += f"```toml\n{shown}```\n\n"
        before, after = validated(held_out, None, binary), validated(held_out, network, binary)
        text += wall_clocks(after, before) + synchronous(after["runs"]) + errors_table(after)
        answers += [after, validated(fitted_to, None, binary)]
        if drawn:
            text += f"\n### Cases drawn by chance, predicted with the same terms: {len(drawn)} runs\n\n"
            before, after = validated(drawn, None, binary), validated(drawn, network, binary)
            again = sorted((HERE / "drawn-again").glob("*.json"))
            text += wall_clocks(after, before) + synchronous(after["runs"])
            text += repeated(after["runs"], validated(again, network, binary)["runs"]) if again else ""
            text += errors_table({"groups": [
                group for group in after["groups"] if group["name"] in BOUNDS]}) + runs_table(after)
            answers.append(after)
        for suffix, title in apart.items():
            members = [run for run in runs if run.stem.endswith(suffix)]
            before, after = validated(members, None, binary), validated(members, network, binary)
            text += f"\n### {title}: {len(members)} runs\n\n" + wall_clocks(after, before)
            text += errors_table({"groups": after["groups"][:1]})
            answers.append(after)
    written["envelope.csv"] = envelope(answers)
    return text, written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", type=Path, default=ROOT / "build/release/bin/fomoe", help="the program")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    readme = HERE / "README.md"
    page = readme.read_text()
    before, rest = page.split(BEGIN)
    old, after = rest.split(END)
    text, models = figures(arguments.fomoe.resolve())
    if arguments.check:
        if text != old:
            print("README.md has other figures than the runs give: run report.py", file=sys.stderr)
        return 0 if text == old else 1
    for name, model in models.items():
        (HERE / name).write_text(model)
    temporary = readme.with_suffix(".md.tmp")
    temporary.write_text(before + BEGIN + text + END + after)
    temporary.replace(readme)
    return 0


if __name__ == "__main__":
    sys.exit(main())
