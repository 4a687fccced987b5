#!/usr/bin/env python3
"""Compares the training speed of fomoe-train and of the same model in eager PyTorch, on the same cores in the same run.

    .venv/bin/python tools/compare_with_pytorch.py --program build/release/bin/fomoe-train
    .venv/bin/python tools/compare_with_pytorch.py --scenario experiments/scenarios/tiny-training.toml --sequences 16

Both programs train in fp32 with fused AdamW and the same number of threads. They take turns, so that other programs on the
machine disturb both equally, and the median step of each counts. The tool prints the tokens/s of both programs and the ratio
fomoe-train ÷ PyTorch. With --at-least R it exits with 1 if the ratio is below R.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "experiments" / "twin"))
from twin import PRESETS, Model, Shape, parameter_count


def eager_steps(shape, sequences, steps):
    torch.manual_seed(42)
    model = Model(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0, fused=True)
    text = torch.randint(shape.vocabulary, (sequences, shape.sequence_length + 1))
    seconds = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        model.loss(text[:, :-1], text[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    return seconds[2:], parameter_count(model)


def ours(program, model_arguments, length, sequences, steps, threads):
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "profile.json"
        command = [program, "profile", *model_arguments, "--sequence-length", str(length), "--micro-batch-sequences",
                   str(sequences), "--device", "cpu", "--dtype", "fp32", "--threads", str(threads), "--steps", str(steps),
                   "--warmup", "2", "--time-budget", "1h", "--output", str(output)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        point = json.loads(output.read_text())["points"][0]
    return [sum(part for name, part in sample.items() if name.endswith("_s")) for sample in point["samples"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fomoe-train")
    parser.add_argument("--model", default="small", choices=sorted(PRESETS))
    parser.add_argument("--scenario", help="train the model of this scenario file (shape keys) instead of --model")
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=2, help="sequences per step (default: 2)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps per turn (default: 5)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--at-least", type=float, default=0, metavar="R", help="lowest accepted ratio (default: 0)")
    arguments = parser.parse_args()
    shape, model_arguments = PRESETS[arguments.model], ["--model", arguments.model]
    if arguments.scenario:
        with open(arguments.scenario, "rb") as file:
            table = tomllib.load(file)["model"]
        keys = ("d_model", "layers", "heads", "experts", "active_experts", "d_expert", "vocabulary")
        shape = Shape("custom", **{key: table[key] for key in keys})
        model_arguments = ["--scenario", arguments.scenario, "--local-experts", str(shape.experts)]
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)

    length, sequences = arguments.sequence_length, arguments.sequences
    shape = dataclasses.replace(shape, sequence_length=length)
    eager, own, parameters = [], [], 0
    for turn in range(arguments.turns):
        own += ours(arguments.program, model_arguments, length, sequences, arguments.steps, arguments.threads)
        seconds, parameters = eager_steps(shape, sequences, arguments.steps)
        eager += seconds
    tokens = length * sequences
    own_s, eager_s = statistics.median(own), statistics.median(eager)
    print(f"{parameters:,} parameters, {sequences} x {length} tokens per step, {arguments.threads} threads, "
          f"median of {len(own)} steps")
    print(f"fomoe-train    {own_s * 1e3:9.1f} ms  {tokens / own_s:10.0f} tokens/s")
    print(f"eager PyTorch  {eager_s * 1e3:9.1f} ms  {tokens / eager_s:10.0f} tokens/s   (torch {torch.__version__})")
    print(f"ratio          {eager_s / own_s:9.2f}")
    return 1 if eager_s / own_s < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
