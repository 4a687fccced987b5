"""Means over rounds of what the sites of a run did, from the intervals of their operations (costmodel/timeline/).

All rounds were executed, so that the mean round is the run divided by its rounds.
"""

from __future__ import annotations

import bisect
import dataclasses
from typing import Any

Span = tuple[float, float]


@dataclasses.dataclass
class Interval:
    """A node's part of an operation, in seconds since the barrier at the start. `round` is the position among the executed rounds."""

    node: int
    op: int
    round: int
    activity: str  # compute, transfer, upkeep (op is -1)
    start_s: float
    end_s: float


def _merged(spans: list[Span]) -> list[Span]:
    out: list[Span] = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        elif end > begin:
            out.append((begin, end))
    return out


def covered(spans: list[Span]) -> float:
    """Seconds in at least one of the spans."""
    return sum(end - begin for begin, end in _merged(spans))


def uncovered(spans: list[Span], by: list[Span]) -> float:
    """Seconds in one of `spans`, but in none of `by`."""
    return covered(spans + by) - covered(by)


def upkeep_delay_s(intervals: list[Interval], nodes: int) -> float:
    """Seconds by which validation, checkpoints and logs made the run longer (costmodel/timeline/upkeep_delay.hpp): each node keeps by how
    much earlier it would be without them. A transfer passes that on to the nodes that waited for it."""
    ends, upkeep, starts = range(3)  # the order of events at the same time
    computed: list[list[Span]] = [[] for _ in range(nodes)]
    events: list[tuple[float, int, int, Interval]] = []
    for index, one in enumerate(intervals):
        if one.activity == "upkeep":
            events.append((one.end_s, upkeep, index, one))
        elif one.activity == "transfer":
            events += [(one.start_s, starts, index, one), (one.end_s, ends, index, one)]
        elif one.activity == "compute":
            computed[one.node].append((one.start_s, one.end_s))
    for spans in computed:
        spans.sort()
    ends_s = [[end for _, end in spans] for spans in computed]

    def under_way(node: int, at_s: float) -> bool:
        """Whether the node computes before and after this time: then it has not waited."""
        after = bisect.bisect_right(ends_s[node], at_s)
        return after < len(computed[node]) and computed[node][after][0] < at_s

    earlier_s = [0.0] * nodes
    seen_s: dict[tuple[int, int], float] = {}
    without_s: dict[tuple[int, int], float] = {}
    for at_s, moment, _, one in sorted(events, key=lambda event: event[:3]):
        transfer = (one.round, one.op)
        if moment == upkeep:
            earlier_s[one.node] += one.end_s - one.start_s
        elif moment == starts:
            seen_s[transfer] = max(seen_s.get(transfer, 0.0), one.start_s)
            without_s[transfer] = max(without_s.get(transfer, 0.0), one.start_s - earlier_s[one.node])
        elif not under_way(one.node, at_s):
            earlier_s[one.node] = seen_s[transfer] - without_s[transfer]
    last = max(intervals, key=lambda one: one.end_s, default=None)
    return earlier_s[last.node] if last else 0.0


def seen_flows(intervals: list[Interval]) -> list[tuple[int, float, float]]:
    """(node, start, end) in which bytes can have been in flight: from when another node has entered the transfer too."""
    transfers: dict[tuple[int, int], list[Interval]] = {}
    for one in intervals:
        if one.activity == "transfer":
            transfers.setdefault((one.round, one.op), []).append(one)
    spans = []
    for parts in transfers.values():
        for part in parts:
            others = [other.start_s for other in parts if other is not part]
            start = max(part.start_s, min(others)) if others else part.end_s
            if start < part.end_s:
                spans.append((part.node, start, part.end_s))
    return spans


@dataclasses.dataclass
class Means:
    wall_clock_s: float
    round_ends_s: list[float]  # by round
    communication_s: float  # of the mean round, as the two below
    transferring_s: float
    compute_s: list[float]  # by node
    exposed_s: list[float]


def means_of(intervals: list[Interval], nodes: int, rounds: int) -> Means:
    ends = [0.0] * rounds
    for one in intervals:
        ends[one.round] = max(ends[one.round], one.end_s)
    operations: dict[tuple[int, int], Span] = {}
    for one in intervals:
        if one.activity == "transfer":
            begin, end = operations.get((one.round, one.op), (one.start_s, one.end_s))
            operations[one.round, one.op] = (min(begin, one.start_s), max(end, one.end_s))
    by_round: list[list[Span]] = [[] for _ in range(rounds)]
    for (round, _), span in operations.items():
        by_round[round].append(span)
    computing: list[list[Span]] = [[] for _ in range(nodes)]
    flying: list[list[Span]] = [[] for _ in range(nodes)]
    for one in intervals:
        if one.activity == "compute":
            computing[one.node].append((one.start_s, one.end_s))
    for node, start, end in seen_flows(intervals):
        flying[node].append((start, end))
    return Means(max(ends), ends, sum(covered(spans) for spans in by_round) / rounds, sum(covered(spans) for spans in flying) / rounds / nodes,
                 [covered(spans) / rounds for spans in computing],
                 [uncovered(flows, computes) / rounds for flows, computes in zip(flying, computing)])


def critical_path(intervals: list[Interval], ends: list[float], at_round: int, name_of: Any, site_of: Any) -> list[dict[str, Any]]:
    """The longest chain of waits in a round, followed backwards from its end (costmodel/timeline/critical_path.hpp)."""
    begin_s = max((end for end in ends if end < ends[at_round]), default=0.0)
    joined: dict[tuple[int, int], Interval] = {}
    by_node: dict[int, list[Interval]] = {}
    for one in intervals:
        by_node.setdefault(one.node, []).append(one)
        if one.activity == "transfer":
            last = joined.get((one.round, one.op))
            if last is None or one.start_s > last.start_s:
                joined[one.round, one.op] = one
    for items in by_node.values():
        items.sort(key=lambda one: one.end_s)
    steps: list[dict[str, Any]] = []
    seen: set[int] = set()
    at = max((one for one in intervals if one.round == at_round), key=lambda one: one.end_s, default=None)
    while at is not None and at.end_s > begin_s and id(at) not in seen:
        seen.add(id(at))
        start = joined[at.round, at.op] if at.activity == "transfer" else at
        if start.start_s >= at.end_s:
            start = at
        what, site, seconds = name_of(start), site_of(start.node), at.end_s - max(begin_s, start.start_s)
        if steps and (steps[-1]["what"], steps[-1]["site"]) == (what, site):
            steps[-1]["seconds"] += seconds
        elif seconds > 0:
            steps.append({"what": what, "site": site, "kind": at.activity, "seconds": seconds})
        earlier = [one for one in by_node[start.node] if one is not start and one.end_s <= start.start_s + 1e-9 and one.start_s < start.start_s]
        at = earlier[-1] if earlier else None
    return steps[::-1]


_KINDS = ("compute", "transfer", "bytes under way", "upkeep")
_MOST_NODES, _RESOLUTION = 16, 250  # of a drawing


def drawn_round(intervals: list[Interval], ends: list[float], first_round: int, name_of: Any, node_names: list[str]) -> dict[str, Any]:
    """The middle round in a form for drawing (costmodel/timeline/round_timeline.hpp): spans without a visible gap between them are merged."""
    by_end = sorted(range(len(ends)), key=lambda at: ends[at])
    middle = len(ends) // 2
    begin_s = ends[by_end[middle - 1]] if middle > 0 else 0.0
    duration_s = ends[by_end[middle]] - begin_s
    resolution_s = duration_s / _RESOLUTION
    spans = [[one.node, one.activity, name_of(one), one.start_s, one.end_s] for one in intervals]
    spans += [[node, "bytes under way", "", start, end] for node, start, end in seen_flows(intervals)]
    cut = [[node, kind, what, max(0.0, start - begin_s), min(duration_s, end - begin_s)] for node, kind, what, start, end in spans if node < _MOST_NODES]
    shown: list[list[Any]] = []
    for span in sorted((span for span in cut if span[4] > span[3]), key=lambda span: (span[0], _KINDS.index(span[1]), span[3])):
        last = shown[-1] if shown and shown[-1][:2] == span[:2] and span[3] - shown[-1][4] < resolution_s else None
        if last is None or (last[2] != span[2] and min(span[4] - span[3], last[4] - last[3]) > resolution_s):
            shown.append(span)
            continue
        if last[2] != span[2] and not last[2].endswith(" and others"):
            last[2] += " and others"
        last[4] = max(last[4], span[4])
    return {"round": by_end[middle] + first_round, "duration_s": duration_s, "resolution_s": resolution_s, "left_out_nodes": max(0, len(node_names) - _MOST_NODES),
            "nodes": node_names[:_MOST_NODES], "spans": [dict(zip(("node", "kind", "what", "start_s", "end_s"), span)) for span in shown]}
