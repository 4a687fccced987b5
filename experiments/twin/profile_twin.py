#!/usr/bin/env python3
"""Measures step times of the Python twin and writes a step profile, in the format of `fomoe-train profile`.

    .venv/bin/python experiments/twin/profile_twin.py --model small --sequence-length 128 --output eager.json
    .venv/bin/python experiments/twin/profile_twin.py --model medium --mode compile --experts grouped --output compiled.json
    build/release/bin/fomoe simulate experiments/scenarios/two-sites.toml --set compute.profile=eager.json

The optimizer is PyTorch's fused AdamW. A step has three parts: forward computes the loss, backward the gradients, and
optimizer is the optimizer's step including the release of the gradients.
"""

import argparse
import collections
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import resource
import shlex
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from twin import PRESETS, Model, Shape

FEWEST_STEPS = 3


class Clock:
    """Marks the time between the parts of a step: on a GPU with events on its stream, so that the GPU does not wait for the host;
    on a CPU by wall clock."""

    def __init__(self, cuda):
        self.cuda, self.marks = cuda, []

    def mark(self):
        if self.cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())

    def parts(self):
        if self.cuda:
            self.marks[-1].synchronize()
            times = [1e-3 * a.elapsed_time(b) for a, b in zip(self.marks, self.marks[1:])]
        else:
            times = [b - a for a, b in zip(self.marks, self.marks[1:])]
        return dict(zip(("forward_s", "backward_s", "optimizer_s"), times))


def start_step(loss_of, optimizer, tokens, targets, cuda):
    clock = Clock(cuda)
    clock.mark()
    loss = loss_of(tokens, targets)
    clock.mark()
    loss.backward()
    clock.mark()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    clock.mark()
    return clock


def timed_steps(start, cuda):
    """Yields the times of successive steps. On a GPU the next step is queued before a step is waited for. Otherwise the GPU would
    wait while the host launches a step's first work, and that time would count as forward."""
    clocks = collections.deque()
    while True:
        while len(clocks) < (2 if cuda else 1):
            clocks.append(start())
        yield clocks.popleft().parts()


def peak_memory_bytes(cuda):
    return torch.cuda.max_memory_allocated() if cuda else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_point(shape, sequences, held, options):
    """Measures one point of the profile with a fresh model: warm-up steps, then timed steps."""
    cuda = options.device == "cuda"
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(options.seed)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[options.dtype]
    model = Model(shape, held, options.skip_token, options.experts, dtype, options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0, fused=True)
    loss_of = model.loss
    if options.mode == "compile":
        loss_of = torch.compile(model.loss, mode=options.compile_mode, dynamic=False)
    text = torch.randint(shape.vocabulary, (sequences, shape.sequence_length + 1), device=options.device)
    tokens, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    steps = timed_steps(lambda: start_step(loss_of, optimizer, tokens, targets, cuda), cuda)
    for _ in range(options.warmup):
        next(steps)
    samples, spent = [], 0.0
    while len(samples) < options.steps and (len(samples) < FEWEST_STEPS or spent < options.time_budget):
        samples.append(next(steps))
        spent += sum(samples[-1].values())
    return {"micro_batch_sequences": sequences, "local_experts": held, "skip_token": options.skip_token,
            "peak_memory_bytes": peak_memory_bytes(cuda), "samples": samples}


def device_name(cuda):
    if cuda:
        return torch.cuda.get_device_name()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown CPU"


def measure(shape, options, progress):
    """The whole profile as a dict of schema fomoe.step-profile/1."""
    cuda = options.device == "cuda"
    points = []
    for sequences in options.micro_batch_sequences:
        for held in options.local_experts:
            point = measure_point(shape, sequences, held, options)
            points.append(point)
            seconds = statistics.median(sum(sample.values()) for sample in point["samples"])
            print(f"{sequences} x {shape.sequence_length} tokens, {held} of {shape.experts} experts: median of "
                  f"{len(point['samples'])} steps {seconds * 1e3:.1f} ms", file=progress)
    driver = f", CUDA runtime {torch.version.cuda}" if cuda else ""
    kind = "pytorch-eager" if options.mode == "eager" else f"pytorch-compile-{options.compile_mode}"
    return {
        "schema": "fomoe.step-profile/1",
        "model": dataclasses.asdict(shape),
        "device_kind": options.device,
        "device_name": device_name(cuda),
        "threads": torch.get_num_threads(),
        "dtype": options.dtype,
        "versions": f"PyTorch {torch.__version__}{driver}",
        "measured_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": shlex.join(["experiments/twin/profile_twin.py", *sys.argv[1:]]),
        "origin": {"kind": f"{kind}, experts {options.experts}", "file": "", "sha256": "", "lines": "",
                   "warmup_dropped": options.warmup, "gpus": 1, "whole_steps": False, "composed": "", "scaled": ""},
        "points": points,
    }


def counts(text):
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise ValueError(text)
    return values


def arguments_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(PRESETS), help="a preset; required unless --shape is given")
    parser.add_argument("--shape", metavar="d_model=…,layers=…", help="a model by its d_model, layers, heads, experts, active_experts, "
                        "d_expert and vocabulary, which are all required")
    parser.add_argument("--layers", type=int, help="number of layers (default: the model's)")
    parser.add_argument("--sequence-length", type=int)
    parser.add_argument("--vocabulary", type=int, help="number of tokens of the vocabulary (default: the model's)")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--compile-mode", choices=["default", "reduce-overhead", "max-autotune"], default="default")
    parser.add_argument("--experts", choices=["loop", "grouped"], default="loop",
                        help="one expert after the other, or one grouped product")
    parser.add_argument("--local-experts", type=counts, metavar="N,…", help="experts held in each layer (default: all)")
    parser.add_argument("--micro-batch-sequences", type=counts, default=[1], metavar="N,…")
    parser.add_argument("--skip-token", action="store_true")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], help="default: bf16 on cuda, fp32 on cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--time-budget", type=float, default=60, metavar="SECONDS", help="limit for the timed steps of each point")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output", required=True, metavar="P.json|-")
    return parser


def shape_of(parser, options):
    if (options.model is None) == (options.shape is None):
        parser.error("expected either --model or --shape; for example --model small")
    if options.model:
        shape = PRESETS[options.model]
    else:
        try:
            given = {key: int(value) for key, value in (pair.split("=") for pair in options.shape.split(","))}
            shape = Shape("custom", **given)
        except (TypeError, ValueError) as error:
            parser.error(f"--shape: got {options.shape!r} ({error}); expected d_model=64,layers=2,heads=2,experts=8,"
                         "active_experts=2,d_expert=32,vocabulary=256")
    if options.layers and options.layers != shape.layers:
        shape = dataclasses.replace(shape, name="custom", layers=options.layers)
    if options.vocabulary and options.vocabulary != shape.vocabulary:
        shape = dataclasses.replace(shape, name="custom", vocabulary=options.vocabulary)
    if options.sequence_length:
        shape = dataclasses.replace(shape, sequence_length=options.sequence_length)
    return shape


def main():
    parser = arguments_parser()
    options = parser.parse_args()
    shape = shape_of(parser, options)
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device: got cuda, but there is no usable CUDA device on this machine; for example --device cpu")
    options.dtype = options.dtype or ("bf16" if options.device == "cuda" else "fp32")
    if options.mode == "compile" and options.experts == "grouped" and options.dtype != "bf16":
        parser.error("--dtype: got fp32 with --mode compile and --experts grouped, whose product PyTorch compiles only for "
                     "bf16; expected bf16; for example --dtype bf16")
    options.local_experts = options.local_experts or [shape.experts]
    if max(options.local_experts) > shape.experts:
        parser.error(f"--local-experts: got {max(options.local_experts)}; expected at most the model's {shape.experts}")
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    text = json.dumps(measure(shape, options, sys.stderr), indent=2) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
        return
    # The file is written under a temporary name, so that nobody reads an incomplete profile.
    temporary = f"{options.output}.{os.getpid()}.tmp"
    pathlib.Path(temporary).write_text(text)
    os.replace(temporary, options.output)


if __name__ == "__main__":
    main()
