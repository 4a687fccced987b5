#!/usr/bin/env python3
"""Prints the results of `measure_gpu.sh --output FOLDER` with their goals. Results of stages that have not run are listed
as not measured.

    python3 experiments/gpu_summary.py FOLDER
    python3 experiments/gpu_summary.py FOLDER --accelerator H100-SXM      # MFU relative to this accelerator's peak

Times are medians of steps. Exit status: 0 whatever the figures, 2 wrong usage.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TWO_SITES = ROOT / "experiments/scenarios/two-sites.toml"  # any scenario would do, since the model is replaced
PARTS = ("forward_s", "backward_s", "optimizer_s")


class Missing(Exception):
    """A figure needs a file of a stage that has not run, or a point that was not measured."""


def read(path):
    unfinished = path.parent.with_name(path.parent.name + ".part") / path.name  # where a stage failed after this file
    for candidate in (path, unfinished):
        if candidate.exists():
            return json.loads(candidate.read_text())
    raise Missing(f"{path.parent.name}/{path.name}")


def step_s(profile, sequences, held, parts=PARTS):
    for point in profile["points"]:
        if (point["micro_batch_sequences"], point["local_experts"]) == (sequences, held):
            return statistics.median(sum(sample[part] for part in parts) for sample in point["samples"])
    raise Missing(f"a point of {sequences} sequences and {held} experts")


def gradients_s(profile, sequences, held):
    return step_s(profile, sequences, held, PARTS[:2])


def held_of(profile, sequences=1):
    return sorted(point["local_experts"] for point in profile["points"] if point["micro_batch_sequences"] == sequences)


def off(estimate, truth):
    return abs(estimate / truth - 1)


class Summary:
    def __init__(self, folder, fomoe, accelerator):
        self.folder, self.fomoe, self.accelerator = folder, fomoe, accelerator

    def profile(self, name):
        return read(self.folder / name)

    def kernels(self, name, form="own", **shape):
        rows = read(self.folder / "kernels/kernels.json")["kernels"]
        return [row for row in rows if row["kernel"] == name and row["kernels"] == form
                and all(row["shape"][key] == value for key, value in shape.items())]

    def ask_fomoe(self, *arguments):
        done = subprocess.run([self.fomoe, *map(str, arguments), "--output", "-"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"fomoe {arguments[0]}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def cost(self, model, *settings):
        """The cost of one GPU that holds the whole model. The method is ddp, which keeps no outer state."""
        return self.of_scenario("cost", TWO_SITES.read_text(), model, "strategy.method=ddp", *settings)

    def of_scenario(self, command, scenario, model, *settings):
        """The answer of a command for the scenario with this model."""
        keys = ["d_model", "layers", "heads", "experts", "active_experts", "d_expert", "vocabulary", "sequence_length"]
        settings = [f"model.{key}={model[key]}" for key in keys] + list(settings)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(scenario.replace('preset = "small"', ""))
            file.flush()
            return self.ask_fomoe(command, file.name, *(word for setting in settings for word in ("--set", setting)))

    def estimated_step_s(self, profile_path, held):
        """The step time that fomoe derives from the profile for a site that holds `held` experts in each layer and computes one
        sequence per step. The scenario's sites M and overlap O_e give N_le = O_e·N_e/M = held."""
        model = read(profile_path)["model"]
        common = math.gcd(model["experts"], held)
        sites, overlap = model["experts"] // common, held // common
        scenario = TWO_SITES.read_text().replace('step_time = "420ms"', f'profile = "{profile_path.resolve()}"\nmicro_batch_sequences = 1')

        def round_s(steps):
            run = self.of_scenario("simulate", scenario, model, f"platform.sites={sites}", f"strategy.expert_overlap={overlap}",
                                   f"workload.global_batch_sequences={sites}", f"strategy.local_steps={steps}",
                                   f"workload.tokens={steps * sites * model['sequence_length']}")
            return run["round"]["compute_s"]
        return (round_s(65) - round_s(1)) / 64  # without the outer step

    # Each of the following methods yields rows of three texts: what is measured, its value, its goal.

    def graph(self):
        by_graph, by_host = self.profile("graph/small-by-graph.json"), self.profile("graph/small-by-host.json")
        for held in held_of(by_graph):
            graph_s, host_s = step_s(by_graph, 1, held), step_s(by_host, 1, held)
            yield f"small, {held} experts held: step time by CUDA graph and kernel by kernel", \
                f"{graph_s * 1e3:.2f} and {host_s * 1e3:.2f} ms", "CUDA graph is faster"

    def composition(self, model, shallow, deep, whole):
        whole = self.profile(whole)
        composed = self.ask_fomoe("profile", "compose", self.folder / shallow, self.folder / deep, "--layers", whole["model"]["layers"])
        errors = [off(step_s(composed, 1, held), step_s(whole, 1, held)) for held in held_of(whole) if held in held_of(composed)]
        yield f"{model}, {whole['model']['layers']} layers: error of composed against timed steps, worst of {len(errors)} expert counts", \
            f"{max(errors):.1%}", "3 %"

    def interpolation(self):
        held_out = self.profile("composition/medium-held-out.json")
        errors = [off(self.estimated_step_s(self.folder / "medium/medium.json", held), step_s(held_out, 1, held))
                  for held in held_of(held_out)]
        yield f"medium: error of interpolation between expert counts, median of {len(errors)} held-out counts", f"{statistics.median(errors):.1%}", "3 %"

    def memory(self, name, stage=None):
        profile = self.profile(f"{stage or name}/{name}.json")
        path = self.folder / f"{stage or name}/{name}.json"
        for point in profile["points"]:
            if point["local_experts"] != profile["model"]["experts"]:
                continue
            sequences = point["micro_batch_sequences"]
            scenario = TWO_SITES.read_text().replace('step_time = "420ms"', f'profile = "{path.resolve()}"')
            model = self.of_scenario("cost", scenario, profile["model"], "strategy.method=ddp", f"compute.micro_batch_sequences={sequences}",
                                     f"workload.global_batch_sequences={2 * sequences}")["memory_bytes_per_gpu"]
            yield f"{name}, {sequences} sequences: measured peak memory and memory model", \
                f"{point['peak_memory_bytes'] / 2**30:.2f} and {model / 2**30:.2f} GiB, {off(model, point['peak_memory_bytes']):.0%} difference", "5 %"

    def skip_token(self):
        rows = self.kernels("expert FFN forward and backward")
        whole = {row["shape"]["d"]: row for row in rows if row["shape"]["local_experts"] == row["shape"]["experts"]}
        for row in rows:
            shape, full = row["shape"], whole[row["shape"]["d"]]
            if row is full:
                continue
            ideal_s = full["seconds"] * shape["computed_share"] / full["shape"]["computed_share"]
            yield f"expert FFN, d = {shape['d']}, {1 - shape['computed_share']:.1%} ghosts: share of the ideal speed-up", \
                f"{ideal_s / row['seconds']:.1%}", "95 %"

    def skip_token_model(self):
        """The ideal speed-up of the forward and backward passes by Amdahl's law: the time of the expert FFN, as measured with all experts held, falls in proportion to
        the ghosts."""
        profile = self.profile("skip/medium-skip-token.json")
        model = profile["model"]
        full_s = gradients_s(profile, 1, model["experts"])
        try:
            rows = self.kernels("expert FFN forward and backward", d=model["d_model"], experts=model["experts"],
                                local_experts=model["experts"])
        except Missing:
            rows = []
        expert_s = None
        if rows:
            expert_s = rows[0]["seconds"] * model["layers"] * model["sequence_length"] / rows[0]["shape"]["tokens"]
        for held in held_of(profile):
            ghosts = 1 - held / model["experts"]
            ideal = f"; ideal {full_s / (full_s - expert_s * ghosts):.3f}" if expert_s else ""
            yield f"medium, {ghosts:.1%} ghosts: speed-up of forward and backward", f"{full_s / gradients_s(profile, 1, held):.3f}{ideal}", "the ideal speed-up"

    def peers(self, model, ours, eager, compiled):
        ours = self.profile(ours)
        held = ours["model"]["experts"]
        tokens = ours["model"]["sequence_length"]
        ours_s = step_s(ours, 1, held)
        yield f"{model}: tokens/s, one sequence", f"{tokens / ours_s:,.0f}", ""
        yield f"{model}: speed relative to torch.compile", f"{step_s(self.profile(compiled), 1, held) / ours_s:.2f}x", "1.2x"
        eager_s = min(step_s(self.profile(name), 1, held) for name in eager)
        yield f"{model}: speed relative to eager PyTorch", f"{eager_s / ours_s:.2f}x", "1.5x"

    def skip_token_peer(self, form):
        profile = self.profile(f"skip_peer/medium-skip-{form}.json")
        full_s = gradients_s(profile, 1, profile["model"]["experts"])
        for held in held_of(profile):
            ghosts = 1 - held / profile["model"]["experts"]
            yield f"medium in PyTorch, {form}, {ghosts:.1%} ghosts: speed-up of forward and backward", \
                f"{full_s / gradients_s(profile, 1, held):.2f}", "1.4 (the paper's)"

    def shared(self, name, processes):
        """How much longer a step takes if several processes share the GPU."""
        alone, shared = self.profile(f"{name}/{name}.json"), self.profile(f"shared{processes}/{name}-1.json")
        for held in held_of(shared):
            factor = step_s(shared, 1, held) / step_s(alone, 1, held)
            yield f"{name}, {held} experts held: step of one of {processes} processes, relative to one alone", f"{factor:.2f}x", f"{processes}x"

    def sums(self, name, stage=None):
        for point in self.profile(f"{stage or name}/{name}.json")["points"]:
            if "accumulation_s" in point and point["local_experts"] == max(held_of(self.profile(f"{stage or name}/{name}.json"))):
                yield f"{name}, {point['micro_batch_sequences']} sequences: adding a micro-batch's gradients to those of the step", \
                    f"{point['accumulation_s'] * 1e3:.2f} ms", ""

    def mfu(self, name, stage=None):
        """MFU with all experts held, where both accountings of skip-token agree. Attention is counted in two ways."""
        profile = self.profile(f"{stage or name}/{name}.json")
        peak = self.peak_flop_per_s()
        sequences = max(point["micro_batch_sequences"] for point in profile["points"])
        tokens_per_s = sequences * profile["model"]["sequence_length"] / step_s(profile, sequences, profile["model"]["experts"])
        cost = self.cost(profile["model"])
        for counted, not_counted in (("the full square", 0), ("its causal half", cost["flops"]["attention_per_token"] / 2)):
            yield f"{name}, {sequences} sequences: MFU, attention over {counted}", \
                f"{tokens_per_s * (cost['flops_per_token'] - not_counted) / peak:.1%} of {self.accelerator}", ""

    def peak_flop_per_s(self):
        done = subprocess.run([self.fomoe, "list", "accelerators"], capture_output=True, text=True)
        for line in done.stdout.splitlines()[1:]:
            words = line.split()
            if words[0] == self.accelerator:
                return float(words[1]) * 1e12
        raise Missing(f"--accelerator {self.accelerator} is not in `fomoe list accelerators`")

    def expert_rate(self):
        rates = {rate["d"]: rate["flop_per_s"] for rate in read(self.folder / "rates/rates.json")["rates"] if rate["kind"] == "matmul"}
        for row in self.kernels("expert FFN forward and backward"):
            shape = row["shape"]
            if shape["local_experts"] != shape["experts"] or shape["d"] not in rates:
                continue
            # The FFN has two matrix products forward and four backward.
            flop = 6 * 2 * shape["tokens"] * shape["active_experts"] * shape["d"] * shape["d_expert"]
            yield f"expert FFN, d = {shape['d']}: share of a plain matrix product's rate", f"{flop / row['seconds'] / rates[shape['d']]:.0%}", \
                "60 %" if shape["d"] >= 2048 else ""

    def bandwidth(self):
        copy = self.kernels("copy", "library")[0]["bytes_per_s"]
        for name in ("encode_blocks", "decode_blocks", "largest_of_groups", "outer step (Nesterov)", "AdamW"):
            for row in self.kernels(name):
                shape = ", ".join(f"{key} {value:g}" for key, value in row["shape"].items() if key in ("bits", "share"))
                yield f"{name}{', ' if shape else ''}{shape}: share of a copy's bandwidth", f"{row['bytes_per_s'] / copy:.0%}", "80 %"

    def sanitizer(self):
        log, ended = self.folder / "sanitizer/log.txt", "all runs ended"
        if not log.exists():
            log, ended = self.folder / "sanitizer.part/log.txt", "the stage did not end: other kernels were not checked"
        if not log.exists():
            raise Missing("sanitizer/log.txt")
        found = [line.removeprefix("=========").strip() for line in log.read_text().splitlines() if "SUMMARY" in line]
        yield f"compute-sanitizer on the kernels' tests; {ended}", "; ".join(found) or "not run", "0 errors"

    def beside_library(self):
        for row in read(self.folder / "kernels/kernels.json")["kernels"]:
            if row["kernels"] != "own":
                continue
            for other in self.kernels(row["kernel"], "library", **row["shape"]):
                shape = ", ".join(f"{key} {value:.4g}" for key, value in row["shape"].items())
                yield f"{row['kernel']}, {shape}: speed relative to LibTorch's operators", \
                    f"{other['seconds'] / row['seconds']:.2f}x", "1.0x"

    def all(self):
        eager = "eager/medium-eager" if (self.folder / "eager").exists() else "skip_peer/medium-skip"
        medium_eager = [f"{eager}-loop.json", f"{eager}-grouped.json"]
        return [
            ("Launches", [lambda: self.graph()]),
            ("Profiles", [lambda: self.composition("medium", *self.depths("composition", "medium"), "medium/medium.json"),
                          lambda: self.composition("large", *self.depths("large", "large"), "whole/large.json"),
                          lambda: self.interpolation(), lambda: self.memory("small"), lambda: self.memory("medium"), lambda: self.memory("large", "whole"),
                          lambda: self.sums("medium"), lambda: self.sums("large", "whole"), lambda: self.shared("small", 4), lambda: self.shared("medium", 2)]),
            ("Skip-token", [lambda: self.skip_token(), lambda: self.skip_token_model(),
                            lambda: self.skip_token_peer("loop"), lambda: self.skip_token_peer("grouped")]),
            ("Speed", [lambda: self.peers("medium", "medium/medium.json", medium_eager, "compiled/medium-compiled.json"),
                       lambda: self.peers("large, 16 layers", "composition/large-16-layers.json", ["eager/large-16-eager-grouped.json"],
                                          "compiled16/large-16-compiled.json"),
                       lambda: self.mfu("small"), lambda: self.mfu("medium"), lambda: self.mfu("large", "whole")]),
            ("Kernels", [lambda: self.expert_rate(), lambda: self.bandwidth(), lambda: self.sanitizer(),
                         lambda: self.beside_library()]),
        ]

    def depths(self, stage, model):
        def layers(path):
            return json.loads(path.read_text())["model"]["layers"]
        found = sorted((self.folder / stage).glob(f"{model}-[0-9]*-layers.json"), key=layers)
        if len(found) < 2:
            raise Missing(f"{stage}/{model}-…-layers.json")
        return [path.relative_to(self.folder) for path in found[:2]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fomoe", default=str(ROOT / "build/release/bin/fomoe"), help="the program (default: %(default)s)")
    parser.add_argument("--accelerator", default="H200-SXM", help="a name from `fomoe list accelerators` (default: %(default)s)")
    options = parser.parse_args()
    if not (options.folder / "machine.txt").exists():
        parser.error(f"got {options.folder}, without machine.txt; expected a folder that measure_gpu.sh wrote")
    machine = (options.folder / "machine.txt").read_text()
    if "a rehearsal" in machine:
        print("A rehearsal: none of this is a measurement.")
    for title, figures in Summary(options.folder, options.fomoe, options.accelerator).all():
        print(f"\n{title}")
        for figure in figures:
            try:
                for what, measured, goal in figure():
                    print(f"  {what:<88} {measured:<28} {'goal: ' + goal if goal else ''}".rstrip())
            except Missing as missing:
                print(f"  not measured: {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
