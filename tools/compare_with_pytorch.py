#!/usr/bin/env python3
"""Training speed of fomoe-train against the same model in eager PyTorch, on the same cores in the same run.

    .venv/bin/python tools/compare_with_pytorch.py --program build/release/bin/fomoe-train
    .venv/bin/python tools/compare_with_pytorch.py --scenario experiments/scenarios/tiny-training.toml --sequences 16

Both train fp32 with fused AdamW and the same number of threads. They take turns, so that whatever else the machine does
hits both; of each the median step counts. Prints tokens/s of both and the ratio; --at-least R exits 1 where it is lower.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import torch
import torch.nn.functional as F

PRESETS = {
    "small": dict(d_model=256, layers=4, heads=4, experts=8, active_experts=2, d_expert=128, vocabulary=200019),
    "medium": dict(d_model=512, layers=16, heads=8, experts=16, active_experts=4, d_expert=128, vocabulary=200019),
}


class Model(torch.nn.Module):
    """The FoMoE paper's transformer as one would write it in eager PyTorch: experts one after the other."""

    def __init__(self, shape, length):
        super().__init__()
        d, de, n = shape["d_model"], shape["d_expert"], shape["experts"]
        self.shape = shape
        std = 0.02 / (d / 256) ** 0.5

        def matrix(*sizes, scale=std):
            return torch.nn.Parameter(torch.randn(*sizes) * scale)

        def norm():
            return torch.nn.Parameter(torch.ones(d))

        self.embedding = matrix(shape["vocabulary"], d, scale=0.02)
        self.embedding_norm, self.final_norm = norm(), norm()
        self.layers = torch.nn.ModuleList()
        for _ in range(shape["layers"]):
            layer = torch.nn.Module()
            layer.qkv, layer.output, layer.router = matrix(3 * d, d), matrix(d, d), matrix(d, n)
            layer.up = torch.nn.ParameterList(matrix(d, de) for _ in range(n))
            layer.down = torch.nn.ParameterList(matrix(de, d, scale=0.02) for _ in range(n))
            layer.norms = torch.nn.ParameterList(norm() for _ in range(4))
            self.layers.append(layer)
        head = d // shape["heads"]
        angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, head, 2) / head)
        self.register_buffer("cos", angle.cos()[:, None, :])
        self.register_buffer("sin", angle.sin()[:, None, :])

    def norm(self, x, scale):
        return F.layer_norm(x, (x.shape[-1],), scale)

    def rope(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * self.cos - b * self.sin, b * self.cos + a * self.sin), dim=-1)

    def attention(self, layer, x):
        batch, length, d = x.shape
        heads = self.shape["heads"]
        q, k, v = (x @ layer.qkv.t()).view(batch, length, 3, heads, d // heads).unbind(2)
        y = F.scaled_dot_product_attention(self.rope(q).transpose(1, 2), self.rope(k).transpose(1, 2), v.transpose(1, 2),
                                           is_causal=True, scale=heads / d)
        return y.transpose(1, 2).reshape(batch, length, d) @ layer.output.t()

    def moe(self, layer, x):
        flat = x.reshape(-1, x.shape[-1])
        score, chosen = (flat @ layer.router).topk(self.shape["active_experts"], dim=1)
        gate = score.sigmoid()
        y = torch.zeros_like(flat)
        for e in range(self.shape["experts"]):
            token, slot = (chosen == e).nonzero(as_tuple=True)
            rows = F.silu(flat[token] @ layer.up[e]) @ layer.down[e]
            y.index_add_(0, token, rows * gate[token, slot, None])
        return y.view_as(x)

    def loss(self, tokens, targets):
        branch = 4 / self.shape["layers"]
        x = self.norm(F.embedding(tokens, self.embedding), self.embedding_norm)
        for layer in self.layers:
            n = layer.norms
            x = x + branch * self.norm(self.attention(layer, self.norm(x, n[0])), n[1])
            x = x + branch * self.norm(self.moe(layer, self.norm(x, n[2])), n[3])
        x = self.norm(x, self.final_norm) * (256 / self.shape["d_model"])
        logits = x @ self.embedding.t()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def eager_steps(shape, length, sequences, steps):
    torch.manual_seed(42)
    model = Model(shape, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0, fused=True)
    text = torch.randint(shape["vocabulary"], (sequences, length + 1))
    seconds = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        model.loss(text[:, :-1], text[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    return seconds[2:], sum(p.numel() for p in model.parameters())


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
    parser.add_argument("--scenario", help="the model of this scenario file (shape keys) instead")
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=2, help="of one step (default: 2)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps of each turn (default: 5)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--at-least", type=float, default=0, metavar="R")
    arguments = parser.parse_args()
    shape, model_arguments = PRESETS[arguments.model], ["--model", arguments.model]
    if arguments.scenario:
        with open(arguments.scenario, "rb") as file:
            table = tomllib.load(file)["model"]
        shape = {key: table[key] for key in PRESETS["small"]}
        model_arguments = ["--scenario", arguments.scenario, "--local-experts", str(shape["experts"])]
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)

    length, sequences = arguments.sequence_length, arguments.sequences
    eager, own, parameters = [], [], 0
    for turn in range(arguments.turns):
        own += ours(arguments.program, model_arguments, length, sequences, arguments.steps, arguments.threads)
        seconds, parameters = eager_steps(shape, length, sequences, arguments.steps)
        eager += seconds
    tokens = length * sequences
    own_s, eager_s = statistics.median(own), statistics.median(eager)
    print(f"{parameters:,} parameters, {sequences} x {length} tokens a step, {arguments.threads} threads, "
          f"median of {len(own)} steps")
    print(f"fomoe-train    {own_s * 1e3:9.1f} ms  {tokens / own_s:10.0f} tokens/s")
    print(f"eager PyTorch  {eager_s * 1e3:9.1f} ms  {tokens / eager_s:10.0f} tokens/s   (torch {torch.__version__})")
    print(f"ratio          {eager_s / own_s:9.2f}")
    return 1 if eager_s / own_s < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
