#!/usr/bin/env python3
"""Compares fomoe with the plain reference in reference.py on random scenarios, and checks properties of its answers.

    differential_test.py --scenarios 2000 --seed 1 --fomoe build/release/bin/fomoe

On a mismatch it prints the smallest scenario found that still differs, and exits with 1.
"""

import argparse
import collections
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import reference

TOLERANCE = 1e-9


class Program:
    """Runs fomoe, one process at a time, with scenarios as JSON on standard input or as TOML files."""

    def __init__(self, path, folder):
        self.path, self.folder, self.calls = str(pathlib.Path(path).resolve()), pathlib.Path(folder), 0

    def text(self, command, keys, *options, as_toml=False):
        """Returns what fomoe writes to standard output."""
        scenario = toml(keys) if as_toml else json.dumps(keys)
        (self.folder / ("s.toml" if as_toml else "s.json")).write_text(scenario)
        self.calls += 1
        done = subprocess.run(["nice", "-n", "5", self.path, command, "s.toml" if as_toml else "s.json", *options],
                              capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(f"fomoe {command} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def answer(self, command, keys, *options, **how):
        """Returns the JSON answer."""
        return json.loads(self.text(command, keys, *options, "--output", "-", **how))

    def closed_form(self, keys):
        return self.answer("simulate", keys, "--engine", "closed-form", "--sensitivity", "none")

    def simulated(self, keys):
        return self.answer("simulate", keys, "--rounds", "all", "--sensitivity", "none")


def toml(keys):
    """Writes a scenario as TOML."""
    return "".join(f"[{part}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
                   for part, table in keys.items())


def draw(rng):
    """Draws a scenario with equal sites."""
    sites, heads = rng.randint(1, 9), rng.randint(1, 4)
    experts = sites * rng.randint(1, 5)
    keys = {"model": {"d_model": heads * 2 * rng.randint(1, 64), "layers": rng.randint(1, 12), "heads": heads, "experts": experts,
                      "active_experts": rng.randint(1, experts), "d_expert": rng.randint(1, 300),
                      "vocabulary": rng.randint(1, 50000), "sequence_length": rng.randint(1, 3000)},
            "workload": {"tokens": rng.randint(1, 10**rng.randint(3, 9)), "global_batch_sequences": rng.randint(sites, 40 * sites)},
            "strategy": {"method": rng.choice(reference.METHODS + ("fomoe",) * 6)},
            "compute": {"step_time": f"{rng.uniform(0.1, 900):.6g}ms"} if rng.random() < 0.6 else
                       {"mfu": round(rng.uniform(0.01, 1), 4), "peak_flops": f"{rng.uniform(0.1, 999):.5g}TFLOPS"},
            "platform": {"sites": sites, "latency": f"{rng.choice([0, rng.uniform(0, 200)]):.5g}ms"}}
    plan, method = keys["strategy"], keys["strategy"]["method"]
    options = {"local_steps": rng.randint(1, 600), "payload_dtype": rng.choice(list(reference.WIRE))}
    if method in ("ddp", "centralised"):
        options = {"payload_dtype": options["payload_dtype"], "fragments": 1} if method == "ddp" else {}
    if method not in ("ddp", "fedavg", "centralised"):
        options |= {"collective": rng.choice(["ring", "direct"])}
    if method not in ("ddp", "centralised"):
        options |= {"parameter_dtype": rng.choice(["fp32", "bf16", "fp16", "int8"])}
    if method == "des_loc":
        options |= {"moment1_period": rng.randint(1, 9), "moment2_period": rng.randint(1, 9)}
    if method in ("diloco", "dept"):
        options |= {"outer_optimizer": rng.choice(["nesterov", "adam", "yogi"])}
    if method == "fomoe":
        options |= {"expert_overlap": rng.randint(1, sites), "placement": rng.choice(["fixed", "random"]),
                    "reshuffle_rounds": rng.randint(1, 9), "skip_token": rng.random() < 0.5,
                    "outer_optimizer": rng.choice(["nesterov", "adam", "yogi", "average", "local_adamw"]),
                    "outer_state_on_migration": rng.choice(["transfer", "reset_all_owners"])}
    plan |= {key: value for key, value in options.items() if key in ("fragments", "expert_overlap") or rng.random() < 0.7}
    if rng.random() < 0.5 or method == "fedavg":
        keys["platform"]["bandwidth"] = f"{int(10**rng.uniform(5, 11))}bps"
    else:
        keys["platform"] |= {port: f"{int(10**rng.uniform(5, 11))}bps" for port in ("uplink", "downlink")}
    more = {"compute": {"gpus_per_site": rng.randint(1, 16), "activation_checkpointing": True, "outer_state_on": "host"},
            "platform": {"rate_factor": round(rng.uniform(0.1, 9), 3)},
            "network_model": {"bandwidth_efficiency": round(rng.uniform(0.5, 1), 3), "latency_factor": round(rng.uniform(0.5, 2), 3),
                              "background_share": round(rng.uniform(0.01, 0.9), 3)}}
    for part, table in more.items():
        for key, value in table.items():
            if rng.random() < 0.2:
                keys.setdefault(part, {})[key] = value
    if rng.random() < 0.2:
        keys["prices"] = {"gpu_hour": f"{rng.uniform(0.1, 9):.3f}USD", "egress_per_gb": f"{rng.uniform(0, 1):.4f}USD"}
        keys["energy"] = {"gpu_power": f"{rng.randint(100, 1000)}W", "idle_share": round(rng.uniform(0.01, 1), 3), "pue": 1.25}
    return keys


def field(answer, name):
    """Returns a field of a JSON answer by its path."""
    for part in name.split("."):
        answer = answer[part]
    return answer


def compare_formulas(program, keys, accounting):
    """Yields (quantity, expected value, value of fomoe) of one scenario with equal sites."""
    s = reference.Scenario(keys)
    cost = program.answer("cost", keys, "--accounting", accounting)
    for name, count in reference.parameters(s).items():
        yield f"parameters.{name}", count, cost["parameters"][name]
    yield "parameters_per_site", reference.elements_on_site(s), cost["parameters_per_site"]
    for name, value in reference.flops_per_token(s, accounting).items():
        yield f"flops ({accounting}) {name}", value, cost["flops_per_token"] if name == "total" else cost["flops"][f"{name}_per_token"]
    parts = reference.memory(s)
    yield "memory host", parts.pop("host"), cost["host_memory_bytes_per_site"]
    yield "memory total", sum(parts.values()), cost["memory_bytes_per_site"]
    for name, value in parts.items():
        yield f"memory {name}", value, cost["memory_per_site"][f"{name}_bytes"]
    for name, value in reference.sent_bytes(s).items():
        yield f"sent {name}", value, cost["sent_bytes_per_site"][name]
    answer = program.closed_form(keys)
    for name, value in reference.report(s).items():
        yield name, value, field(answer, name)


def error(expected, actual):
    """Returns the relative difference; values below 1e-12 of their unit count as zero."""
    return 0.0 if abs(expected - actual) < 1e-12 else abs(expected - actual) / max(abs(expected), abs(actual))


def shrink(keys, still_differs):
    """Removes keys and halves numbers as long as the scenario still differs."""
    changed = True
    while changed:
        changed = False
        for part in list(keys):
            for key in list(keys[part]):
                value = keys[part][key]
                smaller = [None] + ([1, value // 2, value - 1] if isinstance(value, int) and value > 1 else [])
                for candidate in smaller:
                    tried = copy.deepcopy(keys)
                    if candidate is None:
                        del tried[part][key]
                    else:
                        tried[part][key] = candidate
                    try:
                        differs = still_differs({name: table for name, table in tried.items() if table})
                    except (RuntimeError, KeyError, ValueError, ZeroDivisionError, TypeError):
                        differs = False
                    if differs:
                        keys, changed = {name: table for name, table in tried.items() if table}, True
                        break
                if part not in keys:
                    break
    return keys
