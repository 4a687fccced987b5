#!/usr/bin/env python3
"""Measures reference rates of this device for kernels: matrix products, grouped products, copies. Writes JSON.

    python3 experiments/twin/kernel_rates.py --output rates.json          # on a GPU, in bf16, with the presets' sizes
    python3 experiments/twin/kernel_rates.py --rehearse --output -        # tiny sizes; runs on a CPU too

matmul is [tokens, d]·[d, d]. grouped is [tokens·k, d]·[N, d, d_e], the product of an expert layer with equally loaded experts.
copy counts bytes read plus bytes written. Each time is the median of several calls after warm-up. Rates count useful work
only, in FLOP/s and B/s.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F


def median_seconds(work, cuda, calls):
    for _ in range(3):
        work()
    if cuda:
        torch.cuda.synchronize()
    times = []
    for _ in range(calls):
        if cuda:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(1e-3 * begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def matmul(tokens, d, cuda, device, calls):
    a = torch.randn(tokens, d, device=device, dtype=torch.bfloat16)
    b = torch.randn(d, d, device=device, dtype=torch.bfloat16)
    seconds = median_seconds(lambda: a @ b, cuda, calls)
    return {"kind": "matmul", "tokens": tokens, "d": d, "seconds": seconds, "flop_per_s": 2 * tokens * d * d / seconds}


def grouped(tokens, d, hidden, experts, chosen, cuda, device, calls):
    rows = tokens * chosen
    x = torch.randn(rows, d, device=device, dtype=torch.bfloat16)
    w = torch.randn(experts, d, hidden, device=device, dtype=torch.bfloat16)
    ends = torch.arange(1, experts + 1, device=device, dtype=torch.int32) * (rows // experts)
    seconds = median_seconds(lambda: F.grouped_mm(x, w, offs=ends), cuda, calls)
    used = rows // experts * experts
    return {"kind": "grouped", "tokens": tokens, "d": d, "d_expert": hidden, "experts": experts, "active_experts": chosen,
            "seconds": seconds, "flop_per_s": 2 * used * d * hidden / seconds}


def copy(count, cuda, device, calls):
    a, b = torch.empty(count, device=device, dtype=torch.uint8), torch.empty(count, device=device, dtype=torch.uint8)
    seconds = median_seconds(lambda: b.copy_(a), cuda, calls)
    return {"kind": "copy", "bytes": count, "seconds": seconds, "bytes_per_s": 2 * count / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="use tiny sizes, and the CPU if there is no GPU")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    cuda = torch.cuda.is_available()
    if not cuda and not options.rehearse:
        parser.error("expected a GPU; --rehearse runs without one")
    device, calls = ("cuda", 20) if cuda else ("cpu", 3)
    rates = []
    for d in [32] if options.rehearse else [1024, 2048, 4096]:
        rates.append(matmul(64 if options.rehearse else 16384, d, cuda, device, calls))
    for d, hidden, experts, chosen in [(32, 16, 4, 2)] if options.rehearse else [(1024, 128, 32, 8), (2048, 128, 64, 16),
                                                                                 (4096, 128, 128, 32)]:
        rates.append(grouped(64 if options.rehearse else 8192, d, hidden, experts, chosen, cuda, device, calls))
    rates.append(copy(1 << (16 if options.rehearse else 30), cuda, device, calls))
    name = torch.cuda.get_device_name() if cuda else "cpu"
    text = json.dumps({"device": name, "versions": f"PyTorch {torch.__version__}", "rates": rates}, indent=2) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
        return
    temporary = f"{options.output}.{os.getpid()}.tmp"
    pathlib.Path(temporary).write_text(text)
    os.replace(temporary, options.output)


if __name__ == "__main__":
    main()
