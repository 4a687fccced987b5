#!/usr/bin/env python3
"""Compares the training steps of fomoe-train with those of the same model in PyTorch, eager and compiled, on this machine.

    .venv/bin/python experiments/twin/compare_speed.py
    .venv/bin/python experiments/twin/compare_speed.py --models small --repeats 1

The programs run in turn, and several times, because other work on the machine changes its speed. A ratio is the median step
time of PyTorch ÷ that of fomoe-train in the same turn; the table has the median and the range of the ratios over all turns.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = ROOT / "build/release/bin/fomoe-train"
PROXY = "d_model=64,layers=4,heads=4,experts=16,active_experts=4,d_expert=64,vocabulary=1024"
# By name: options of both programs, and what a scenario needs if the model is no preset.
MODELS = {
    "small": (["--model", "small", "--sequence-length", "128", "--micro-batch-sequences", "4", "--steps", "6"], None),
    "proxy": (["--sequence-length", "128", "--micro-batch-sequences", "16", "--steps", "30"], PROXY),
}


def scenario_of(shape, folder):
    """A scenario with this shape, for fomoe-train, which takes shapes from scenarios only."""
    keys = "\n".join(pair.replace("=", " = ") for pair in shape.split(","))
    path = folder / "scenario.toml"
    path.write_text(f'name = "a shape"\n[model]\n{keys}\nsequence_length = 128\n[workload]\ntokens = 1e6\n'
                    'global_batch_sequences = 16\n[strategy]\nmethod = "ddp"\n[compute]\nstep_time = "1s"\n'
                    '[platform]\nsites = 1\nbandwidth = "1Gbps"\nlatency = "1ms"\n', encoding="utf-8")
    return path


def median_step_s(command, output):
    done = subprocess.run([*map(str, command), "--output", str(output)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    point = json.loads(output.read_text())["points"][0]
    return statistics.median(sum(sample.values()) for sample in point["samples"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=sorted(MODELS))
    parser.add_argument("--modes", nargs="+", choices=["eager", "compile"], default=["eager", "compile"])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print("model  PyTorch  fomoe-train is faster by (median, range)")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in given.models:
            options, shape = MODELS[model]
            ours = [TRAIN, "profile", *options, *([] if shape is None else ["--scenario", scenario_of(shape, folder)])]
            twin = [sys.executable, ROOT / "experiments/twin/profile_twin.py", *options, *([] if shape is None else ["--shape", shape])]
            ratios = {mode: [] for mode in given.modes}
            for _ in range(given.repeats):
                own_s = median_step_s(ours, folder / "ours.json")
                for mode in given.modes:
                    ratios[mode].append(median_step_s([*twin, "--mode", mode], folder / "twin.json") / own_s)
            for mode, all_of in ratios.items():
                print(f"{model:6} {mode:8} {statistics.median(all_of):.2f} ({min(all_of):.2f} to {max(all_of):.2f})", flush=True)


if __name__ == "__main__":
    main()
