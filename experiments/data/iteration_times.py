#!/usr/bin/env python3
"""Predicts the iteration times of Megatron-LM on 8 B200 whose memory is in measured_memory.csv, and compares them with the measured ones.

    experiments/data/iteration_times.py [--fomoe PROGRAM]     prints the table, and writes predicted_ms into iteration_times.csv

Every run has the same assumptions: kernel_efficiency 0.4, which is what one run reaches (70b-tp1-pp2, the row `built`), and NVLink's
900 GB/s in each direction. Tensor, pipeline and expert parallelism, shards of the optimiser and AdamW come on top, as `fomoe` computes them.
The column first_ms has the predictions that were committed before the rows `check` were looked up.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_suffix(".csv")
sys.path.insert(0, str(ROOT / "tests/reference"))

import training_memory  # noqa: E402
from training_scenarios import config, scenario  # noqa: E402

COMPUTE = {"accelerator": "B200-SXM", "kernel_efficiency": 0.4, "intra_site_bandwidth": "900GBps"}


def predicted_ms(fomoe, run, micro_batches):
    run.micro_batches = micro_batches
    document = scenario(run)
    del document["compute"]["step_time"]
    document["compute"] |= COMPUTE
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "config.json").write_text(json.dumps(config(run)))
        (folder / "scenario.json").write_text(json.dumps(document))
        command = [fomoe, "simulate", folder / "scenario.json", "--engine", "closed-form", "--sensitivity", "none", "--output", "-"]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return 1e3 * answer["wall_clock_s"] / answer["optimizer_steps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", default=ROOT / "build/release/bin/fomoe")
    fomoe = parser.parse_args().fomoe
    runs = {run.id: run for run in training_memory.read()}
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["predicted_ms"] = f"{predicted_ms(fomoe, runs[row['id']], int(row['micro_batches'])):.1f}"
        measured = float(row["measured_ms"]) if row["measured_ms"] else None
        print(f"{row['id']:42} {row['micro_batches']:>3} micro-batches  {row['predicted_ms']:>9} ms"
              + (f", measured {measured:9.1f} ms, {100 * (float(row['predicted_ms']) / measured - 1):+6.1f} %" if measured else ""))
    for role in ("seen", "check"):
        errors = [float(row["predicted_ms"]) / float(row["measured_ms"]) - 1 for row in rows if row["role"] == role and row["measured_ms"]]
        if errors:
            print(f"{role}: {len(errors)} times, median error {100 * statistics.median(map(abs, errors)):.1f} %, worst {100 * max(errors, key=abs):+.1f} %")
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
