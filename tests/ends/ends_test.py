#!/usr/bin/env python3
"""Draws scenarios over all methods, collectives, platforms, engines and hosts, and checks that every command on them ends.

    tests/ends/ends_test.py --fomoe build/release/bin/fomoe --scenarios 300 --seed 1

A command may refuse a scenario, but it must end within a bound of CPU time that is far above what such small scenarios need:
simulations of a few rounds among at most nine sites take less than a second. The bound counts CPU time, so that other programs on
the machine do not matter. Exit status 1 and the scenario, if a command does not end or a signal ends it.
"""

import argparse
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/reference"))
from differential_test import READ, draw  # noqa: E402

CPU_S, WALL_S = 60, 900
COLLECTIVES = ["ring", "direct", "recursive", "hierarchical"]
PLATFORMS = {"platforms/eight-regions.toml": 8, "platforms/two-offices.toml": 3, "platforms/cloud-regions.toml": 8}
METHODS = sorted({*READ, "local_sgd", "local_adamw"})


def of_any_size(rng, low, high):
    """A number between the two, of which each order of magnitude is as likely."""
    return 10 ** rng.uniform(low, high)


def drawn(rng):
    """A scenario as a dict of tables. It need not be possible."""
    keys = draw(rng, METHODS)
    plan, platform = keys["strategy"], keys["platform"]
    if rng.random() < 0.5:
        plan["collective"] = rng.choice(COLLECTIVES)
    if rng.random() < 0.3:
        plan["fragments"] = rng.randint(1, 5)
    if rng.random() < 0.2:
        plan["overlap_steps"] = rng.randint(0, 5)
    for key, value in (("staleness", rng.randint(0, 3)), ("dynamic_local_steps", True), ("bucket_bytes", f"{of_any_size(rng, 5.5, 9):.0f}B"),
                       ("layerwise", True), ("quorum", rng.randint(1, 3))):
        if rng.random() < 0.08:
            plan[key] = value
    # Payloads from bytes to gigabytes and clocks from milliseconds to years: floating-point time has few digits left for the rest.
    keys["workload"]["tokens"] = max(1, round(of_any_size(rng, 0, 11)))
    if rng.random() < 0.3:
        keys["model"] = {"dense_parameters": max(1, round(of_any_size(rng, 0, 10)))}
        keys["workload"] = {"tokens": keys["workload"]["tokens"], "global_batch_tokens": rng.randint(1, 10**6)}
        for key in ("expert_overlap", "placement", "skip_token"):
            plan.pop(key, None)
    if "bucket_bytes" in plan and "dense_parameters" in keys["model"]:  # simulations of a few hundred buckets are enough
        plan["bucket_bytes"] = f"{max(1, keys['model']['dense_parameters'] // rng.randint(1, 50))}B"
    if rng.random() < 0.3:
        keys["compute"] = {"step_time": f"{of_any_size(rng, -6, 6):.4g}s"}
    if rng.random() < 0.4:
        path, most = rng.choice(sorted(PLATFORMS.items()))
        keys["platform"] = {"file": str(ROOT / path), "sites": rng.randint(1, most)}
        if rng.random() < 0.3:
            keys["platform"]["rate_factor"] = of_any_size(rng, -6, 3)
    elif rng.random() < 0.5:
        platform["latency"] = f"{of_any_size(rng, -6, 2):.4g}s"
        keys["site"] = [{"uplink": f"{of_any_size(rng, 3, 11):.4g}bps", "downlink": f"{of_any_size(rng, 3, 11):.4g}bps",
                         "compute_factor": round(of_any_size(rng, -1, 1), 3)} for _ in range(platform["sites"])]
    network = keys.setdefault("network_model", {})
    network["host"] = rng.choice(["linux", "ideal"])
    for key, value in (("congestion_control", rng.choice(["bbr", "reno", "cubic"])), ("loss_rate", of_any_size(rng, -6, -1)),
                       ("jitter", f"{of_any_size(rng, -6, 0):.3g}s"), ("tcp_window", f"{of_any_size(rng, 3, 8):.0f}B"),
                       ("streams", rng.randint(1, 8)), ("ring_model", "fluid"), ("call_overhead", f"{of_any_size(rng, -6, 0):.3g}s")):
        if rng.random() < 0.12:
            network[key] = value
    return keys


def as_toml(keys):
    """The scenario as TOML, whose values are those of JSON here."""
    text = ""
    for name, table in keys.items():
        for one in table if isinstance(table, list) else [table]:
            text += f"[[{name}]]\n" if isinstance(table, list) else f"[{name}]\n"
            text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in one.items())
    return text


def commands(rng):
    """The command lines that a scenario is tried with; the last one only now and then, since it simulates many times."""
    few = ["--rounds", str(rng.randint(1, 3)), "--sensitivity", "none"]
    yield ["simulate", "--engine", "closed-form", "--sensitivity", "closed-form"]
    yield ["simulate", *few]
    yield ["cost"]
    if rng.random() < 0.1:
        yield ["explain"]
    if rng.random() < 0.05:
        yield ["simulate", "--rounds", "1"]  # with sensitivities


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", required=True)
    parser.add_argument("--scenarios", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first scenario, to repeat one")
    options = parser.parse_args()
    fomoe = str(pathlib.Path(options.fomoe).resolve())
    ended = refused = 0
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.first, options.first + options.scenarios):
            rng = random.Random(f"{options.seed}/{number}")
            text = as_toml(drawn(rng))
            (pathlib.Path(folder) / "s.toml").write_text(text)
            for command, *arguments in commands(rng):
                line = [fomoe, command, "s.toml", *arguments, "--output", "-"]
                try:
                    done = subprocess.run(line[:-2] if command == "explain" else line, cwd=folder, capture_output=True, text=True, timeout=WALL_S,
                                          preexec_fn=limited)
                    status, error = done.returncode, done.stderr
                except subprocess.TimeoutExpired:
                    status, error = "no end", ""
                ended += status == 0
                refused += status == 2
                if status not in (0, 2, 3):
                    failures.append(number)
                    print(f"scenario {number} of seed {options.seed}: fomoe {' '.join(line[1:])}: {status} {error.strip()[-500:]}\n{text}", flush=True)
                if status == 2:
                    break  # every command refuses it
    print(f"{options.scenarios} scenarios: {ended} commands gave an answer, {refused} refused, {len(failures)} did neither")
    # Draws that are all refused would test nothing.
    return 1 if failures or ended < 2 * refused else 0


if __name__ == "__main__":
    sys.exit(main())
