#!/usr/bin/env python3
"""Compares fomoe's answers with those that are committed, so that no change of an answer goes unnoticed.

    answers_test.py [--fomoe PROGRAM]             fails if a number of an answer has changed
    answers_test.py --update [--fomoe PROGRAM]    rewrites answers.json.gz, and prints what changes

cases.txt has the scenarios. The answers are those of fomoe simulate, of the closed form and of fomoe cost: all numbers, the lengths
of lists, and a few texts that are answers too. Other texts may change.
"""
import argparse
import concurrent.futures
import gzip
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = HERE / "answers.json.gz"
COMMANDS = {"simulate": ["simulate"], "closed form": ["simulate", "--engine", "closed-form"], "cost": ["cost"]}
# These words stand before those of a line. The scenario names a profile that every machine measures for itself.
WITHOUT_PROFILE = {"eight-regions": "!compute.profile compute.accelerator=A100-80GB-SXM compute.mfu=0.02 compute.micro_batch_sequences=1"}
# Answers with ideal hosts are exact, and name what a change of a formula does; this stands before the words of each line without hosts.
IDEAL_HOSTS, ONE_CONNECTION = "network_model.host=ideal", "network_model.streams=1"
# Keys that need no line: names, a date, the terms that a calibration fitted, and files that fomoe-train writes, which have tests in
# tests/experiments; the keys of training itself, which predict nothing; and those of [[site]] and [[path]], of which one line has some. Most of these
# are also keys of other tables.
NO_LINE = re.compile(r"(name|description|prices\.as_of|(calibration|trainer|site|path)\..*|compute\.(profile|draw_samples)|model\.(shape|safetensors))$")
# Parts of an answer that are inputs, that come from the committed runs over emulated links, or that are a picture of other parts.
LEFT_OUT = ("scenario", "accuracy", "interval", "validation_envelope", "round_timeline")
TEXTS = ("limited_by", "origin", "executor")
SHARE = 1e-7  # An answer has changed if it differs by more than this share. The orders of sums and libraries of mathematics matter less.


def values_of(value, path=""):
    """Yields the path and value of each number of an answer, of some texts, and how many entries its lists have."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if path or key not in LEFT_OUT:
                yield from values_of(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield f"{path}.count", len(value)
        for i, inner in enumerate(value):
            yield from values_of(inner, f"{path}.{i}")
    elif isinstance(value, (int, float)):
        yield path, float(f"{value:.12g}")
    elif path.split(".")[-1] in TEXTS:
        yield path, value


def cases():
    return [line for line in (HERE / "cases.txt").read_text().split("\n") if line.strip() and not line.startswith("#")]


def words_of(case):
    """The scenario of a line, and KEY=VALUE or !KEY of each option."""
    scenario, *words = shlex.split(case)
    hosts = [ONE_CONNECTION] + ([] if any("network_model.host=" in word for word in words) else [IDEAL_HOSTS])
    return scenario, shlex.split(WITHOUT_PROFILE.get(scenario, "")) + hosts + words


def answer(fomoe, case):
    """The answers of a line by command; the text of an error instead if fomoe refuses it."""
    scenario, words = words_of(case)
    options = [f"experiments/scenarios/{scenario}.toml"]
    for word in words:
        options += ["--unset", word[1:]] if word[0] == "!" else ["--set", word]
    answers = {}
    for name, (command, *more) in COMMANDS.items():
        try:
            done = subprocess.run([fomoe, command, *options, *more, "--output", "-"], capture_output=True, text=True, cwd=ROOT, timeout=120)
        except subprocess.TimeoutExpired:
            return f"fomoe {command} does not end within 120 s"
        if done.returncode:
            return f"fomoe {command} ends with status {done.returncode}: {done.stderr.strip()}"
        answers[name] = dict(values_of(json.loads(done.stdout)))
    return answers


def leaves(table, prefix=""):
    for key, inner in table.items():
        for one in inner if isinstance(inner, list) and inner and isinstance(inner[0], dict) else [inner]:
            yield from leaves(one, f"{prefix}{key}.") if isinstance(one, dict) else [prefix + key]


def keys_of_schema(table, prefix=""):
    for key, inner in table.get("properties", {}).items():
        inner = inner.get("items", inner) if "properties" in inner.get("items", {}) else inner
        yield from keys_of_schema(inner, f"{prefix}{key}.") if "properties" in inner else [prefix + key]


def keys_without_line(fomoe):
    """The keys of a scenario file that no line has."""
    schema = json.loads(subprocess.run([fomoe, "list", "keys", "--json-schema"], capture_output=True, text=True, check=True).stdout)
    used = set()
    for case in cases():
        scenario, words = words_of(case)
        file = set(leaves(tomllib.loads((ROOT / f"experiments/scenarios/{scenario}.toml").read_text())))
        used |= file - {word[1:] for word in words} | {word.split("=")[0] for word in words if word[0] != "!"}
    return sorted(key for key in set(keys_of_schema(schema)) - used if not NO_LINE.match(key))


def same(path, old, new, wall_clock_s):
    if isinstance(old, str) or isinstance(new, str) or old is None or new is None:
        return old == new
    # What is left of a time after subtractions, and of a share of it, is not an answer below this.
    dust = 1e-9 * (wall_clock_s if path.endswith("_s") else 1)
    return math.isclose(old, new, rel_tol=SHARE, abs_tol=dust)


def changes(old, new):
    """Describes the differences of two answers of a line, those of the whole run first."""
    found = []
    for name in COMMANDS:
        before, after = old.get(name, {}), new.get(name, {})
        wall_clock_s = max(before.get("wall_clock_s", 0), after.get("wall_clock_s", 0))
        for path in before | after:
            a, b = before.get(path), after.get(path)
            if not same(path, a, b, wall_clock_s):
                found.append((path.count("."), f"{name}: {path}: {a} → {b}"))
    return [text for _, text in sorted(found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", default=str(ROOT / "build/release/bin/fomoe"))
    parser.add_argument("--update", action="store_true")
    values = parser.parse_args()
    fomoe = str(pathlib.Path(values.fomoe).resolve())
    failed = False
    for key in keys_without_line(fomoe):
        print(f"{key}: no line of cases.txt has this key")
        failed = True
    committed = json.loads(gzip.decompress(TABLE.read_bytes())) if TABLE.exists() else {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = dict(zip(cases(), pool.map(lambda case: answer(fomoe, case), cases())))
    changed = False
    for case, new in answers.items():
        old = committed.pop(case, None)
        if isinstance(new, str):
            print(f"{case}: {new}")
            failed = True
            continue
        found = changes(old, new) if old else ["it has no answers yet"]
        for text in found[:5]:
            print(f"{case}: {text}", flush=True)
        if len(found) > 5:
            print(f"{case}: {len(found) - 5} more")
        changed |= bool(found)
    for case in committed:
        print(f"{case}: it has answers, but no line")
        changed = True
    if values.update and not failed:
        temporary = TABLE.with_suffix(".tmp")
        temporary.write_bytes(gzip.compress(json.dumps(answers, separators=(",", ":")).encode(), mtime=0))
        temporary.rename(TABLE)
    elif changed:
        print("If the changes are meant, name them in CHANGELOG.md and run tests/answers/answers_test.py --update.")
    return 1 if failed or (changed and not values.update) else 0


if __name__ == "__main__":
    sys.exit(main())
