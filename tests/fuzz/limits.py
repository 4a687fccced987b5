#!/usr/bin/env python3
"""Gives fomoe files that are too large, nest too deeply or contain extreme numbers. Each must be read or refused with exit status 2
and a few lines, within bounds of processor time and memory.

    limits.py --fomoe build/release/bin/fomoe             the cases below, and a sample of keys with extreme values
    limits.py --fomoe build/release/bin/fomoe --all       every key with every extreme value (about an hour), and files of 100 MB
"""
import argparse
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "experiments/scenarios/two-sites.toml"
MOST_SECONDS, MOST_BYTES = 60, 3 << 30  # processor time and address space of one command
DEEP, MANY = 100_000, 1_000_000
NUMBERS = ["1e308", "1e309", "-1e308", "-0", "-0.0", "0", "nan", "inf", "-inf", "9223372036854775807", "9223372036854775808",
           "-9223372036854775808", "1e-320", "5e-324", "1e18", "4294967296", "0x7fffffffffffffff", "1e999", "1_000", "0.1", "-1", '""',
           '"1e308Gbps"', '"1e-320s"', '"nan%"', '"infB"', '"1e308%"', '"1e308h"', '"9e18GB"', '"0s"', '"0bps"', '"-0ms"', "[]", "[[]]",
           "{}", '["1e308Gbps"]', "1979-05-27", "true"]
problems = 0


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def tried(fomoe, what, command, quiet=False, allowed=(0, 2)):
    global problems
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run([fomoe, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limit, timeout=600)
        status, message = done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        status, message = "no end", ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    good = status in allowed and (status == 0 or 0 < len(message.strip().splitlines()) <= 50 and len(message) < 20_000)
    problems += not good
    if not good or not quiet:
        print(f"{'ok    ' if good else 'FAILED'} {what:<44} status {status}, {seconds:5.1f} s  {message.strip()[:110] if not good else ''}", flush=True)


def files(many, large):
    """Name, ending, text and command for each file; FILE stands for its path."""
    simulate, page = ["simulate", "FILE"], ["report", "FILE", "--output", "OUTPUT"]
    keys = ",".join(f'"k{i}":{i}' for i in range(many))
    yield "JSON: nested objects", ".json", '{"a":' * DEEP + "1" + "}" * DEEP, simulate
    yield "JSON: nested arrays", ".json", '{"a":' + "[" * DEEP + "]" * DEEP + "}", simulate
    yield "JSON: arrays that do not end", ".json", '{"a":' + "[" * DEEP, simulate
    yield "JSON: 1e999", ".json", '{"seed":1e999}', simulate
    yield f"JSON: {many} keys", ".json", "{" + keys + "}", simulate
    yield "TOML: name of many parts", ".toml", "a" + ".a" * DEEP + " = 1\n", simulate
    yield "TOML: table of many parts", ".toml", "[a" + ".a" * DEEP + "]\nb = 1\n", simulate
    yield "TOML: names in nested tables", ".toml", "a = " + ("{" + "a." * 30 + "a = ") * 250 + "1" + "}" * 250, simulate
    yield "TOML: nested arrays", ".toml", "a = " + "[" * DEEP + "]" * DEEP, simulate
    yield "TOML: nested inline tables", ".toml", "a = " + "{a=" * DEEP + "1" + "}" * DEEP, simulate
    yield "TOML: a long wrong line", ".toml", "a = " + "x" * 1_000_000, simulate
    yield f"TOML: {many} keys", ".toml", "\n".join(f"k{i} = {i}" for i in range(many)), simulate
    yield f"TOML: {many} tables", ".toml", "\n".join(f"[t{i}]" for i in range(many)), simulate
    yield f"TOML: {many // 10} sites", ".toml", SCENARIO.read_text() + "".join(f'\n[[site]]\nname = "s{i}"\n' for i in range(many // 10)), simulate
    yield "text without an end of line", ".toml", "a" * large, simulate
    yield "zeros", ".toml", "\0" * large, simulate
    yield "a long comment", ".toml", SCENARIO.read_text() + "#" + "a" * large, simulate
    for schema in ("fomoe.run/1", "fomoe.sweep/1", "fomoe.planner/1", "fomoe.solve/1"):
        yield f"{schema}: nested", ".json", f'{{"schema":"{schema}","scenario":' + '{"a":' * DEEP + "1" + "}" * DEEP + "}", page
    yield f"fomoe.run/1: {many} keys", ".json", '{"schema":"fomoe.run/1",' + keys + "}", page
    yield "measured run: nested", ".json", '{"schema":"fomoe.run/1","executor":' + "[" * DEEP + "]" * DEEP + "}", ["validate", "FILE"]
    yield f"config.json: {many} keys", ".json", '{"model_type":"mixtral",' + keys + "}", ["model", "FILE"]
    yield "config.json: nested", ".json", '{"model_type":' + "[" * DEEP + "]" * DEEP + "}", ["model", "FILE"]
    yield "profile: nested", ".json", "[" * DEEP, ["simulate", SCENARIO, "--set", "compute.profile=FILE"]
    yield "platform file: nested", ".toml", "a" + ".a" * DEEP + "=1", ["simulate", SCENARIO, "--set", "platform.file=FILE"]
    yield "trace: one long row", ".csv", "time,link,bandwidth,latency\n" + "1," * MANY, ["simulate", SCENARIO, "--set", "platform.trace=FILE"]
    yield "log: a long line", ".log", "step: 1  loss: 2  tps: " + "1" * large, ["profile", "import", "FILE", "--from", "torchtitan"]
    yield "trace of Kineto: nested", ".json", '{"traceEvents":' + "[" * DEEP + "]" * DEEP + "}", ["profile", "import", "FILE", "--from", "kineto"]
    yield "iperf3: nested", ".json", '{"start":' + "[" * DEEP + "]" * DEEP + ',"end":1}', ["calibrate", "FILE"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", type=pathlib.Path, default=ROOT / "build/release/bin/fomoe")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--numbers", type=int, default=60, help="number of keys and values that are drawn")
    parser.add_argument("--seed", type=int, default=1)
    values = parser.parse_args()
    fomoe = values.fomoe.resolve()
    with tempfile.TemporaryDirectory(prefix="fomoe-limits-") as folder:
        path = pathlib.Path(folder)
        for number, (what, ending, text, command) in enumerate(files(MANY if values.all else 50_000, 100_000_000 if values.all else 2_000_000)):
            file = path / f"file{number}{ending}"
            file.write_text(text)
            names = {"FILE": str(file), "OUTPUT": str(path / "page.html")}
            tried(fomoe, what, [re.sub("FILE|OUTPUT", lambda found, names=names: names[found[0]], str(word)) for word in command])
            file.unlink()
        weights = path / "weights"
        weights.mkdir()
        for what, header in {"nested": '{"a":' + "[" * DEEP + "]" * DEEP + "}", "of a wrong length": "{}"}.items():
            length = len(header) if what == "nested" else 2**63
            (weights / "model.safetensors").write_bytes(struct.pack("<Q", length) + header.encode())
            tried(fomoe, f"header of weights: {what}", ["model", weights])
    keys, table = [], ""
    for line in subprocess.run([fomoe, "list", "keys"], stdout=subprocess.PIPE, text=True).stdout.splitlines():
        if found := re.match(r"\[([a-z_.]+)\]", line):
            table = found[1] + "."
        elif found := re.match(r"([a-z_]+) = ", line):
            keys.append(table + found[1])
    pairs = [(key, number) for key in keys for number in NUMBERS]
    if not values.all:
        pairs = random.Random(values.seed).sample(pairs, min(values.numbers, len(pairs)))
    for key, number in pairs:
        tried(fomoe, f"{key}={number}", ["explain", SCENARIO, "--set", f"{key}={number}"], quiet=True)
    print(f"{len(pairs)} extreme values of {len(set(keys))} keys; {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
