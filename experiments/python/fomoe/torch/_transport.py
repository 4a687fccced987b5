"""Moves the bytes of a transfer between the nodes of a plan over torch.distributed, and counts them.

A process is one node. All exchanges of a transfer go through the same phases; in a phase, everything that one node sends to another
is one message, as in fomoe-train (trainer/comm/phase.hpp), so that thousands of small exchanges do not cost thousands of messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ._codec import Codec
from ._collectives import Run, make_run
from ._plan_file import Exchange, Op, Payload

Key = tuple[int, str, tuple[int, ...]]  # round, content, groups


class Transport:
    """Point-to-point messages of bytes among the nodes of a plan; node i is rank i of the group."""

    def __init__(self, node: int, nodes: int, group: Any, device: torch.device) -> None:
        self.node, self.nodes, self.group = node, nodes, group
        self.backend = dist.get_backend(group) if nodes > 1 else "none"
        # Gloo sends from the memory of the host and tells messages apart by tags; NCCL sends from the GPU, in order.
        self.concurrent = self.backend in ("gloo", "none")
        self.device = device if self.backend == "nccl" else torch.device("cpu")
        self.sent: dict[tuple[int, str], int] = {}  # (receiver, traffic class) -> bytes

    def rank(self, node: int) -> int:
        return dist.get_global_rank(self.group, node) if self.group is not None else node

    def exchange(self, out: dict[int, torch.Tensor], sizes: dict[int, int], channel: int) -> dict[int, torch.Tensor]:
        """Sends `out` (uint8, by receiver) and receives `sizes` bytes from each sender; returns when all of it has arrived."""
        arrived = {node: torch.empty(size, dtype=torch.uint8, device=self.device) for node, size in sizes.items()}
        leaving = {node: data.to(self.device).contiguous() for node, data in out.items()}
        if self.concurrent:
            works = [dist.irecv(data, self.rank(node), group=self.group, tag=channel) for node, data in arrived.items()]
            works += [dist.isend(data, self.rank(node), group=self.group, tag=channel) for node, data in leaving.items()]
        else:
            ops = [dist.P2POp(dist.irecv, data, self.rank(node), self.group) for node, data in arrived.items()]
            ops += [dist.P2POp(dist.isend, data, self.rank(node), self.group) for node, data in leaving.items()]
            works = dist.batch_isend_irecv(ops) if ops else []
        try:
            for work in works:
                work.wait()
        except RuntimeError as error:
            others = ", ".join(str(node) for node in sorted({*arrived, *leaving}))
            raise ConnectionError(f"a transfer with site {others} failed: {error}; start all sites again from their newest states") from error
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        return arrived

    def count(self, node: int, traffic: str, size: int) -> None:
        self.sent[node, traffic] = self.sent.get((node, traffic), 0) + size


def buckets(elements: int, codec: Codec, most_bytes: int) -> list[int]:
    """The pieces that separate calls send (costmodel/plan/pieces.cpp); 0 bytes: one call."""
    if most_bytes == 0 or elements == 0:
        return [elements]
    per_element = (codec.bits + (32 / codec.block if codec.block else 0)) / 8
    most = max(1, int(most_bytes / per_element))
    return [min(most, elements - begin) for begin in range(0, elements, most)]


class Cut:
    """One payload of an exchange, cut into the pieces that separate calls send."""

    def __init__(self, op: Op, exchange: Exchange, payload: Payload, node: int, like: torch.Tensor, bucket_bytes: int) -> None:
        self.payload = payload
        p, codec = exchange.nodes.index(node), Codec(payload.format)
        self.from_partial = op.pattern == "all_gather" or payload.chunks > 1
        self.to_partial = op.pattern == "reduce_scatter" or payload.chunks > 1
        self.runs: list[Run] = [make_run(op.pattern, op.collective, len(exchange.nodes), p, elements, codec, like)
                                for elements in buckets(payload.elements, codec, bucket_bytes)]
        self.nodes, self.keeps_losses = exchange.nodes, False

    def give(self, flat: torch.Tensor) -> None:
        begin = 0
        for run in self.runs:
            run.give(flat.narrow(0, begin, run.given()))
            begin += run.given()
        assert begin == flat.numel(), "the length of a payload differs from its length in the plan"

    def lost(self) -> torch.Tensor:
        return torch.cat([run.lost() for run in self.runs])

    def result(self) -> torch.Tensor:
        parts = [run.result() for run in self.runs]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class TransferRun:
    """This node's part of a transfer: read(), then exchange() (which may run in a thread), then `results`."""

    def __init__(self, op: Op, round: int, transport: Transport, channel: int, like: torch.Tensor, bucket_bytes: int,
                 partial: dict[Key, torch.Tensor]) -> None:
        self.transport, self.channel, self.round, self.partial, self.like = transport, channel, round, partial, like
        self.cuts: list[Cut] = []
        calls: list[list[tuple[Cut, Run]]] = []
        for exchange in op.exchanges:
            if transport.node not in exchange.nodes:
                continue
            call = 0
            for payload in exchange.payloads:
                cut = Cut(op, exchange, payload, transport.node, like, bucket_bytes)
                self.cuts.append(cut)
                if not bucket_bytes:
                    call = 0
                for run in cut.runs:
                    if len(calls) <= call:
                        calls.append([])
                    calls[call].append((cut, run))
                    call += 1
        self.phases = [(runs, step) for runs in calls for step in range(max(run.steps.count() for _, run in runs))]
        self.results: list[tuple[Payload, torch.Tensor]] = []
        self.losses: list[tuple[Payload, torch.Tensor]] = []

    def _key(self, payload: Payload) -> Key:
        return (self.round, payload.content, payload.groups)

    def read(self, source: Callable[[Payload], torch.Tensor], keeps_losses: bool) -> None:
        """Reads what this node sends. keeps_losses: after exchange(), `losses` has what this node's encodings took from the sums."""
        for cut in self.cuts:
            if cut.from_partial or not cut.runs[0].contributes:
                continue
            cut.keeps_losses = keeps_losses and len(cut.nodes) > 1  # a node alone keeps its own values
            for run in cut.runs:
                run.tracks_losses = cut.keeps_losses
            cut.give(source(cut.payload))

    @torch.no_grad()
    def exchange(self) -> None:
        for cut in self.cuts:
            if cut.from_partial:
                cut.give(self.partial.pop(self._key(cut.payload)))
        for runs, step in self.phases:
            self._phase([(cut, run) for cut, run in runs if step < run.steps.count()], step)
        for cut in self.cuts:
            if cut.keeps_losses:
                self.losses.append((cut.payload, cut.lost()))
            if cut.to_partial:
                self.partial[self._key(cut.payload)] = cut.result().clone()
            elif cut.runs[0].gets_result:
                self.results.append((cut.payload, cut.result()))

    def _phase(self, runs: list[tuple[Cut, Run]], step: int) -> None:
        out: dict[int, list[torch.Tensor]] = {}
        expected: dict[int, list[tuple[Run, Any, int, int]]] = {}
        for cut, run in runs:
            run.before(step)
            for sending in run.steps.of(step, run.p):
                for segment, elements in enumerate(run.lengths(sending)):
                    size = run.codec.bytes(elements)
                    if sending.source == run.p:
                        target = cut.nodes[sending.target]
                        if size > 0:
                            out.setdefault(target, []).append(run.send(step, sending, segment))
                            self.transport.count(target, cut.payload.traffic, size)
                    else:
                        source = cut.nodes[sending.source]
                        expected.setdefault(source, []).append((run, sending, segment, size))
        sizes = {node: sum(entry[3] for entry in entries) for node, entries in expected.items()}
        arrived = self.transport.exchange({node: torch.cat(parts) for node, parts in out.items()},
                                          {node: size for node, size in sizes.items() if size > 0}, self.channel)
        for node, entries in expected.items():
            begin = 0
            for run, sending, segment, size in entries:
                data = arrived[node].narrow(0, begin, size) if size > 0 else torch.empty(0, dtype=torch.uint8)
                run.receive(step, sending, segment, data)
                begin += size
        for _, run in runs:
            run.after(step)
