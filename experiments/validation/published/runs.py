#!/usr/bin/env python3
"""Predicts the published runs of runs.csv, and prints them beside what was published.

  runs.py              runs every scenario, in up to half an hour, and rewrites the predictions in runs.csv and the tables in README.md
  runs.py --check      writes nothing; exit status 1 if a prediction in runs.csv is more than 1 % off
  runs.py --only ID    runs the rows whose id starts with ID

A row has a scenario, and possibly a traffic plan and further settings ("key=value", separated by spaces). `quantity` says what is compared:

  step_s                 duration of a round
  communication_s        time of the transfers of a round
  later_communication_s  the same without the first round, in which connections are new
  rate_bit_per_s         bytes of a single transfer / its time
  compute_utilization    share of the time in which GPUs compute

A row with `set2` is a range: the prediction lies between those of both settings.
"""
import argparse
import concurrent.futures
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "runs.csv"
PAGE = HERE / "README.md"
BEGIN, END = "<!-- table: runs.py -->\n", "<!-- end of table -->\n"
FIELDS = ["id", "system", "run", "status", "scenario", "plan", "set", "set2", "quantity", "published", "published_low", "published_high",
          "predicted", "predicted_low", "predicted_high", "ratio", "known", "source", "inferred", "why"]
SECONDS = 300    # the longest time that one simulation may take
TOLERANCE = 0.01


def read_rows():
    with open(TABLE, newline="") as file:
        return list(csv.DictReader(file))


def write_rows(rows):
    temporary = TABLE.with_suffix(".tmp")
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    temporary.replace(TABLE)


def simulate(binary, row, settings):
    """The report of one scenario, as a row of CSV: JSON would also have a curve over bandwidth, which takes many simulations."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.csv"
        command = [str(binary), "simulate", str(HERE / "scenarios" / row["scenario"]), "--sensitivity", "none", "--output", str(report)]
        if row["plan"]:
            command += ["--traffic-plan", str(HERE / "plans" / row["plan"])]
        for setting in settings.split():
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=lambda: os.nice(max(0, 10 - os.nice(0))))
        if done.returncode != 0:
            raise RuntimeError(f"{row['id']}: exit status {done.returncode}\n{' '.join(command)}\n{done.stderr}")
        with open(report, newline="") as file:
            return next(csv.DictReader(file))


def value_of(report, quantity):
    duration, compute, communication, first, count = (
        float(report[f"round_{name}"]) for name in ("duration_s", "compute_s", "communication_s", "first_duration_s", "count"))
    if quantity == "step_s":
        return duration
    if quantity == "communication_s":
        return communication
    if quantity == "later_communication_s":
        return ((duration * count - first) / (count - 1) if first > 0 else duration) - compute
    if quantity == "rate_bit_per_s":
        return 8 * float(report["bytes_sent_per_site_per_round"]) * float(report["sites"]) / communication
    if quantity == "compute_utilization":
        return float(report["compute_utilization"])
    raise ValueError(f"unknown quantity {quantity}")


def number(value):
    return f"{value:.5g}"


def predict(binary, row):
    """Fills in the predictions of a row."""
    row = dict(row, predicted="", predicted_low="", predicted_high="", ratio="")
    if not row["scenario"]:
        return row
    report = simulate(binary, row, row["set"])
    value = value_of(report, row["quantity"])
    if row["set2"]:
        other = value_of(simulate(binary, row, row["set2"]), row["quantity"])
        row["predicted_low"], row["predicted_high"] = (number(x) for x in sorted((value, other)))
        return row
    row["predicted"] = number(value)
    if row["published"]:
        row["ratio"] = f"{value / float(row['published']):.3f}"
    return row


def differs(old, new):
    for key in ("predicted", "predicted_low", "predicted_high"):
        if bool(old[key]) != bool(new[key]):
            return True
        if key == "predicted" or new["set2"]:
            if old[key] and abs(float(new[key]) / float(old[key]) - 1) > TOLERANCE:
                return True
    return False


def text(row):
    published = row["published"] or "-".join(x for x in (row["published_low"], row["published_high"]) if x) or "not read"
    predicted = row["predicted"] or "-".join(x for x in (row["predicted_low"], row["predicted_high"]) if x) or row["status"]
    return f"{row['id']:44} {row['quantity']:22} {published:>12} {predicted:>18} {row['ratio']:>7} {row['known']}"


def page(rows):
    """README.md with its tables rewritten."""
    lines = ["| system | rows | predicted / published: median, smallest, largest | within 15 % | not known before |", "|---|--:|---|--:|--:|"]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    for system in systems:
        ratios = [float(row["ratio"]) for row in rows if row["system"] == system and row["ratio"]]
        unknown = sum(row["known"] == "no" for row in rows if row["system"] == system and row["ratio"])
        if ratios:
            near = sum(abs(ratio - 1) <= 0.15 for ratio in ratios)
            lines.append(f"| {system} | {len(ratios)} | {statistics.median(ratios):.2f}, {min(ratios):.2f}, {max(ratios):.2f} | {near} | {unknown} |")
    lines += ["", "Ranges, where an input is known as a range only:", "", "| run | published, s | predicted, s |", "|---|--:|--:|"]
    lines += [f"| {row['system']}, {row['run']} | {row['published']} | {float(row['predicted_low']):.0f} to {float(row['predicted_high']):.0f} |"
              for row in rows if row["status"] == "range" and row["predicted_low"]]
    lines += ["", "Runs that cannot be predicted from what could be read:", "", "| run | what is missing |", "|---|---|"]
    lines += [f"| {row['system']}: {row['run']} | {row['why'].removeprefix('Missing: ')} |" for row in rows if row["status"] == "missing"]
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    parser.add_argument("--only", default="", help="rows whose id starts with this")
    parser.add_argument("--jobs", type=int, default=1, help="simulations at the same time")
    parser.add_argument("--fomoe", type=lambda path: Path(path).resolve(), default=HERE.parents[2] / "build/release/bin/fomoe", help="the program")
    arguments = parser.parse_args()
    rows = read_rows()
    chosen = [i for i, row in enumerate(rows) if row["id"].startswith(arguments.only)]
    stale = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for i, row in zip(chosen, pool.map(lambda i: predict(arguments.fomoe, rows[i]), chosen)):
            print(text(row), flush=True)
            if differs(rows[i], row):
                stale.append(row["id"])
            if not arguments.check:
                rows[i] = row
                write_rows(rows)
    if not arguments.check:
        PAGE.write_text(page(rows))
    elif stale or PAGE.read_text() != page(rows):
        sys.exit(f"predictions that have changed: {', '.join(stale)}" if stale else f"{PAGE}: different from the output of {__file__}")


if __name__ == "__main__":
    main()
