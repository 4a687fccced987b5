#!/usr/bin/env python3
"""Compares fomoe's answers with those that are committed, so that no change of an answer goes unnoticed.

    answers_test.py [--fomoe PROGRAM]             fails if an answer differs by more than 1e-7
    answers_test.py --update [--fomoe PROGRAM]    rewrites answers.csv, and prints how the answers change

cases.txt has the scenarios. A row of answers.csv has a few numbers of the simulation, and for all numbers of an answer (of fomoe
simulate, of the closed form and of fomoe cost) one sum, which changes if any of them does.
"""
import argparse
import csv
import json
import math
import pathlib
import re
import shlex
import subprocess
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = HERE / "answers.csv"
SHOWN = ["wall_clock_s", "bytes_per_token", "compute_utilization"]
COMMANDS = {"simulated": ["simulate"], "closed_form": ["simulate", "--engine", "closed-form"], "cost": ["cost"]}
# What a line says before its own keys: the scenario names a profile that every machine measures for itself.
BEFORE = {"eight-regions": "!compute.profile compute.accelerator=A100-80GB-SXM compute.mfu=0.02 compute.micro_batch_sequences=1"}
# Parts of an answer that are inputs, or that come from the committed runs over emulated links.
LEFT_OUT = ("scenario", "accuracy", "validation_envelope")
# Keys that another test has, since they name files that fomoe-train writes, or tables that --set cannot make.
ELSEWHERE = re.compile(r"(name|description|site|prices\.as_of|compute\.(profile|draw_samples)|model\.(shape|safetensors)|calibration\..*|trainer\..*)$")


def numbers(value, path=""):
    """Yields the path and value of each number of an answer, and how many entries its lists have."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if path or key not in LEFT_OUT:
                yield from numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}.count", float(len(value))
        for i, inner in enumerate(value):
            yield from numbers(inner, f"{path}.{i}")
    elif isinstance(value, (int, float)):
        yield path, float(value)


def sum_of(document):
    """A sum that changes by about as much as any of the numbers does, relatively. Numbers below 1e-6 count little."""
    return sum((0.5 + zlib.crc32(path.encode()) / 2**32) * math.log(abs(value) + 1e-6) * (-1 if value < 0 else 1)
               for path, value in numbers(document))


def cases():
    lines = (HERE / "cases.txt").read_text().split("\n")
    return [line for line in lines if line.strip() and not line.startswith("#")]


def options_of(case):
    scenario, *words = shlex.split(case)
    options = [f"experiments/scenarios/{scenario}.toml"]
    for word in shlex.split(BEFORE.get(scenario, "")) + words:
        options += ["--unset", word[1:]] if word[0] == "!" else ["--set", word]
    return options


def answer(fomoe, case):
    row = {"case": case}
    for column, (command, *more) in COMMANDS.items():
        done = subprocess.run([fomoe, command, *options_of(case), *more, "--output", "-"], capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            sys.exit(f"{case}: fomoe {command} ends with {done.returncode}: {done.stderr.strip()}")
        document = json.loads(done.stdout)
        if column == "simulated":
            row |= {name: repr(document[name]) for name in SHOWN}
        row[column] = repr(sum_of(document))
    return row


def keys_without_case(fomoe):
    """The keys of a scenario file that no case sets and no scenario has."""
    schema = json.loads(subprocess.run([fomoe, "list", "keys", "--json-schema"], capture_output=True, text=True, check=True).stdout)
    keys = set()

    def collect(table, prefix):
        for key, inner in table.get("properties", {}).items():
            collect(inner, f"{prefix}{key}.") if "properties" in inner else keys.add(prefix + key)

    collect(schema, "")
    used = {word.split("=")[0] for case in cases() for word in shlex.split(BEFORE.get(case.split()[0], "")) + shlex.split(case)[1:] if word[0] != "!"}
    for path in (ROOT / "experiments/scenarios").glob("*.toml"):
        table = ""
        for line in path.read_text().split("\n"):
            if found := re.match(r"\[([\w.]+)\]", line):
                table = found[1] + "."
            elif found := re.match(r"(\w+) *=", line):
                used.add(table + found[1])
    return sorted(key for key in keys - used if not ELSEWHERE.match(key))


def differing(old, new):
    """The columns in which two rows differ, with both values. Sums of logarithms differ as the numbers do relatively."""
    found = []
    for column in [*SHOWN, *COMMANDS]:
        before, after = float(old[column]), float(new[column])
        scale = max(abs(before), 1e-12) if column in SHOWN else 1.0
        if not abs(after - before) <= 1e-7 * scale:
            found.append(f"{column} {before:.9g} → {after:.9g}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", default=str(ROOT / "build/release/bin/fomoe"))
    parser.add_argument("--update", action="store_true")
    values = parser.parse_args()
    fomoe = str(pathlib.Path(values.fomoe).resolve())
    failed = 0
    for key in keys_without_case(fomoe):
        print(f"{key}: no line of cases.txt has this key")
        failed = 1
    with TABLE.open(newline="") if TABLE.exists() else open("/dev/null") as file:
        committed = {row["case"]: row for row in csv.DictReader(file)}
    rows = [answer(fomoe, case) for case in cases()]
    for row in rows:
        old = committed.pop(row["case"], None)
        for change in differing(old, row) if old else ["it has no row"]:
            print(f"{row['case']}: {change}")
            failed |= not values.update
    for case in committed:
        print(f"{case}: a row without a case")
        failed |= not values.update
    if values.update:
        text = TABLE.with_suffix(".tmp")
        with text.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["case", *SHOWN, *COMMANDS], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        text.rename(TABLE)
    elif failed:
        print("If the changes are meant, name them in CHANGELOG.md and run tests/answers/answers_test.py --update.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
