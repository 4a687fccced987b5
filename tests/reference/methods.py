"""What a site sends in the mean round of each method, and how long the sites wait for it, written from the papers of the methods.

All sites are equal. T is the time of a transfer, t that of a step, M the number of sites, and K the number of steps of a round.
Where the documentation leaves a choice open, a comment that begins with "Ambiguous" states the choice that fomoe makes.
"""

import collections
import math

import flows

# Values of 4 bytes that a method keeps for each parameter outside of AdamW, unless the scenario chooses the outer optimiser.
STATES = {
    "fedavg": 1, "async_diloco": 1, "decoupled_diloco": 1,  # the parameters that the round began with
    "hierarchical_diloco": 2, "di_paco": 2, "streaming_diloco": 2, "gossip": 2, "noloco": 2,  # these, and Nesterov's momentum
    "sparse_loco": 2,  # these, and the error feedback
    "diloco_x": 3,  # these, momentum, and the error feedback of int4
    "eager_diloco": 4,  # these, momentum, the own pseudo-gradient that was applied, and the mean that arrives
}
EVERY_STEP = ("centralised", "ddp", "demo", "fsdp", "expert_parallel_wan", "remote_experts", "pipeline_wan")
# The bytes by category; the seconds of transfers that no computation hides, and those of waiting for other sites' computations.
Round = collections.namedtuple("Round", "sent exposed idle", defaults=(0.0,))


def ring_factor(n):
    """Bytes that each of n sites sends for one byte of an all-reduce."""
    return 2 * (n - 1) / n


def hops(s, n=None):
    """One-way latencies of an all-reduce among n sites."""
    n = n or s.sites
    return 0 if n == 1 else 2 * (n - 1) if s.collective == "ring" else 2


def seconds(s, latencies, sent):
    return latencies * s.latency + sent / min(s.up, s.down)


def side_by_side(s, owners, dense_bytes, expert_bytes):
    """Rings of all sites and of the owners of experts, which begin together and share a port equally while both of them send."""
    rate = min(s.up, s.down)
    if s.latency == 0 or hops(s, owners) in (0, hops(s)):
        return seconds(s, hops(s), dense_bytes + expert_bytes)
    each = [dense_bytes / hops(s), expert_bytes / hops(s, owners)]  # bytes of a step
    steps, left, arrives, now = [hops(s), hops(s, owners)], list(each), [None, None], 0.0
    while any(steps):
        sending = [ring for ring in (0, 1) if steps[ring] and arrives[ring] is None]
        ends = {ring: now + left[ring] * len(sending) / rate if ring in sending else arrives[ring] for ring in (0, 1) if steps[ring]}
        soonest = min(ends.values())
        for ring in sending:
            left[ring] -= (soonest - now) * rate / len(sending)
        now = soonest
        for ring, end in ends.items():
            if end > now and not (ring in sending and left[ring] < 1e-9 * each[ring]):
                continue
            if ring in sending:
                arrives[ring] = now + s.latency
            else:
                steps[ring], arrives[ring], left[ring] = steps[ring] - 1, None, each[ring]
    return now


def both(s, factor, dense, sparse):
    """The bytes of the dense part and of all experts, each `factor` times."""
    return {"dense": factor * dense, "expert_sync": factor * sparse}


def averaged(s, bytes_per_element, dense, sparse, times=1.0):
    """An all-reduce among all sites that no steps hide, in a share `times` of the rounds."""
    sent = both(s, ring_factor(s.sites) * bytes_per_element, dense, sparse)
    return Round({name: times * value for name, value in sent.items()}, times * seconds(s, hops(s), sum(sent.values())))


def whole_model(s, dense, sparse, step):
    """What is averaged: gradients, pseudo-gradients, parameters, or these and both moments (des_loc: in some rounds)."""
    copies = {"local_adamw": 3, "des_loc": 1 + (s.rounds // s.moment1 + s.rounds // s.moment2) / s.rounds}.get(s.method, 1)
    averages_parameters = s.method in ("local_sgd", "local_adamw", "des_loc")
    own = s.vocabulary * s.d if s.method == "dept" else 0  # each site keeps its own embedding
    return averaged(s, copies * (s.parameter if averages_parameters else s.payload), dense - own, sparse)


def fragments(s):
    """Returns the layers of each of P fragments, every P-th one, and the dense elements that it has beside layers."""
    parts = []
    for part in range(s.fragments):
        layers = range(part, s.layers, s.fragments)
        # Ambiguous: the embedding is in the last fragment. The two norms beside the layers go with the first and the last layer.
        table = s.vocabulary * s.d if part == s.fragments - 1 else 0
        parts.append((layers, table + s.d * ((0 in layers) + (s.layers - 1 in layers))))
    return parts


def fomoe(s, dense, sparse, step):
    """The equations dense_bytes_cost and sparse_bytes_cost."""
    m, o = s.sites, s.overlap
    averaged_bytes = {"average": s.parameter, "local_adamw": 3 * s.parameter}.get(s.optimiser, s.payload)
    # AdamW moments never migrate; the outer moments migrate with the parameters if the scenario says so.
    moments = {"nesterov": 1, "adam": 2, "yogi": 2}.get(s.optimiser, 0) if s.transfer_state else 0
    # The paper's gamma is 1 / T. Experts move after every T-th round of a run but the last.
    gamma, one = (s.rounds - 1) // s.period / s.rounds if s.random else 0.0, sparse / (s.layers * s.experts)  # elements of one expert
    # By layer and site: the experts that a site holds, and those of them that it does not hold before a reshuffle, in the mean.
    copies = s.experts * o
    held = [[-(-((layer + 1) * copies - site) // m) - -(-(layer * copies - site) // m) for layer in range(s.layers)] for site in range(m)]
    missing = [sum(n * (1 - n / s.experts) for n in of_site) for of_site in held]
    of_sites = [{"dense": ring_factor(m) * averaged_bytes * dense, "expert_sync": ring_factor(o) * averaged_bytes * one * sum(of_site),
                 "migration": gamma * s.parameter * (1 + moments) * one * lacks} for of_site, lacks in zip(held, missing)]
    sent = {name: sum(site[name] for site in of_sites) / m for name in of_sites[0]}
    # The busiest ports decide: those of the site that sends most to average, and of the one that receives most in a reshuffle.
    busiest = {name: max(site[name] for site in of_sites) for name in sent}
    moving = seconds(s, gamma if o < m else 0, busiest["migration"])
    if s.fragments == 1 and s.overlap_steps == 0:
        return Round(sent, moving + side_by_side(s, o, busiest["dense"], busiest["expert_sync"]))
    # Fragments of layers with their experts, as in Streaming DiLoCo. Ambiguous: experts move when all of them have just been averaged,
    # so that a round after which they move sends all fragments after its last step, and hides nothing.
    transfers = []
    for layers, beside in fragments(s):
        of_dense = len(layers) / s.layers * (dense - s.vocabulary * s.d - 2 * s.d) + beside
        most = max(sum(of_site[layer] for layer in layers) for of_site in held)
        transfers.append(side_by_side(s, o, averaged_bytes * ring_factor(m) * of_dense, averaged_bytes * ring_factor(o) * one * most))
    hidden, together = [min(transfer, s.overlap_steps * step) for transfer in transfers], gamma if o < m else 0
    at_once = side_by_side(s, o, busiest["dense"], busiest["expert_sync"])
    in_turn = (1 - together) * (sum(transfers) - sum(hidden)) + hidden[-1] / s.rounds
    return Round(sent, moving + in_turn + together * at_once)


def centralised(s, dense, sparse, step):
    return Round({}, 0.0)


def through_server(s, dense, sparse, step):
    """The M - 1 other sites send to the server at the first site, then the server sends to them; one latency each. In a chain each site
    passes the sum on to the one before it, in M + 1 pieces: the last piece leaves the last site after M others, and goes over M - 1 links."""
    peers = s.sites - 1
    if s.collective == "chain" and peers:
        steps, piece = s.sites + peers, (dense + sparse) / (s.sites + 1)
        exposed = steps * (2 * s.latency + (s.payload + s.parameter) * piece * max(1 / s.up, 1 / s.down))
        return Round(both(s, peers / s.sites * (s.payload + s.parameter), dense, sparse), exposed)
    gather, reply = s.payload * (dense + sparse), s.parameter * (dense + sparse)
    exposed = 2 * s.latency + gather * max(1 / s.up, peers / s.down) + reply * max(peers / s.up, 1 / s.down) if peers else 0.0
    return Round(both(s, peers / s.sites * (s.payload + s.parameter), dense, sparse), exposed)


def at_own_pace(s, dense, sparse, step):
    """Each of the M - 1 other sites exchanges one fragment after another with the first one while it trains on. Of a port of the first site
    it has, on average, what the others leave. The rates of all sites add up."""
    others, of_cycle = s.sites - 1, min(s.local_steps // s.fragments, s.steps)
    steps, elements = of_cycle * step, (dense + sparse) / s.fragments

    def cycle(seconds):
        def crossing(size, own, shared):
            left = 1 - (others - 1) * size / shared / seconds
            return max(size / own, size / shared / left) if left > 0 else math.inf
        up, down = crossing(s.payload * elements, s.up, s.down), crossing(s.parameter * elements, s.down, s.up)
        return max(steps, up + s.latency, down + s.latency, (steps + 2 * s.latency + up + down) / s.fragments)
    least, most = steps, steps
    while others and cycle(most) > most:
        most *= 2
    for _ in range(200):
        middle = (least + most) / 2
        least, most = (middle, most) if others and cycle(middle) > middle else (least, middle)
    if most <= steps * (1 + 1e-12):  # nobody waits
        most = steps
    run = s.sites * s.steps / of_cycle / (1 / steps + others / most)
    exchanges = others * run / most / s.sites / s.rounds / s.fragments
    return Round(both(s, exchanges * (s.payload + s.parameter), dense, sparse), (run - s.steps * step) / s.rounds if most > steps else 0.0)


def one_round_late(s, dense, sparse, step):
    """The steps of the next round hide the all-reduce. No steps hide the last one."""
    sent, transfer, _ = averaged(s, s.payload, dense, sparse)
    hidden = sum(min(transfer, min(s.local_steps, s.steps - begun * s.local_steps) * step) for begun in range(1, s.rounds))
    return Round(sent, transfer - hidden / s.rounds)


def hierarchical_diloco(s, dense, sparse, step):
    """Parameters inside of each region, and pseudo-gradients among all sites in every global_period-th round."""
    share, n = s.rounds // s.global_period / s.rounds, s.sites // s.regions
    everywhere = averaged(s, s.payload, dense, sparse, share)
    inside = both(s, (1 - share) * ring_factor(n) * s.parameter, dense, sparse)
    sent = {name: value + inside[name] for name, value in everywhere.sent.items()}
    return Round(sent, everywhere.exposed + seconds(s, (1 - share) * hops(s, n), sum(inside.values())))


def streaming_diloco(s, dense, sparse, step):
    """P fragments of a layer in P each, sent K / P steps apart; overlap_steps hide each one, but not the last one of the run."""
    transfers = []
    for layers, beside in fragments(s):
        elements = len(layers) / s.layers * (dense + sparse - s.vocabulary * s.d - 2 * s.d) + beside
        transfers.append(seconds(s, hops(s), ring_factor(s.sites) * s.payload * elements))
    hidden = [min(transfer, s.overlap_steps * step) for transfer in transfers]
    return Round(both(s, ring_factor(s.sites) * s.payload, dense, sparse),
                 sum(transfers) - sum(hidden) + hidden[-1] / s.rounds)


def to_all(s, bytes_per_element, dense, sparse):
    """Every site sends its own values to all others: an all-gather, in M - 1 steps of a ring or at once."""
    sent = both(s, (s.sites - 1) * bytes_per_element, dense, sparse)
    return Round(sent, seconds(s, s.sites - 1 if s.collective == "ring" else min(1, s.sites - 1), sum(sent.values())))


def sparse_loco(s, dense, sparse, step):
    """The largest 1/64, with a position of 12 bits each."""
    return to_all(s, (s.bits + 12) / 8 / 64, dense, sparse)


def demo(s, dense, sparse, step):
    """32 of every 4096 coefficients. Ambiguous: with a position of 64 bits each, as in the authors' code."""
    return to_all(s, (s.bits + 64) / 8 * 32 / 4096, dense, sparse)


def gossip(s, dense, sparse, step):
    sent = both(s, s.gossip_peers * s.parameter, dense, sparse)
    return Round(sent, seconds(s, 1, sum(sent.values())))


def noloco(s, dense, sparse, step):
    """Slow weights leave when a round begins, pseudo-gradients when its steps end; both share the port until the last byte has left."""
    elements, port, exposed = dense + sparse, min(s.up, s.down), 0.0
    for begun in range(s.rounds):
        steps = min(s.local_steps, s.steps - begun * s.local_steps) * step
        left = max((s.parameter + s.payload) * elements / port, steps + s.payload * elements / port)
        exposed += left + s.latency - steps
    return Round(both(s, s.parameter + s.payload, dense, sparse), exposed / s.rounds)


def di_paco(s, dense, sparse, step):
    """Of the sites, M / choices have the same module at a level; all sites have the embedding."""
    n, table = s.sites // s.module_choices, s.vocabulary * s.d
    inside = both(s, ring_factor(n) * s.payload, dense - table, sparse)
    sent = inside | {"dense": inside["dense"] + ring_factor(s.sites) * s.payload * table}
    return Round(sent, seconds(s, hops(s), sum(sent.values())))


def fsdp(s, dense, sparse, step):
    """One unit is gathered ahead; the network carries one collective at a time, and so does the processor with passes of units."""
    if s.sites == 1:
        return Round({}, 0.0)
    table, share = s.vocabulary * s.d, (s.sites - 1) / s.sites
    units = [(dense + sparse - table - 2 * s.d) / s.fragments] * s.fragments
    units[0] += table + s.d
    units[-1] += s.d
    latencies = s.sites - 1 if s.collective == "ring" else 1

    def transfer(unit, size, times=1):
        return times * seconds(s, latencies, share * size * units[unit])

    gathers = {"full_shard": 2, "full_shard_no_sync": 2, "shard_grad_op": 1, "hybrid_shard": 0}[s.sharding]
    gathered = [transfer(unit, s.parameter) if gathers else 0.0 for unit in range(s.fragments)]
    summed = [transfer(unit, s.payload, 1 if gathers else 2) for unit in range(s.fragments)]
    network, computed = gathered[0], 0.0
    for unit in range(s.fragments):
        begin = max(computed, network)
        network = begin + (gathered[unit + 1] if unit + 1 < s.fragments else 0.0)
        # The unembedding comes after the layers of the last unit, and before them in the backward pass, which does not repeat it.
        computed = begin + s.forward * step * ((1 - s.head) / s.fragments + (s.head if unit == s.fragments - 1 else 0))
    again = gathered if gathers == 2 else [0.0] * s.fragments
    network = computed + again[-1]
    for unit in reversed(range(s.fragments)):
        begin = max(computed, network) if gathers == 2 else computed
        network = max(begin, network) + (summed[unit + 1] if unit + 1 < s.fragments else 0.0) + (again[unit - 1] if unit else 0.0)
        layers = (1 - s.forward - 2 * s.head_of_step) / s.fragments
        computed = begin + step * (layers + (2 * s.head_of_step if unit == s.fragments - 1 else 0))
    factor = share * (gathers * s.parameter + (1 if gathers else 2) * s.payload)
    return Round(both(s, factor, dense, sparse), max(computed, network) + summed[0] - step)


def experts_elsewhere(s, dense, sparse, step):
    """In every layer, forward and backward, rows of width d go to the sites of the k experts of each token, and come back."""
    router = s.d * s.experts * s.layers
    # Without a limit GShard sends a copy for each expert; with one, there is at most one for each site.
    most = s.active if s.max_sites == math.inf else min(s.active, s.max_sites, s.sites)
    copies = most * s.capacity  # of a token's row; a buffer of a fixed size is sent whether it is full or not
    rows = s.batch / s.sites * s.sequence * copies * s.d * (1 - 1 / s.sites)
    # There and back, in the forward and in the backward pass. The hosts of remote experts have kept nothing and get the inputs again.
    ways = [s.dispatch, s.payload] * 2 if s.method == "expert_parallel_wan" else [s.payload, s.payload, 2 * s.payload, s.payload]
    if s.compute.get("activation_checkpointing"):  # the forward pass is repeated
        ways += [ways[0], s.payload]
    sums = averaged(s, s.payload, dense + (0 if s.skip else router), 0)
    sent = sums.sent | {"activations": s.layers * rows * sum(ways)}
    there, back, there_again, back_again, *repeated = [
        ("network", seconds(s, min(1, s.sites - 1), rows * s.busiest * way / s.halves)) for way in ways]
    forward, backward, again = s.expert_passes
    step_of_mean = step / (1 + again + (s.capacity - 1) * (forward + backward))
    load, part = s.capacity * s.busiest, step_of_mean / s.layers / s.halves
    passes = s.layers * [("processor", (s.forward - forward) * part), there, ("processor", forward * load * part), back]
    passes += s.layers * [*repeated, there_again, ("processor", (backward + again) * load * part), back_again,
                          ("processor", (1 - s.forward - backward) * part)]
    idle = (forward + backward + again) * (s.busiest - 1) * step_of_mean
    sending = sum(seconds for place, seconds in passes if place == "network")
    return Round(sent, sums.exposed + (sending if s.halves == 1 else flows.in_turn(passes, s.halves) - step - idle), idle)


def pipeline_wan(s, dense, sparse, step):
    """Pipelines side by side over stages of some sites, which average their gradients; the ends average the tied embedding's."""
    if s.sites == 1:
        return Round({}, 0.0)
    side, stages, n, table = s.stage_sites, s.sites // s.stage_sites, s.micro_batches, s.vocabulary * s.d
    batch, ends = s.batch / side * s.sequence * s.d * s.payload, side * min(2, stages)
    duration = flows.pipeline(s, stages, {"f": s.forward * step / n, "b": (1 - s.forward) * step / n}, batch / n)
    # Ambiguous: the two norms beside the layers go with the first and the last layer.
    layers = (dense + sparse - table - 2 * s.d) / stages
    sums = seconds(s, hops(s, side), ring_factor(side) * s.payload * (layers + (2 if stages == 1 else 1) * s.d))
    sums += seconds(s, hops(s, ends), ring_factor(ends) * s.payload * table)
    averages = both(s, ring_factor(side) * s.payload / stages, dense - table, sparse)
    averages["dense"] += ring_factor(ends) * ends / s.sites * s.payload * table
    bubble = (stages - 1) / n * step
    return Round(averages | {"activations": 2 * (stages - 1) / stages * batch}, duration + sums - step - bubble, bubble)


ROUNDS = {function.__name__: function for function in (
    centralised, hierarchical_diloco, streaming_diloco, sparse_loco, demo, gossip, noloco, di_paco, fsdp, pipeline_wan)}
ROUNDS |= {name: whole_model for name in ("ddp", "local_sgd", "diloco", "local_adamw", "des_loc", "dept")}
ROUNDS |= {"fomoe": fomoe, "fedavg": through_server, "async_diloco": through_server, "decoupled_diloco": at_own_pace, "eager_diloco": one_round_late, "diloco_x": one_round_late,
           "expert_parallel_wan": experts_elsewhere, "remote_experts": experts_elsewhere}
