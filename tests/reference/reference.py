"""A second, plain implementation of what `fomoe cost` and `fomoe simulate` compute, written from the paper and the documentation.

A scenario is a dict with the keys of a scenario file ({"model": {...}, "workload": {...}, ...}). Section and equation
names in the comments are those of the FoMoE paper (arXiv 2606.19025). The module uses the standard library only.
Where the documentation leaves a choice open, a comment that begins with "Ambiguous" states the choice that fomoe makes.
"""

import itertools
import math
import re

UNITS = {"bps": 1 / 8, "kbps": 1e3 / 8, "Mbps": 1e6 / 8, "Gbps": 1e9 / 8, "MBps": 1e6, "us": 1e-6, "ms": 1e-3, "s": 1.0,
         "TFLOPS": 1e12, "GFLOPS": 1e9, "USD": 1.0, "W": 1.0}
# Bytes per value on the wire; the integer formats have one fp32 scale per 256 values. The closed form uses the mean bytes
# per value and does not round scales up to whole blocks.
WIRE = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1 + 4 / 256, "int4": 0.5 + 4 / 256, "int2": 0.25 + 4 / 256}
PSEUDO_GRADIENT_OPTIMISERS = ("nesterov", "adam", "yogi")
METHODS = ("centralised", "ddp", "local_sgd", "fedavg", "diloco", "local_adamw", "des_loc", "dept", "fomoe")


def quantity(text):
    """Converts a value with a unit to SI (bytes, seconds, FLOP/s)."""
    number, unit = re.fullmatch(r"([0-9.eE+-]+?)([A-Za-z]+)", text).groups()
    return float(number) * UNITS[unit]


def ceil_div(a, b):
    """Returns the smallest whole number that is at least a / b."""
    return -(-a // b)


class Scenario:
    """The values of a scenario in SI units, with the documented defaults."""

    def __init__(self, keys):
        model, work, plan = keys["model"], keys["workload"], keys["strategy"]
        self.compute, self.platform = keys["compute"], keys["platform"]
        self.network, self.prices, self.energy = (keys.get(part, {}) for part in ("network_model", "prices", "energy"))
        self.d, self.layers, self.experts = model["d_model"], model["layers"], model["experts"]
        self.active, self.d_expert = model["active_experts"], model["d_expert"]
        self.vocabulary, self.sequence = model["vocabulary"], model["sequence_length"]
        self.tokens, self.batch = work["tokens"], work["global_batch_sequences"]
        self.method, self.sites = plan["method"], self.platform["sites"]
        self.local_steps = 1 if self.method in ("ddp", "centralised") else plan.get("local_steps", 1)
        fomoe = self.method == "fomoe"
        self.overlap = plan.get("expert_overlap", self.sites) if fomoe else self.sites
        self.random = fomoe and plan.get("placement") == "random"
        self.skip = fomoe and plan.get("skip_token", False)
        self.period = plan.get("reshuffle_rounds", 1)
        self.optimiser = plan.get("outer_optimizer", "nesterov")
        self.transfer_state = plan.get("outer_state_on_migration") == "transfer"
        self.moment1, self.moment2 = plan.get("moment1_period", 3), plan.get("moment2_period", 6)
        self.collective = plan.get("collective", "ring")
        self.payload_dtype = plan.get("payload_dtype", "bf16")
        wide = self.payload_dtype in ("fp32", "bf16", "fp16")
        self.payload = WIRE[self.payload_dtype]
        self.parameter = WIRE[plan.get("parameter_dtype", self.payload_dtype if wide else "bf16")]
        # N_le = (O_e / M) N_e, which must be a whole number.
        self.local_experts, rest = divmod(self.overlap * self.experts, self.sites) if fomoe else (self.experts, 0)
        if rest:
            raise ValueError("O_e N_e / M is not a whole number")

    def port(self, direction):
        """Returns the bytes per second of a site's link in one direction that are left for payload."""
        rate = quantity(self.platform.get(direction) or self.platform["bandwidth"]) * self.platform.get("rate_factor", 1)
        return rate * self.network.get("bandwidth_efficiency", 1) * (1 - self.network.get("background_share", 0))

    def latency(self):
        """Returns the one-way latency between two sites."""
        return quantity(self.platform["latency"]) * self.network.get("latency_factor", 1)


def parameters(s):
    """Counts the parameters by class: tied embeddings, MHA, up and down expert projections, no biases, Peri-LN scales."""
    counts = {"embedding": s.vocabulary * s.d, "attention": 4 * s.d * s.d * s.layers, "dense_ffn": 0,
              "router": s.d * s.experts * s.layers, "expert": 2 * s.d * s.d_expert * s.experts * s.layers,
              "norm": s.d * (4 * s.layers + 2)}  # two per branch and two branches per layer, plus the embedding's and the last one
    return counts | {"total": sum(counts.values())}


def site_elements(s):
    """Returns the dense elements and the elements of all experts; the router is dense only with skip-token."""
    counts = parameters(s)
    dense = counts["embedding"] + counts["attention"] + counts["norm"] + (counts["router"] if s.skip else 0)
    return dense, counts["total"] - dense


def elements_on_site(s):
    """Returns the number of parameters that one site holds: all dense ones and N_le / N_e of the experts."""
    dense, sparse = site_elements(s)
    return dense + sparse * s.local_experts // s.experts


def flops_per_token(s, accounting="mechanism"):
    """Returns model FLOPs per token by part, with the equations flops_per_token and flops_per_token_st."""
    share = s.local_experts / s.experts
    ffn_full = 6 * 2 * s.d * s.d_expert * s.active * s.layers
    gate_full = 6 * s.d * s.experts * s.layers
    resident = min(s.active, s.local_experts) / s.active
    if not s.skip:
        ffn, gate = resident, share
    elif accounting == "paper":
        ffn, gate = share * resident, share  # sigma_st = N_le / N_e, times min(k, N_le) / k
    else:
        ffn, gate = share, 1.0  # a chosen expert is local with probability N_le / N_e; the router scores all experts
    parts = {"dense": 6.0 * (s.vocabulary * s.d + 4 * s.d * s.d * s.layers), "attention": 12.0 * s.layers * s.d * s.sequence,
             "expert": ffn * ffn_full, "router": gate * gate_full}
    parts["total"] = sum(parts.values())
    # A repeated forward pass of all blocks: 2 of 6 FLOPs of everything but the unembedding.
    parts["recomputed"] = (parts["total"] - 6.0 * s.vocabulary * s.d) / 3 if s.compute.get("activation_checkpointing") else 0.0
    return parts


def memory(s):
    """Returns the steady bytes of one site: 18 per parameter, plus 4 for each value of the outer optimiser's state."""
    held, (dense, _) = elements_on_site(s), site_elements(s)
    with_optimiser = s.optimiser if s.method in ("diloco", "dept", "fomoe") else {"fedavg": "anchor"}.get(s.method, "none")
    states = {"nesterov": 2, "adam": 3, "yogi": 3, "anchor": 1}.get(with_optimiser, 0)  # an anchor, and the moments
    outer_elements = held - s.vocabulary * s.d if s.method == "dept" else held
    outer = 4.0 * states * outer_elements
    on_host = s.compute.get("outer_state_on") == "host"
    return {"weights": 2.0 * held, "master_weights": 4.0 * held, "moments": 8.0 * held, "gradients": 4.0 * held,
            "outer_state": 0.0 if on_host else outer, "host": outer if on_host else 0.0}


def rounds(s):
    """Returns optimiser steps = ceil(tokens / batch) and rounds = ceil(steps / K); the last round may be short."""
    steps = ceil_div(s.tokens, s.batch * s.sequence)
    return steps, ceil_div(steps, s.local_steps)


def wire(s):
    """Returns (bytes per dense element, bytes per expert element, migrated bytes per migrated expert element), mean per round."""
    count = rounds(s)[1]
    if s.method == "centralised":
        return 0.0, 0.0, 0.0
    if s.method == "ddp":
        return s.payload, s.payload, 0.0
    if s.method == "local_sgd":
        return s.parameter, s.parameter, 0.0
    if s.method == "fedavg":  # pseudo-gradients to the server and parameters back: the mean of both directions
        return (s.payload + s.parameter) / 2, (s.payload + s.parameter) / 2, 0.0
    if s.method == "local_adamw":
        return 3 * s.parameter, 3 * s.parameter, 0.0
    if s.method == "des_loc":  # every K_u-th and every K_v-th round sends a moment with the parameters
        times = 1 + (count // s.moment1 + count // s.moment2) / count
        return times * s.parameter, times * s.parameter, 0.0
    if s.optimiser in PSEUDO_GRADIENT_OPTIMISERS:
        synchronised = s.payload
    else:
        synchronised = s.parameter * (3 if s.optimiser == "local_adamw" else 1)
    # AdamW moments never migrate; the outer moments migrate with the parameters if asked for.
    outer = {"nesterov": 1, "adam": 2, "yogi": 2}.get(s.optimiser, 0) if s.transfer_state else 0
    return synchronised, synchronised, s.parameter * (1 + outer)


def sent_bytes(s):
    """Returns the mean bytes that a site sends per round: equations dense_bytes_cost and sparse_bytes_cost."""
    dense, sparse = site_elements(s)
    if s.method == "dept":
        dense -= s.vocabulary * s.d  # each site keeps its own embedding
    dense_bytes, sparse_bytes, migrated = wire(s)
    m, o = s.sites, s.overlap
    # Ambiguous: gamma = 1 / T even if T does not divide the number of rounds, although only floor(rounds / T) rounds
    # migrate. The moments of des_loc above are counted with floor.
    gamma = 1 / s.period if s.random else 0.0
    held = sparse * o / m
    return {"dense": 2 * (m - 1) / m * dense_bytes * dense, "expert_sync": 2 * (o - 1) / o * sparse_bytes * held,
            "migration": gamma * (1 - o / m) * migrated * held}


def step_time(s):
    """Returns the seconds of a step at the slowest site and the mean over the sites; sequences are dealt out evenly."""
    if "step_time" in s.compute:
        value = quantity(s.compute["step_time"])
        return value, value / s.sites if s.method == "centralised" else value
    rate = s.compute["mfu"] * quantity(s.compute["peak_flops"]) * s.compute.get("gpus_per_site", 1)
    busy = 1 if s.method == "centralised" else s.sites
    per_sequence = s.sequence * flops_per_token(s)["total"] / rate
    return ceil_div(s.batch, busy) * per_sequence, s.batch / s.sites * per_sequence


def transfer_time(s):
    """Returns the seconds of the mean round's transfers between equal sites: hops x latency + bytes / port."""
    if s.sites == 1 or s.method == "centralised":
        return 0.0
    sent, up, down, latency = sent_bytes(s), s.port("uplink"), s.port("downlink"), s.latency()
    slowest = min(up, down)
    if s.method == "fedavg":
        # The M - 1 other sites send to the server, then the server sends to them; one latency each.
        elements, peers = parameters(s)["total"], s.sites - 1
        gather = s.payload * elements * max(1 / up, peers / down)
        return 2 * latency + gather + s.parameter * elements * max(peers / up, 1 / down)
    hops = 2 * (s.sites - 1) if s.collective == "ring" else 2
    seconds = hops * latency + (sent["dense"] + sent["expert_sync"]) / slowest
    if s.random and s.overlap < s.sites:
        seconds += latency / s.period + sent["migration"] / slowest
    return seconds


def report(s):
    """Returns the closed form's answer for equal sites, ideal hosts and no overlap of transfers with steps."""
    steps, count = rounds(s)
    slowest, mean = step_time(s)
    wall = steps * slowest + count * transfer_time(s)
    sent = sum(sent_bytes(s).values())
    flops = flops_per_token(s)["total"]
    gpus = s.sites * s.compute.get("gpus_per_site", 1)
    busy = steps * mean
    answer = {"wall_clock_s": wall, "compute_utilization": busy / wall, "bytes_sent_per_site_per_round": sent,
              "bytes_per_token": sent * s.sites * count / (steps * s.batch * s.sequence), "round.count": count,
              "optimizer_steps": steps, "round.duration_s": wall / count, "flops_per_token": flops,
              "tokens_per_s": steps * s.batch * s.sequence / wall,
              "round.exposed_communication_s": transfer_time(s), "round.compute_s": busy / count}
    if s.prices:
        answer["cost.gpu_cost"] = wall / 3600 * gpus * quantity(s.prices["gpu_hour"])
        answer["cost.egress_cost"] = sent * s.sites * count / 1e9 * quantity(s.prices["egress_per_gb"])
    if s.energy:
        idle = s.energy["idle_share"] * (wall - busy)
        answer["cost.energy_kwh"] = quantity(s.energy["gpu_power"]) * s.energy["pue"] * gpus * (busy + idle) / 3.6e6
    return answer


def chunks(elements, parts):
    """Divides elements into parts that differ by at most one; the first parts are the larger ones."""
    size, larger = divmod(elements, parts)
    return [size + (c < larger) for c in range(parts)]


def fair_rates(flows, capacity):
    """Returns max-min fair rates: the link with the smallest share per flow is filled first, and so on."""
    rates, open_flows, left = {}, dict(flows), dict(capacity)
    while open_flows:
        users = {}
        for flow, links in open_flows.items():
            for link in links:
                users.setdefault(link, []).append(flow)
        tight = min(users, key=lambda link: left[link] / len(users[link]))
        share = left[tight] / len(users[tight])
        for flow in users[tight]:
            rates[flow] = share
            for link in open_flows.pop(flow):
                left[link] = max(0.0, left[link] - share)
    return rates


def ring(ready, elements, width, hop_time):
    """Runs one ring all-reduce; hop_time(i, j, bytes) is the time of a flow alone on its hop. Returns when each site ends.

    A step waits until both sides are ready (tests/oracles/README.md), and a sender waits until its bytes have arrived.
    """
    n, parts = len(ready), chunks(elements, len(ready))
    for step in range(2 * (n - 1)):
        ends = []
        for i in range(n):
            j = (i + 1) % n
            ends.append(max(ready[i], ready[j]) + hop_time(i, j, width * parts[(i - step) % n]))
        ready = [max(ends[i], ends[i - 1]) for i in range(n)]
    return ready


def direct(ready, elements, width, links, capacity, latency):
    """Runs one direct all-reduce as fluid flows with max-min fair rates. Returns when each site ends.

    Every site sends chunk c to site c, and then the sum of its own chunk to all others. links(i, j) names the links of a pair.
    With ideal hosts, fomoe lets a flow take its uplink only when it begins to arrive, a latency after both sides are ready,
    although experiments/README.md says that it takes the uplink when it is sent. This function follows the program.
    """
    n, parts = len(ready), chunks(elements, len(ready))
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    waiting = {(phase, i, j) for phase in (0, 1) for i, j in pairs}
    phase_ready, left, starts, open_parts = [list(ready), [None] * n], {}, {}, [[2 * (n - 1)] * n, [2 * (n - 1)] * n]
    ended, now = list(ready), 0.0
    while waiting or starts or left:
        for flow in list(waiting):
            phase, i, j = flow
            if phase_ready[phase][i] is not None and phase_ready[phase][j] is not None:
                starts[flow] = max(phase_ready[phase][i], phase_ready[phase][j]) + latency(i, j)
                waiting.discard(flow)
        rates = fair_rates({flow: links(flow[1], flow[2]) for flow in left}, capacity)
        events = [now + left[flow] / rates[flow] for flow in left] + list(starts.values())
        then = min(events)
        for flow in left:
            left[flow] -= rates[flow] * (then - now)
        now = then
        for flow in [flow for flow in left if left[flow] <= 1e-9 * width * elements]:
            del left[flow]
            for site in flow[1:]:
                open_parts[flow[0]][site] -= 1
                if not open_parts[flow[0]][site]:
                    ended[site] = now
                    if flow[0] == 0:
                        phase_ready[1][site] = now
        for flow in [flow for flow in starts if starts[flow] <= now]:
            left[flow] = width * parts[flow[2] if flow[0] == 0 else flow[1]]
            del starts[flow]
    return ended


def simulated_wall_clock(s, sites, paths, default_latency, order=None):
    """Simulates all rounds of a method with one all-reduce per round between sites with unequal links, by events.

    sites are dicts with the rates "uplink" and "downlink"; paths maps (i, j) to (latency, rate or None).
    """
    n, steps, k = len(sites), rounds(s)[0], s.local_steps
    elements = parameters(s)["total"] * (3 if s.method == "local_adamw" else 1)
    width = s.payload if s.method in ("ddp", "diloco") else s.parameter
    order = list(order or range(n))
    capacity = {("up", i): sites[i]["uplink"] for i in range(n)} | {("down", i): sites[i]["downlink"] for i in range(n)}
    capacity |= {("path", pair): rate for pair, (_, rate) in paths.items() if rate}

    def links(i, j):
        return [("up", i), ("down", j)] + ([("path", (i, j))] if ("path", (i, j)) in capacity else [])

    def latency(i, j):
        return paths.get((i, j), (default_latency, None))[0]

    def hop_time(i, j, size):
        i, j = order[i], order[j]
        return latency(i, j) + size / min(capacity[link] for link in links(i, j))

    ready = [0.0] * n
    while steps > 0:
        ready = [t + min(k, steps) * step_time(s)[0] for t in ready]
        steps -= k
        if s.collective == "direct":
            ready = direct(ready, elements, width, links, capacity, latency)
        else:
            ends = ring([ready[i] for i in order], elements, width, hop_time)
            ready = [ends[order.index(i)] for i in range(n)]
    return max(ready)


def best_orders(s, sites, paths, default_latency):
    """Returns the orders of a ring whose slowest hop (latency + chunk / rate) takes the least time."""
    n = len(sites)
    size = (s.payload if s.method in ("ddp", "diloco") else s.parameter) * (3 if s.method == "local_adamw" else 1)
    chunk = size * parameters(s)["total"] / n

    def hop(i, j):
        seconds, rate = paths.get((i, j), (default_latency, None))
        return seconds + chunk / min(sites[i]["uplink"], sites[j]["downlink"], rate or math.inf)

    slowest = {(0, *rest): max(hop(i, j) for i, j in zip((0, *rest), (*rest, 0))) for rest in itertools.permutations(range(1, n))}
    return [order for order in slowest if slowest[order] <= min(slowest.values()) * (1 + 1e-9)]
