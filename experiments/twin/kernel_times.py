#!/usr/bin/env python3
"""Reads what ncu measured of some training steps, and writes the time of each kernel in a step, longest first.

    kernel_times.py LAUNCHES.csv --output STEP.csv

LAUNCHES.csv has one row for each launch (ncu --csv --page raw --metrics gpu__time_duration.sum). A step ends with its last
launch of the kernel adam. The first step is left out, since it includes what was launched before it. STEP.csv has, for each
kernel, its launches in a step, the median of its microseconds over the steps, and its share of the step.
"""
import argparse
import csv
import pathlib
import statistics
import sys

PER_US = {"ns": 1e3, "us": 1, "ms": 1e-3}


def launches(path):
    """Kernel and microseconds of each launch, in their order."""
    lines = path.read_text().splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        sys.exit(f"{path}: got no table; expected the output of ncu --csv --page raw")
    units, *rows = csv.DictReader(lines[header:])
    per_us = PER_US[units["gpu__time_duration.sum"]]
    return [(row["Kernel Name"], float(row["gpu__time_duration.sum"].replace(",", "")) / per_us) for row in rows
            if row["ID"].isdigit()]


def steps(all_launches):
    """The launches of each whole step after the first one."""
    losses = [i for i, (name, _) in enumerate(all_launches) if "softmax_loss" in name]
    adams = [i for i, (name, _) in enumerate(all_launches) if "adam<" in name]
    ends = [adam + 1 for adam, after in zip(adams, [*adams[1:], len(all_launches)])
            if after == len(all_launches) or any(adam < loss < after for loss in losses)]
    return [all_launches[begin:end] for begin, end in zip(ends, ends[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    given = parser.parse_args()
    measured = steps(launches(given.launches))
    if not measured:
        sys.exit(f"{given.launches}: got fewer than two whole steps; expected two or more")
    of_steps = [{} for _ in measured]
    for times, step in zip(of_steps, measured):
        for name, us in step:
            times.setdefault(name, []).append(us)
    table = [(name, len(times), statistics.median(sum(step.get(name, [0])) for step in of_steps))
             for name, times in of_steps[0].items()]
    whole = sum(us for _, _, us in table)
    with given.output.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "launches", "us_per_step", "share"])
        for name, count, us in sorted(table, key=lambda row: -row[2]):
            writer.writerow([name, count, f"{us:.1f}", f"{us / whole:.4f}"])
    print(f"{len(measured)} steps of {len(measured[0])} launches, {whole / 1e3:.2f} ms of kernels each")


if __name__ == "__main__":
    main()
