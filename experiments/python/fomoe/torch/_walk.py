"""Walks over the operations of a plan (trainer/execution/executor.hpp). Where the plan has the node compute a step, the walk stops until the
user's loop has made it. No training method is known by name."""

from __future__ import annotations

import time
from typing import Any

import torch

from ._codec import Codec
from ._experts import Experts
from ._flights import Flights, Which
from ._groups import Slice
from ._plan_file import Op, Payload, TrafficPlan
from ._report import Observation
from ._transport import TransferRun, Transport
from ._worker import Worker


class Walk:
    """A node's place in the plan. waits_for: what the user's loop must do next: "gradients", "step", or "" at the end."""

    def __init__(self, plan: TrafficPlan, worker: Worker, experts: Experts, transport: Transport, bucket_bytes: int, like: torch.Tensor) -> None:
        self.plan, self.worker, self.experts, self.transport = plan, worker, experts, transport
        self.node, self.device = worker.node, like.device
        self.flights = Flights(transport, bucket_bytes, like, self.now)
        self.round = self.steps = 0
        self.waits_for = ""
        self.seen = Observation(self.node)
        self._op = self._placement = 0
        self._left: int | None = None  # repetitions of the computation that the node is in; None before it
        self._started: list[bool] = []
        self._done: list[bool] = []  # its results are in the model
        self._channels: dict[int, int] = {}
        self._read_at: dict[Which, int] = {}  # steps that had been made when a transfer read what it sends
        self._gradients_ready = False
        self.restart_clock()

    @property
    def done(self) -> bool:
        return self.round == self.plan.rounds

    def restart_clock(self) -> None:
        self._zero_s, self._op_start_s = time.perf_counter(), 0.0

    def now(self) -> float:
        """Seconds since the clock was started."""
        return time.perf_counter() - self._zero_s

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    # ---- what the user's loop has done ----

    def gradients_ready(self) -> None:
        self._gradients_ready = True
        if self.waits_for == "gradients":
            self.advance()

    def step_made(self) -> None:
        self._gradients_ready = False
        self.steps += 1
        self._left -= 1
        self.advance()

    def pause(self) -> float:
        """Ends the interval of the computation that the node is in; returns the time."""
        self.synchronise()
        begin_s = self.now()
        if self._left is not None:
            self._note(self._op, "compute", self._op_start_s, begin_s)
        return begin_s

    def go_on(self, paused_s: float) -> None:
        self.synchronise()
        self._op_start_s = self.now()
        self.seen.upkeep_s += self._op_start_s - paused_s
        if self.round < self.plan.rounds:  # what follows the last round is not part of the measured time
            self._note(-1, "upkeep", paused_s, self._op_start_s)

    # ---- checkpoints ----

    def state(self) -> dict[str, Any]:
        """Only numbers, texts and tensors, so that torch.load reads it without pickled code."""
        flights = self.flights.state()  # first: what transfers lost belongs to the worker's tables
        for flight in self.flights.under_way.values():
            for payload, values in flight.losses:
                self.worker.keep_residual(payload, values)
        tables = {name: [tensor.clone() for tensor in tensors] for name, tensors in self.worker.tables().items()}
        return {"round": self.round, "op": self._op, "left": self._left, "started": list(self._started), "done": list(self._done), "steps": self.steps,
                "placement": self._placement, "waits_for": self.waits_for, "channels": dict(self._channels), "read_at": list(self._read_at.items()),
                "worker": tables, "flights": flights,
                "averages": [(part.index, part.dim, part.begin, part.end, values.clone()) for part, values in self.worker.averages]}

    @torch.no_grad()
    def load(self, state: dict[str, Any]) -> None:
        for name, tensors in self.worker.tables().items():
            for tensor, values in zip(tensors, state["worker"][name]):
                tensor.copy_(values)
        self.worker.averages = [(Slice(*entry[:4]), entry[4]) for entry in state["averages"]]
        self.round, self._op, self._left, self.steps = state["round"], state["op"], state["left"], state["steps"]
        self._started, self._done, self.waits_for = list(state["started"]), list(state["done"]), state["waits_for"]
        self._placement, self._channels = state["placement"], dict(state["channels"])
        self._read_at = {tuple(which): steps for which, steps in state["read_at"]}
        self._gradients_ready = False
        self.experts.resume(self.plan.owners(self._placement))
        self.flights.load(state["flights"], lambda which: self.plan.ops(which[0])[which[1]])
        self.seen = Observation(self.node)
        self.transport.sent = {}

    # ---- operations ----

    def _note(self, op: int, activity: str, start_s: float, end_s: float, round: int | None = None) -> None:
        self.seen.intervals.append((op, self.round if round is None else round, activity, start_s, end_s))

    def advance(self) -> None:
        """Walks on until the user's loop must compute, or to the end."""
        self.waits_for = ""
        while self.round < self.plan.rounds:
            ops = self.plan.ops(self.round)
            if self._op == 0 and self._left is None and len(self._started) != len(ops):
                self._started, self._done = [False] * len(ops), [False] * len(ops)
                self._channels = self.flights.number(ops)
            if self._op == len(ops):
                self._end_round(ops)
            elif self._left is None:
                self._arrive(ops)
            elif self._compute(ops[self._op]):
                return
        self._finish()

    def _end_round(self, ops: tuple[Op, ...]) -> None:
        for index, op in enumerate(ops):
            if not op.detached:
                self._settle((self.round, index))
        self._read_at = {which: steps for which, steps in self._read_at.items() if which[0] >= self.round}
        self.round, self._op, self._started = self.round + 1, 0, []

    def _arrive(self, ops: tuple[Op, ...]) -> None:
        op, index = ops[self._op], self._op
        for later in range(index, len(ops)):
            if ops[later].pattern and not ops[later].migrates and not self._started[later] and self._may_start(ops[later]):
                self._start(later, ops[later])
        if not self._started[index]:
            for before in op.after:
                self._settle((self.round, before))
            for before, back in op.after_earlier:
                self._settle((self.round - back, before))
            if op.work and self.node in op.nodes:
                self._left, self._op_start_s = op.repeat, self.now()
                return
            if op.migrates:
                self._migrate(op, index)
            elif op.pattern:
                self._start(index, op)
            if not op.pattern or op.migrates:
                self._done[index] = True
        self._op += 1

    def _compute(self, op: Op) -> bool:
        """The operation that the node is in. Returns whether the user's loop must go on first."""
        if op.work == "outer_step":
            for _ in range(self._left):
                self.worker.outer_step(op.whole_model, self.worker.outer.kept_share if self._trained_on(op) > 0 else 0.0)
            self._left = 0
        elif op.work in ("gradients", "forward", "backward"):
            if self._left > 0 and not self._gradients_ready:
                self.waits_for = "gradients"
                return True
            self._left = 0
        if self._left > 0:
            self.waits_for = "step"
            return True
        self.synchronise()
        self._note(self._op, "compute", self._op_start_s, self.now())
        self._done[self._op], self._left = True, None
        self._op += 1
        return False

    def _trained_on(self, op: Op) -> int:
        """Optimiser steps that the node has made since it sent what this operation merges."""
        before = [(self.round, index) for index in op.after] + [(self.round - back, index) for index, back in op.after_earlier]
        return max((self.steps - self._read_at[which] for which in before if which in self._read_at), default=0)

    # ---- transfers ----

    def _may_start(self, op: Op) -> bool:
        if any((self.round - back, before) in self.flights.under_way for before, back in op.after_earlier):
            return False
        return all(self._done[before] or ((self.round, before) in self.flights.under_way
                                          and not self.flights.reads_result_of(op, (self.round, before))) for before in op.after)

    def _source(self, op: Op, payload: Payload) -> torch.Tensor:
        flat = self.worker.read(payload)
        self.worker.finite(payload, flat)
        return flat * self._weight(op, payload) if payload.content == "gradient" else flat

    def _weight(self, op: Op, payload: Payload) -> float:
        """Sites with different batches: the site's sequences divided by the mean over the nodes that the payload is averaged among."""
        counts = [self.plan.nodes[node].get("sequences", 0) for exchange in op.exchanges for node in exchange.nodes
                  if any(other.content == payload.content and other.groups == payload.groups for other in exchange.payloads)]
        mean = sum(counts) / len(counts)
        return self.plan.nodes[self.node].get("sequences", 0) / mean if mean > 0 else 1.0

    def _read_into(self, run: TransferRun, op: Op) -> None:
        lossy = any(payload.content == "pseudo_gradient" and Codec(payload.format).lossy for cut in run.cuts for payload in [cut.payload])
        run.read(lambda payload: self._source(op, payload), lossy)

    def _start(self, index: int, op: Op) -> None:
        self._started[index] = True
        run = self.flights.run(op, self.round, self._channels[index])
        self._read_into(run, op)
        self.synchronise()
        self.flights.start((self.round, index), op, run, self.steps)
        self._read_at[self.round, index] = self.steps

    def _settle(self, which: Which) -> None:
        """Waits for a transfer that is under way, and writes what it received into the model."""
        if which not in self.flights.under_way:
            return
        for before in self.flights.under_way[which].op.after:
            self._settle((which[0], before))
        flight = self.flights.wait(which)
        for payload, values in flight.losses:
            self.worker.keep_residual(payload, values)
        for payload, values in flight.results:
            self.worker.write(payload, values, self.steps, keeps_anchor=flight.op.pattern == "all_reduce")
        if which[0] == self.round:
            self._done[which[1]] = True
        if any(self.node in exchange.nodes for exchange in flight.op.exchanges) and flight.end_s > 0:
            self._note(which[1], "transfer", flight.start_s, flight.end_s, which[0])

    def _migrate(self, op: Op, index: int) -> None:
        """Experts change owners: the old ones send, all change, the new ones write. Owners that stay write what the new ones decoded, since
        all owners must agree also if the format is lossy. If the outer state is not sent, it is reset at all owners."""
        start_s = self.now()
        run = self.flights.run(op, self.round, self._channels[index])
        self._read_into(run, op)
        self.synchronise()
        self.flights.run_now(run)
        before, after = self.plan.owners(self.round), self.plan.owners(self.round + 1)
        self.experts.change(after)
        self._placement = self.round + 1
        moved, sent, contents = set(), set(), set()
        for exchange in op.exchanges:
            for payload in exchange.payloads:
                group = self.plan.groups[payload.groups[0]]
                key = (group.layers[0], group.experts[0])
                moved.add(key)
                contents.add(payload.content)
                if (payload.content, key) in sent:
                    continue
                sent.add((payload.content, key))
                if self.node in after[key] and self.node in before[key]:
                    self.worker.write(payload, Codec(payload.format).round_trip(self.worker.read(payload)), self.steps)
        for payload, values in run.results:
            group = self.plan.groups[payload.groups[0]]
            if self.node in after[group.layers[0], group.experts[0]]:
                self.worker.write(payload, values, self.steps)
        if "outer_moment1" not in contents:
            self.experts.reset_outer_state(moved)
        if any(self.node in exchange.nodes for exchange in op.exchanges):
            self._note(index, "transfer", start_s, self.now())

    def _finish(self) -> None:
        """Transfers that go on after the last round change no weights: their averages arrive too late."""
        for which in list(self.flights.under_way):
            self._settle(which)
        self.flights.close()
