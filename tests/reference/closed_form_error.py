#!/usr/bin/env python3
"""How far the closed form is from the simulation of connections (host = "linux"), over drawn runs among equal sites.

    tests/reference/closed_form_error.py --fomoe build/release/bin/fomoe --first 1000 --scenarios 150

Prints a line for each run, and the median, p95 and worst of |closed form ÷ simulation − 1| in percent, of the wall clock and of the exposed
communication. It is no test: the closed form counts windows without queues and without connections that compete, and says so.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

METHODS = ["ddp", "diloco", "local_sgd", "streaming_diloco", "local_adamw", "fedavg"]


def drawn(number):
    """A scenario as TOML, and what was drawn."""
    rng = random.Random(number)
    values = {"method": rng.choice(METHODS), "collective": rng.choice(["ring", "direct"]), "sites": rng.choice([2, 3, 4, 6, 8]),
              "mbps": 10 ** rng.uniform(1, 4), "latency_ms": 10 ** rng.uniform(0, 2.2), "parameters": round(10 ** rng.uniform(6, 9.3)),
              "control": rng.choice(["cubic", "cubic", "reno", "bbr"]), "steps": rng.choice([2, 4, 10]), "step_s": 10 ** rng.uniform(-1, 1)}
    local_steps = "" if values["method"] == "ddp" else f"local_steps = {values['steps']}\n"
    return f"""[model]
dense_parameters = {values['parameters']}
[workload]
tokens = 20000000
global_batch_tokens = {rng.choice([250000, 1000000])}
[strategy]
method = "{values['method']}"
collective = "{values['collective']}"
{local_steps}[compute]
step_time = "{values['step_s']:.3g}s"
[platform]
sites = {values['sites']}
bandwidth = "{values['mbps']:.4g}Mbps"
latency = "{values['latency_ms']:.4g}ms"
[network_model]
host = "linux"
congestion_control = "{values['control']}"
""", values


def answer(fomoe, scenario, arguments):
    line = [fomoe, "simulate", scenario, "--sensitivity", "none", "--output", "-", *arguments]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def triple(errors):
    sizes = sorted(abs(error) for error in errors)
    return ", ".join(f"{100 * size:.2f}" for size in (statistics.median(sizes), sizes[math.ceil(0.95 * len(sizes)) - 1], sizes[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", required=True)
    parser.add_argument("--scenarios", type=int, default=150)
    parser.add_argument("--first", type=int, default=1000, help="number of the first scenario")
    options = parser.parse_args()
    clocks, exposed, large = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder) / "s.toml"
        for number in range(options.first, options.first + options.scenarios):
            text, values = drawn(number)
            scenario.write_text(text)
            formula = answer(options.fomoe, scenario, ["--engine", "closed-form"])
            simulated = answer(options.fomoe, scenario, ["--rounds", "4"])
            if any("not simulated one by one" in note for note in simulated["notes"]):
                large += 1
                continue
            clocks.append(formula["wall_clock_s"] / simulated["wall_clock_s"] - 1)
            key = "exposed_communication_s"
            if simulated["round"][key] > 0:
                exposed.append(formula["round"][key] / simulated["round"][key] - 1)
            print(f"{number} {100 * clocks[-1]:+.2f} %", values, flush=True)
    print(f"{len(clocks)} runs ({large} more have too many bytes): wall clock {triple(clocks)} %; exposed communication {triple(exposed)} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
