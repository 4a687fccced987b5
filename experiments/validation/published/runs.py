#!/usr/bin/env python3
"""Predicts the published runs of runs.csv, and prints them beside what was published.

  runs.py              runs every scenario, and rewrites the predictions in runs.csv and the table in README.md
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
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "runs.csv"
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
    """The report of one scenario."""
    command = [str(binary), "simulate", str(HERE / "scenarios" / row["scenario"]), "--sensitivity", "none", "--output", "-"]
    if row["plan"]:
        command += ["--traffic-plan", str(HERE / "plans" / row["plan"])]
    for setting in settings.split():
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=HERE, preexec_fn=lambda: os.nice(10))
    if done.returncode != 0:
        raise RuntimeError(f"{row['id']}: exit status {done.returncode}\n{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def value_of(report, quantity):
    means = report["round"]
    if quantity == "step_s":
        return means["duration_s"]
    if quantity == "communication_s":
        return means["communication_s"]
    if quantity == "later_communication_s":
        first, count = means.get("first_duration_s") or means["duration_s"], means["count"]
        return (means["duration_s"] * count - first) / (count - 1) - means["compute_s"]
    if quantity == "rate_bit_per_s":
        return 8 * report["sites"][0]["bytes_sent"] / means["count"] / means["communication_s"]
    if quantity == "compute_utilization":
        return report["compute_utilization"]
    raise ValueError(f"unknown quantity {quantity}")


def range_of(report, quantity):
    """The range of a prediction for small delays, where the program gives one for a round."""
    spread = report.get("wall_clock_range_s")
    if not spread or quantity not in ("step_s", "communication_s", "later_communication_s"):
        return None
    fixed = report["round"]["compute_s"] if quantity != "step_s" else 0
    count = report["round"]["count"]
    return spread[0] / count - fixed, spread[1] / count - fixed


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
    spread = range_of(report, row["quantity"])
    if spread:
        row["predicted_low"], row["predicted_high"] = number(min(spread[0], value)), number(max(spread[1], value))
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
    if arguments.check and stale:
        sys.exit(f"predictions that have changed: {', '.join(stale)}")


if __name__ == "__main__":
    main()
