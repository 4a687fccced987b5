"""A second, plain implementation of what `fomoe cost` and `fomoe simulate` compute, written from the paper and the documentation.

A scenario is a dict with the keys of a scenario file. Names of equations are those of the FoMoE paper (arXiv 2606.19025).
Where the documentation leaves a choice open, a comment that begins with "Ambiguous" states the choice that fomoe makes.
"""

import math
import re

import flows
import methods

UNITS = {"bps": 1 / 8, "Gbps": 1e9 / 8, "ms": 1e-3, "s": 1.0, "TFLOPS": 1e12}
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "int2": 2}  # int: and a scale per 256 values


def quantity(text):
    """Converts a value with a unit to SI (bytes, seconds, FLOP/s)."""
    number, unit = re.fullmatch(r"([0-9.eE+-]+?)([A-Za-z]+)", text).groups()
    return float(number) * UNITS[unit]


class Scenario:
    """The values of a scenario in SI units, with the documented defaults."""

    def __init__(self, keys):
        model, work, plan = keys["model"], keys["workload"], keys["strategy"]
        self.compute, self.gpus = keys["compute"], keys["compute"].get("gpus_per_site", 1)
        platform, network = keys["platform"], keys.get("network_model", {})
        self.d, self.layers, self.experts, self.active, self.d_expert, self.vocabulary, self.sequence = (
            model[key] for key in ("d_model", "layers", "experts", "active_experts", "d_expert", "vocabulary", "sequence_length"))
        self.method, self.sites, self.collective = plan["method"], platform["sites"], plan.get("collective", "ring")
        # Optimiser steps = ceil(tokens / batch) and rounds = ceil(steps / K); the last round may be short.
        self.batch = work["global_batch_sequences"]
        self.local_steps = 1 if self.method in methods.EVERY_STEP else plan.get("local_steps", 1)
        self.steps = -(-work["tokens"] // (self.batch * self.sequence))
        self.rounds = -(-self.steps // self.local_steps)
        fomoe = self.method == "fomoe"
        self.overlap = plan.get("expert_overlap", self.sites) if fomoe else self.sites
        self.random, self.skip = fomoe and plan.get("placement") == "random", fomoe and plan.get("skip_token", False)
        self.period, self.moment1, self.moment2, self.optimiser, state = (plan.get(key, default) for key, default in (
            ("reshuffle_rounds", 1), ("moment1_period", 3), ("moment2_period", 6), ("outer_optimizer", "nesterov"),
            ("outer_state_on_migration", "")))
        self.transfer_state = state == "transfer"
        self.regions, self.global_period, self.gossip_peers, self.overlap_steps, self.micro_batches = (plan.get(key, default) for key, default in (
            ("regions", 1), ("global_period", 4), ("gossip_peers", 1), ("overlap_steps", 0 if fomoe else 1), ("micro_batches", 8)))
        self.module_levels, self.module_choices, self.stage_sites, self.capacity, self.max_sites = (plan.get(key, default) for key, default in (
            ("module_levels", 1), ("module_choices", 1), ("stage_sites", 1), ("capacity_factor", 1), ("max_sites_per_token", math.inf)))
        self.halves = 2 if plan.get("overlap_dispatch") else 1
        # Rows of the busiest site ÷ mean. Ambiguous: no site of hash has more than all rows.
        rows, fullest = self.batch * self.sequence * self.active, plan.get("router") == "hash" and "capacity_factor" not in plan
        self.busiest = min(self.sites, 1 + math.sqrt(2 * math.log(self.sites) * self.sites / rows)) if fullest else 1
        self.sharding, self.schedule = plan.get("sharding", "full_shard"), plan.get("schedule", "gpipe")
        # A unit of fsdp is a layer, and a fragment of streaming_diloco has three. fomoe has one fragment by default.
        usual = {"fsdp": self.layers, "fomoe": 1}.get(self.method, -(-self.layers // 3))
        self.fragments = plan.get("fragments", usual)
        own = {"streaming_diloco": "int4", "diloco_x": "int4", "sparse_loco": "int2", "demo": "fp32"}.get(self.method, "bf16")
        self.payload_dtype = plan.get("payload_dtype", own)
        exact = BITS[self.payload_dtype] >= 16 and self.method not in ("sparse_loco", "demo")
        self.parameter_dtype = plan.get("parameter_dtype", self.payload_dtype if exact else "bf16")
        self.bits = BITS[self.payload_dtype]
        # Mean bytes of one value on the wire; the closed form does not round scales up to whole blocks.
        self.payload, self.parameter, self.dispatch = (
            BITS[name] / 8 + (4 / 256 if name[:3] == "int" else 0)
            for name in (self.payload_dtype, self.parameter_dtype, plan.get("dispatch_dtype", self.payload_dtype)))
        if plan.get("dispatch_dtype") == "fp8":  # Ambiguous: with a scale per 128 values, as in DeepSeek-V3
            self.dispatch += 4 / 128
        # The copies of all experts are dealt out to the sites in turn, layer after layer: the first site gets most.
        self.held = [-(-(self.layers * self.experts * self.overlap - site) // self.sites) for site in range(self.sites)]
        self.local_experts = self.held[0] / self.layers  # N_le = (O_e / M) N_e of the site that has most, mean over layers
        # Bytes per second of a site's link in each direction that are left for payload, and the one-way latency.
        left = platform.get("rate_factor", 1) * network.get("bandwidth_efficiency", 1) * (1 - network.get("background_share", 0))
        self.up, self.down = (quantity(platform.get(port) or platform.get("bandwidth", "0bps")) * left for port in ("uplink", "downlink"))
        self.latency = quantity(platform.get("latency", "0s")) * network.get("latency_factor", 1)


def parameters(s):
    """Counts the parameters by class: tied embeddings, MHA, up and down expert projections, no biases, Peri-LN scales."""
    counts = {"embedding": s.vocabulary * s.d, "attention": 4 * s.d * s.d * s.layers, "dense_ffn": 0,
              "router": s.d * s.experts * s.layers, "expert": 2 * s.d * s.d_expert * s.experts * s.layers,
              "norm": s.d * (4 * s.layers + 2)}  # two per branch and two branches per layer, plus the embedding's and the last one
    return counts | {"total": sum(counts.values())}


def site_elements(s):
    """Returns the dense elements, those of all experts, and those of one site. The router is dense only with skip-token."""
    counts = parameters(s)
    sparse = counts["expert"] + (0 if s.skip else counts["router"])
    dense = counts["total"] - sparse
    return dense, sparse, dense + sparse * s.held[0] // (s.layers * s.experts)


def flops_per_token(s, accounting="mechanism", site=0):
    """Returns model FLOPs per token of a site by part, with the equations flops_per_token and flops_per_token_st."""
    local = s.held[site] / s.layers
    share = local / s.experts
    ffn_full, gate_full = 6 * 2 * s.d * s.d_expert * s.active * s.layers, 6 * s.d * s.experts * s.layers
    resident = min(s.active, local) / s.active
    # With skip-token, the paper multiplies by sigma_st = N_le / N_e. By the mechanism, a chosen expert is local with
    # probability N_le / N_e whatever k is, and the router scores all experts.
    paper = (share * resident, share) if s.skip else (resident, share)
    ffn, gate = (share, 1.0) if s.skip and accounting == "mechanism" else paper
    parts = {"dense": 6.0 * (s.vocabulary * s.d + 4 * s.d * s.d * s.layers), "attention": 12.0 * s.layers * s.d * s.sequence,
             "expert": ffn * ffn_full, "router": gate * gate_full}
    parts["total"] = sum(parts.values())
    # A repeated forward pass of all blocks: 2 of 6 FLOPs of everything but the unembedding.
    parts["recomputed"] = (parts["total"] - 6.0 * s.vocabulary * s.d) / 3 if s.compute.get("activation_checkpointing") else 0.0
    return parts


def activations(s):
    """Returns the bytes that a site's forward pass keeps (Korthikanti et al. 2022), without masks and matrices of scores."""
    pipeline, stages = s.method == "pipeline_wan", s.sites // s.stage_sites if s.method == "pipeline_wan" else 1
    # Each GPU has a micro-batch of its own, at most its part of the batch; in a pipeline, the GPUs of a site share one.
    of_gpu = math.ceil(s.batch / ((1 if s.method == "centralised" else s.sites) * s.gpus))
    sequences = -(-(s.batch // s.stage_sites) // s.micro_batches) / s.gpus if pipeline else min(s.compute.get("micro_batch_sequences", 0), of_gpu)
    tokens = math.ceil(sequences) * s.sequence
    experts = s.active * s.local_experts / s.experts if s.skip else min(s.active, s.local_experts)
    # fomoe-train keeps the up-projections. Experts at other sites get copies of tokens, and all is kept for each copy.
    elsewhere = s.method in ("expert_parallel_wan", "remote_experts")
    of_expert = 2 * s.d + 2 * s.d_expert if elsewhere else s.d_expert
    layer = (10 + 8) * s.d + 2 * (s.d + experts * s.capacity * of_expert) + 4 * s.experts
    kept, working = (2 * s.d, layer) if s.compute.get("activation_checkpointing") else (layer, 0)
    # The inputs of the two outer norms and of the unembedding, and logits of 2 bytes, in the fewest equal parts below 2 GiB.
    logits = 2 * s.vocabulary * tokens
    last, most = tokens * 3 * 2 * s.d + logits / max(1, math.ceil(logits / 2**31)), 0
    for stage in range(stages):
        flying = 1 if not pipeline else s.micro_batches if s.schedule == "gpipe" else min(s.micro_batches, stages - stage)
        most = max(most, tokens * (flying * s.layers / stages * kept + working) + (last if stage == stages - 1 else 0))
    return s.gpus * most


def memory(s):
    """Returns the steady bytes of one site: 18 per parameter, plus 4 for each value of the outer optimiser's state."""
    counts, held = parameters(s), site_elements(s)[2]
    if s.method in ("expert_parallel_wan", "remote_experts"):
        held = counts["total"] - counts["expert"] + counts["expert"] // s.sites
    elif s.method == "pipeline_wan":  # Ambiguous: the norms beside the layers are divided as the layers are.
        held = (counts["total"] - counts["embedding"]) * s.stage_sites / s.sites + counts["embedding"]
    elif s.method == "fsdp":
        held = counts["total"] / (1 if s.sharding == "hybrid_shard" else s.sites)
    held *= 1 if s.method == "fsdp" else s.gpus  # each GPU of a site has a replica, unless GPUs shard the model
    states = methods.STATES.get(s.method, 0)
    if s.method in ("diloco", "dept", "fomoe"):  # an anchor, and the moments
        states = {"nesterov": 2, "adam": 3, "yogi": 3}.get(s.optimiser, 0)
    outer = 4.0 * states * (held - (s.vocabulary * s.d * s.gpus if s.method == "dept" else 0))
    if s.method in ("streaming_diloco", "fomoe") and s.overlap_steps > 0:  # a fragment that travels while the site trains on
        outer += 4.0 * (s.vocabulary * s.d * s.gpus + (held - s.vocabulary * s.d * s.gpus) / s.fragments)
    on_host = s.compute.get("outer_state_on") == "host"  # Ambiguous: the replicas of a site share one copy on the host.
    moments = 4 if s.method == "demo" else 8  # one momentum instead of AdamW's two moments
    table = {"weights": 2.0 * held, "master_weights": 4.0 * held, "moments": moments * held}
    if s.sharding == "shard_grad_op":  # Ambiguous: each GPU of a site keeps the weights that its site does not gather.
        table["weights"] *= s.gpus
    table |= {"gathered_weights": 0.0, "activations": activations(s)}
    table |= {"gradients": 4.0 * held, "outer_state": 0.0 if on_host else outer, "host": outer / s.gpus if on_host else 0.0}
    if s.method == "fsdp":
        # The unit in computation and the next one; the first unit, with the embedding, is the largest. shard_grad_op keeps all of them.
        # Ambiguous: the norms beside the layers are divided as the layers are.
        unit, first = [(counts["total"] - counts["embedding"]) / s.fragments + table for table in (0, counts["embedding"])]
        gathered = counts["total"] * (1 - 1 / s.sites) if s.sharding == "shard_grad_op" else min(first + unit, counts["total"])
        # A unit's gradient before its sum over the sites, or all of them if they are summed once in a step.
        own = first if s.sharding in ("full_shard", "hybrid_shard") else counts["total"]
        table |= {"gathered_weights": 2.0 * s.gpus * gathered, "gradients": table["gradients"] + 4.0 * s.gpus * own}
    return table | {"total": sum(value for name, value in table.items() if name != "host")}


def expert_passes(s):
    """Returns the forward and the backward pass of all experts, as shares of a step that computes neither padding nor a pass again."""
    flops = flops_per_token(s)
    pass_of, again = flops["expert"] / 3 / (flops["total"] + flops["recomputed"]), bool(s.compute.get("activation_checkpointing"))
    # The hosts of remote experts keep nothing of a forward pass, and repeat it in the backward pass.
    return pass_of, pass_of * (2 + again), pass_of if s.method == "remote_experts" else 0.0


def step_time(s):
    """Returns the seconds of a step at the slowest site and the mean over the sites; sequences are dealt out evenly."""
    forward, backward, again = expert_passes(s)
    more = 1 + again + (s.capacity - 1) * (forward + backward)  # a buffer is computed whole
    # Only the first site of centralised training computes.
    sites = 1 if s.method == "centralised" else s.sites
    if "step_time" in s.compute:
        seconds = quantity(s.compute["step_time"]) * more
        return seconds, seconds * sites / s.sites
    rate = s.compute["mfu"] * quantity(s.compute["peak_flops"]) * s.gpus
    per_sequence = [s.sequence * flops_per_token(s, site=site)["total"] * more / rate for site in range(sites)]
    # Each stage of a pipeline computes its part of the layers for the whole batch of the pipeline.
    pipeline = s.method == "pipeline_wan"
    seconds = [(s.batch / sites if pipeline else s.batch // sites + (site < s.batch % sites)) * own for site, own in enumerate(per_sequence)]
    return max(seconds), sum(seconds) / s.sites


def mean_round(s):
    """Returns the methods.Round of the scenario."""
    flops, (dense, sparse, _) = flops_per_token(s), site_elements(s)
    s.forward = flops["total"] / 3 / (flops["total"] + flops["recomputed"])  # its share of a step
    # The unembedding's forward pass, as a share of the forward pass and of a step; its backward pass takes twice as long.
    s.head = 6.0 * s.vocabulary * s.d / flops["total"]
    s.head_of_step = s.head * s.forward
    s.expert_passes = expert_passes(s)
    return methods.ROUNDS[s.method](s, dense, sparse, step_time(s)[0])


def sent_bytes(s):
    """Returns the mean bytes that a site sends per round, by category."""
    return {"dense": 0.0, "expert_sync": 0.0, "migration": 0.0, "activations": 0.0} | mean_round(s).sent


def report(s):
    """Returns the closed form's answer for equal sites and ideal hosts."""
    (slowest, mean), sent, tokens = step_time(s), sum(sent_bytes(s).values()), s.steps * s.batch * s.sequence
    one = mean_round(s)
    parts = [(s.batch // s.sites + (site < s.batch % s.sites)) / s.batch for site in range(s.sites)]
    flops = sum(part * flops_per_token(s, site=site)["total"] for site, part in enumerate(parts))
    wall, busy = s.steps * slowest + s.rounds * (one.exposed + one.idle), s.steps * mean
    return {"wall_clock_s": wall, "compute_utilization": busy / wall, "tokens_per_s": tokens / wall, "optimizer_steps": s.steps,
            "bytes_sent_per_site_per_round": sent, "bytes_per_token": sent * s.sites * s.rounds / tokens,
            "flops_per_token": flops, "round.count": s.rounds, "round.duration_s": wall / s.rounds,
            "round.compute_s": busy / s.rounds, "round.exposed_communication_s": one.exposed}


def chunk_bytes(s, parts):
    """Returns the bytes of the chunks of an all-reduce of the whole model, with a scale for every begun block of 256 values."""
    # Each payload (dense and experts, and each of their moments) is divided by itself; the first chunks have one element more.
    name, copies = (s.payload_dtype, 1) if s.method in ("ddp", "diloco") else (s.parameter_dtype, 3 if s.method == "local_adamw" else 1)
    elements = [[total // parts + (c < total % parts) for total in site_elements(s)[:2]] for c in range(parts)]
    return [copies * sum(-(-count * BITS[name] // 8) + (-4 * (-count // 256) if name[:3] == "int" else 0) for count in chunk)
            for chunk in elements]


def simulated_wall_clock(s, sites, paths, default_latency):
    """Simulates all rounds of a method between sites with unequal links; paths maps (i, j) to (latency, rate or None)."""
    n, parts, left, ready = len(sites), chunk_bytes(s, len(sites)), s.steps, [0.0] * len(sites)
    capacity = {(port, i): site[port] for i, site in enumerate(sites) for port in ("uplink", "downlink")}
    capacity |= {("path", pair): rate for pair, (_, rate) in paths.items() if rate}
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    links = {(i, j): [link for link in (("uplink", i), ("path", (i, j)), ("downlink", j)) if link in capacity] for i, j in pairs}
    latency = {pair: paths.get(pair, (default_latency, None))[0] for pair in pairs}
    while left > 0:
        ready = [time + min(s.local_steps, left) * step_time(s)[0] for time in ready]
        ready = (flows.direct if s.collective == "direct" else flows.ring)(ready, parts, links, capacity, latency)
        left -= s.local_steps
    return max(ready)
