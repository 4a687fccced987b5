"""Means over rounds of what the sites of a run did, from the intervals of their operations (costmodel/timeline/).

All rounds were executed, so that the mean round is the run divided by its rounds.
"""

from __future__ import annotations

import dataclasses
from typing import Any

Span = tuple[float, float]


@dataclasses.dataclass
class Interval:
    """A node's part of an operation, in seconds since the barrier at the start. `round` is the position among the executed rounds."""

    node: int
    op: int
    round: int
    activity: str  # compute, transfer
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
