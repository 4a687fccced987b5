"""Transfers between sites by naive event simulation: bytes are a fluid, and links are shared max-min fairly."""

import collections
import math


def fair_rates(flows, capacity):
    """Returns max-min fair rates: the link with the smallest share per flow is filled first, and so on."""
    rates, open_flows, left = {}, dict(flows), dict(capacity)
    while open_flows:
        users = {link: [flow for flow, links in open_flows.items() if link in links] for links in open_flows.values() for link in links}
        tight = min(users, key=lambda link: left[link] / len(users[link]))
        share = left[tight] / len(users[tight])
        for flow in users[tight]:
            rates[flow] = share
            for link in open_flows.pop(flow):
                left[link] = max(0.0, left[link] - share)
    return rates


def ring(ready, parts, links, capacity, latency):
    """Runs a ring all-reduce of chunks. Returns when each site ends. A site begins a step when it has sent and received."""
    n, equal = len(ready), len(set(latency.values())) == 1

    def end(i, j, size):
        """Bytes leave for one latency, or until the receiver is ready; the receiver takes them after the rest of the flow."""
        wait, rates = latency[i, j], [capacity[link] for link in links[i, j]]
        first = max(ready[i] + wait, ready[j])
        under_way = 0 if equal else min(size, wait * min(rates))
        last = (first + (size - under_way) / min(rates) if under_way < size else ready[i] + size / min(rates)) + wait
        received = max(first, last - wait) + under_way / capacity["downlink", j]
        return received if equal else max(last, received)

    for step in range(2 * (n - 1)):
        ends = [end(i, (i + 1) % n, parts[(i - step) % n]) for i in range(n)]
        ready = [max(ends[i], ends[i - 1]) for i in range(n)]
    return ready


def direct(ready, parts, links, capacity, latency):
    """Runs a direct all-reduce as fluid flows with max-min fair rates. Returns when each site ends.

    Every site sends chunk c to site c, and later its own summed chunk to all others. A site begins its second part when all its
    flows of the first have arrived. The last of a pair's links is the downlink. A flow takes its uplink
    and its path when it is sent, and the downlink when it arrives, one latency later (experiments/README.md).
    Ambiguous: bytes leave for one latency and no longer until the receiver is ready, and from then on as fast as they arrive; when
    the last byte has left, the bytes under way take the share of the downlink alone, and end no sooner than a latency later.
    """
    n, now = len(ready), 0.0
    begin, missing = [list(ready), [math.inf] * n], [[2 * (n - 1)] * n, [2 * (n - 1)] * n]
    waiting = {(phase, i, j) for phase in (0, 1) for i in range(n) for j in range(n) if i != j}
    flows, ends = {}, [0.0] * n  # a flow is [bytes to leave, bytes to arrive, time at which it was sent, arrival of the last byte]
    while waiting or flows:
        for phase, i, j in [flow for flow in waiting if begin[flow[0]][flow[1]] <= now]:
            size = parts[i if phase else j]
            flows[phase, i, j] = [size, size, now, math.inf]
            waiting.discard((phase, i, j))
        taken, events = {}, [begin[phase][i] for phase, i, _ in waiting]
        arrival = {flow: max(state[2] + latency[flow[1:]], begin[flow[0]][flow[2]]) for flow, state in flows.items()}
        for flow, (leaving, arriving, _, last) in flows.items():
            route, first = links[flow[1:]], flows[flow][2] + latency[flow[1:]]
            taken[flow] = (route[:-1] if leaving and (now < first or arrival[flow] <= now) else []) + (
                route[-1:] if arriving and arrival[flow] <= now else [])
            events += [first] if now < first else []
            events.append(arrival[flow] if arrival[flow] > now else math.inf if arriving else last)
        rates = fair_rates({flow: route for flow, route in taken.items() if route}, capacity)
        for flow, rate in rates.items():
            events += [now + part / rate for part in flows[flow][:1 if arrival[flow] > now else 2] if part]
        then = min(events)
        for flow, rate in rates.items():
            state, small = flows[flow], max(1e-10 * max(parts), 1e-15 * rate * then)
            for part in range(1 if arrival[flow] > now else 2):
                was, state[part] = state[part], max(0.0, state[part] - rate * (then - now))
                if state[part] <= small:
                    state[part] = 0.0
                    if part == 0 and was:
                        state[3] = then + latency[flow[1:]]
        now = then
        for flow in [flow for flow, state in flows.items() if not state[0] and not state[1] and state[3] <= now + 1e-15]:
            del flows[flow]
            for site in flow[1:]:
                missing[flow[0]][site] -= 1
                if not missing[flow[0]][site]:
                    ends[site] = now
                    begin[1][site] = now if flow[0] == 0 else begin[1][site]
    return ends


def in_turn(passes, halves):
    """Runs the (place, seconds) of all halves of a batch. Of each pass, the first half comes first; each place has one at a time."""
    ready, free = [0.0] * halves, {"processor": 0.0, "network": 0.0}
    for place, seconds in passes:
        for half in range(halves):
            ready[half] = free[place] = max(ready[half], free[place]) + seconds
    return ready[-1]


def pipeline(s, stages, passes, size):
    """Runs the passes {"f": s, "b": s} of all stages. Micro-batches of a pair leave one by one, and all flows share the ports."""
    first = [s.micro_batches if s.schedule == "gpipe" else min(s.micro_batches, stages - stage) for stage in range(stages)]
    order = [["f"] * n + ["b", "f"] * (s.micro_batches - n) + ["b"] * n for n in first]
    inputs = collections.Counter({(0, "f"): s.micro_batches, (stages - 1, "b"): s.micro_batches})
    now, idle, waiting, flows, ahead = 0.0, set(range(stages)), collections.Counter(), {}, []
    while True:
        for stage in [stage for stage in idle if order[stage] and inputs[stage, order[stage][0]]]:
            inputs[stage, order[stage][0]] -= 1
            idle.discard(stage)
            ahead.append((now + passes[order[stage][0]], stage, None))
        for pair in [pair for pair in waiting if waiting[pair] and pair not in flows]:
            waiting[pair] -= 1
            flows[pair] = size
        if not ahead and not flows:
            return now
        rates = fair_rates({(i, j): [("up", i), ("down", j)] for i, j in flows},
                                     {(port, i): rate for port, rate in (("up", s.up), ("down", s.down)) for i in range(stages)})
        then = min([time for time, *_ in ahead] + [now + left / rates[pair] for pair, left in flows.items()])
        flows = {pair: left - rates[pair] * (then - now) for pair, left in flows.items()}
        ahead += [(then + s.latency, *pair) for pair, left in flows.items() if left <= 1e-9 * size]
        now, flows = then, {pair: left for pair, left in flows.items() if left > 1e-9 * size}
        for event in [event for event in ahead if event[0] <= now * (1 + 1e-14)]:
            ahead.remove(event)
            _, i, j = event
            if j is not None:  # the result of a pass arrives
                inputs[j, "f" if j > i else "b"] += 1
                continue
            idle.add(i)
            j = i + (1 if order[i].pop(0) == "f" else -1)
            waiting[i, j] += 0 <= j < stages
