#!/usr/bin/env python3
"""Compares the memory that fomoe computes with the peaks that fomoe-train measured on a GPU.

    measured_memory_test.py [--fomoe PROGRAM]     prints each point, and fails if one is more than 5 % off

The profiles of experiments/measured/h200-2026-11-26 were measured with chunks of logits of 512 MiB instead of 2 GiB, and before
rotary positions were applied in place. The prediction is converted to that trainer: a smaller chunk, the sum of the unembedding's
gradient in fp32 where there was more than one chunk, and two more 16-bit elements of d_model for each token and layer.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURED = ROOT / "experiments/measured/h200-2026-11-26"
PROFILES = ["small/small", "medium/medium", "whole/large", "large/large-2-layers", "large/large-18-layers", "xl/xl-2-layers",
            "xl/xl-18-layers", "xxl/xxl-2-layers", "xxl/xxl-8-layers"]
SHAPE = ["d_model", "layers", "heads", "experts", "active_experts", "d_expert", "vocabulary", "sequence_length"]
CHUNK, FORMER_CHUNK = 2 << 30, 512 << 20
MOST = 0.05


def predicted_bytes(fomoe, profile, shape, sequences):
    """Bytes of a GPU that trains one micro-batch in each step, without an outer optimiser and with all experts."""
    command = [fomoe, "simulate", ROOT / "experiments/scenarios/two-sites.toml", "--engine", "closed-form", "--output", "-"]
    settings = {"strategy.method": "ddp", "compute.profile": profile, "compute.micro_batch_sequences": sequences,
                "workload.global_batch_sequences": 2 * sequences, **{f"model.{key}": shape[key] for key in SHAPE}}
    for key, value in [("!model.preset", None), *settings.items()]:
        command += ["--set", key if value is None else f"{key}={value}"]
    answer = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    return json.loads(answer.stdout)["sites"][0]["memory_bytes"]


def of_measured_trainer(now, shape, sequences):
    tokens = sequences * shape["sequence_length"]
    logits = 2 * tokens * shape["vocabulary"]
    unembedding = 4 * shape["vocabulary"] * shape["d_model"]
    sums = unembedding * ((logits > FORMER_CHUNK) - (logits > CHUNK))
    rotated = 4 * shape["d_model"] * tokens * shape["layers"]
    return now + min(FORMER_CHUNK, logits) - min(CHUNK, logits) + sums + rotated


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", default=ROOT / "build/release/bin/fomoe")
    fomoe = parser.parse_args().fomoe
    worst = 0
    for name in PROFILES:
        path = MEASURED / f"{name}.json"
        profile = json.loads(path.read_text())
        shape = profile["model"]
        for point in profile["points"]:
            sequences, peak = point["micro_batch_sequences"], point["peak_memory_bytes"]
            if point["local_experts"] != shape["experts"]:
                continue
            now = predicted_bytes(fomoe, path, shape, sequences)
            then = of_measured_trainer(now, shape, sequences)
            error = then / peak - 1
            worst = max(worst, abs(error))
            print(f"{path.stem:16} {sequences} sequences: {then / 2**30:6.2f} GiB, measured {peak / 2**30:6.2f} GiB, {100 * error:+5.1f} %"
                  f"; with the present trainer {now / 2**30:6.2f} GiB")
    print(f"largest error {100 * worst:.1f} %, allowed {100 * MOST:.0f} %")
    return worst > MOST


if __name__ == "__main__":
    sys.exit(main())
