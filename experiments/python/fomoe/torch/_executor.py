"""Executes a traffic plan inside the user's own training loop (trainer/execution/executor.hpp).

The plan is walked operation by operation. Where it has the node compute a step, the walk stops and the user's loop goes on; the hook
before the optimiser's step and Plan.step() continue the walk. No training method is known by name.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .. import InputError, Scenario
from ._codec import Codec
from ._collectives import make_run
from ._experts import Experts
from ._flights import Flights, Which
from ._groups import Names, Slice, local_experts
from ._plan_file import STEP_WORK, Op, Payload, TrafficPlan
from ._report import Observation, measured_report, peak_memory_bytes
from ._scenario import Answered, ask
from ._sites import Sites, agree, digest
from ._transport import TransferRun, Transport
from ._worker import Worker


def held_experts(scenario: Scenario, node: int, *, plan_file: str | os.PathLike | None = None) -> dict[int, list[int]]:
    """The experts that site `node` holds at the start, by layer, for a model with only these experts (in ascending order)."""
    plan = TrafficPlan(ask(scenario, plan_file).plan)
    owners = plan.owners(0)
    if owners is None:
        owners = {(group.layers[0], group.experts[0]): tuple(range(len(plan.nodes))) for group in plan.groups if group.of_experts()}
    return local_experts(owners, node)


class Plan:
    """The traffic plan of a scenario, executed for one site over torch.distributed.

        plan = fomoe.torch.Plan("scenario.toml", model, optimizer, experts="mlp.experts")
        for batch in batches:                  # plan.steps of them
            loss_of(model, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            plan.step()

    scenario: path or dict, as everywhere in fomoe. experts, router: patterns of parameter names (see _groups.py). group: a process group
    with one rank for each site, in the order of the sites (default: a new one of all ranks, with the default backend). report: file for
    the report of the run, written at rank 0 after the last step. plan_file: a traffic plan to execute instead of that of the scenario's method
    (experiments/plans/README.md). Raises InputError if the scenario and the model do not fit, before anything is trained.

    Gradients that a plan exchanges are exchanged in optimizer.step(), before the optimiser reads them. To clip the averaged gradients,
    call before_step() yourself, before you clip.
    """

    def __init__(self, scenario: Scenario, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, experts: str | Iterable[str] | None = None,
                 router: str | Iterable[str] | None = None, group: Any = None, report: str | os.PathLike | None = None,
                 plan_file: str | os.PathLike | None = None) -> None:
        self._answered: Answered = ask(scenario, plan_file)
        self._plan, self._digest = TrafficPlan(self._answered.plan), digest(self._answered.plan)
        strategy = self._answered.report["scenario"]["strategy"]
        if strategy.get("granularity") == "tensor":
            raise InputError('strategy.granularity: got "tensor"; expected "flat" with fomoe.torch, or buckets; for example strategy.bucket_bytes = "25MB"')
        self.nodes = len(self._plan.nodes)
        self._sites = Sites(self.nodes, group)
        self.node = self._sites.node
        self._check_work()
        names = Names(model, self._plan.groups, experts, router, self._answered.report["scenario"]["model"].get("architecture") == "opaque")
        self._model, self._names = model, names
        self._worker = Worker(self._plan, names, optimizer, self.node, self._answered.outer)
        self._experts = Experts(model, self._worker, self._plan.owners(0))
        self._check_groups()
        device = names.all[0].parameter.device
        self._device = device
        double = all(one.parameter.dtype == torch.float64 for one in names.all)
        like = torch.empty(0, dtype=torch.float64 if double else torch.float32, device=device)
        self._transport = Transport(self.node, self.nodes, self._sites.group, device)
        self._flights = Flights(self._transport, int(strategy.get("bucket_bytes", 0)), like, self._now)
        self._round = self._op = self._steps = self._placement = 0
        self._first_round = self._first_step = 0
        self._left: int | None = None
        self._started: list[bool] = []
        self._done: list[bool] = []
        self._channels: dict[int, int] = {}
        self._read_at: dict[Which, int] = {}
        self._wait = ""
        self._gradients_ready = False
        self._seen = Observation(self.node)
        self._report = pathlib.Path(report) if report is not None else None
        self._started_at = datetime.datetime.now(datetime.timezone.utc)
        self._wants_report = agree(self._sites, self._digest, self._plan, names, self._report is not None)
        if hasattr(optimizer, "register_step_pre_hook"):
            optimizer.register_step_pre_hook(self._hook)
        self._sites.barrier()
        self._zero_s = time.perf_counter()
        self._op_start_s = 0.0
        self._advance()

    # ---- what a user sees ----

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self._plan.steps

    @property
    def steps_done(self) -> int:
        return self._steps

    @property
    def done(self) -> bool:
        """Whether all steps have been made and everything has been exchanged."""
        return self._round == self._plan.rounds

    @property
    def rounds_done(self) -> int:
        return self._round

    def held_experts(self, layer: int) -> list[int]:
        """The experts of a layer that this site holds now."""
        owners = self._experts.owners
        return list(range(self._names.experts_of_layer.get(layer, 0))) if owners is None else local_experts(owners, self.node).get(layer, [])

    def before_step(self) -> None:
        """Exchanges gradients, if the plan does so before the optimiser's step. optimizer.step() calls it, unless it was called before."""
        self._gradients_ready = True
        if self._wait == "gradients":
            self._advance()

    def step(self) -> None:
        """Call it once after each step of the optimiser: it sends, receives and updates what the plan wants after this step."""
        if self.done:
            raise InputError(f"step: got step {self._steps + 1}; expected at most {self.steps} steps, those of the scenario's tokens; for example "
                             "for _ in range(plan.steps)")
        if self._wait != "step":
            raise InputError("step: got a call without a step of the optimiser before it, which exchanges the gradients; expected optimizer.step(), or "
                             "plan.before_step() if the step is not that of the optimiser that the plan was given; for example optimizer.step(); plan.step()")
        if self._steps == self._first_step:
            self._experts.check_masked()
        self._gradients_ready = False
        self._steps += 1
        self._left -= 1
        self._advance()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """For validation and checkpoints between steps: their time counts as upkeep, not as computation."""
        self._synchronise()
        begin = self._now()
        if self._left is not None:
            self._note(self._op, "compute", self._op_start_s, begin)
        yield
        self._synchronise()
        self._op_start_s = self._now()
        self._seen.upkeep_s += self._op_start_s - begin

    def state_dict(self) -> dict[str, Any]:
        """The state of this site's part of the plan, for torch.save beside those of the model and the optimiser, after any plan.step()."""
        tables = {name: [tensor.clone() for tensor in tensors] for name, tensors in self._worker.tables().items()}
        return {"schema": "fomoe.torch-state/1", "plan": self._digest, "node": self.node, "round": self._round, "op": self._op, "left": self._left,
                "started": list(self._started), "done": list(self._done), "steps": self._steps, "placement": self._placement, "wait": self._wait,
                "channels": dict(self._channels), "read_at": list(self._read_at.items()), "worker": tables, "flights": self._flights.state(),
                "averages": [(part.index, part.dim, part.begin, part.end, values) for part, values in self._worker.averages]}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state. Load the states of the model and the optimiser too. Every site must load the state after the same step."""
        if state.get("schema") != "fomoe.torch-state/1" or state["plan"] != self._digest or state["node"] != self.node:
            got = f"site {state['node']} of another plan" if state.get("plan") != self._digest else f"the state of site {state['node']}"
            raise InputError(f"load_state_dict: got {got}; expected the state of site {self.node} with the same scenario and seed; for example the file "
                             "that this rank saved")
        for name, tensors in self._worker.tables().items():
            for tensor, values in zip(tensors, state["worker"][name]):
                tensor.copy_(values)
        self._worker.averages = [(Slice(*entry[:4]), entry[4]) for entry in state["averages"]]
        self._round, self._op, self._left, self._steps = state["round"], state["op"], state["left"], state["steps"]
        self._started, self._done, self._wait = list(state["started"]), list(state["done"]), state["wait"]
        self._placement, self._channels = state["placement"], dict(state["channels"])
        self._read_at = {tuple(which): steps for which, steps in state["read_at"]}
        self._experts.resume(self._plan.owners(self._placement))
        self._flights.load(state["flights"], lambda which: self._plan.ops(which[0])[which[1]])
        positions = self._sites.gathered(self._steps)
        if len(set(positions)) > 1:
            raise InputError(f"load_state_dict: got states after {positions} steps; expected the same number at every site; for example the newest state "
                             "that all sites have")
        self._first_round, self._first_step, self._gradients_ready = self._round, self._steps, False
        self._seen = Observation(self.node)
        self._transport.sent = {}
        self._sites.barrier()
        self._zero_s, self._op_start_s = time.perf_counter(), 0.0

    # ---- checks before anything is trained ----

    def _check_work(self) -> None:
        for ops in self._plan.described():
            for op in ops:
                if op.work and op.work not in (*STEP_WORK, "outer_step"):
                    raise InputError(f'plan: operation "{op.name}": got the work {op.work}; expected one of {", ".join(STEP_WORK)}, outer_step; for example '
                                     "whole_step")
                for exchange in op.exchanges:
                    for payload in exchange.payloads:
                        if payload.traffic not in ("dense", "expert_sync", "migration"):
                            raise InputError(f"traffic: got {payload.traffic}, which belongs to no method; expected no [traffic] table, since fomoe.torch executes "
                                             "only the method's own transfers; for example a scenario without [traffic]")
                        if op.pattern == "point_to_point" and payload.traffic != "migration":
                            raise InputError(f'plan: operation "{op.name}": got a message between two sites that a pass of the model waits for; expected averages; '
                                             'for example strategy.method = "diloco"')
                        make_run(op.pattern, op.collective, len(exchange.nodes), 0, 0, Codec(payload.format), torch.empty(0))  # or it is refused

    def _check_groups(self) -> None:
        seen = set()
        for ops in self._plan.described()[:1]:
            for op in ops:
                for exchange in op.exchanges:
                    for payload in exchange.payloads if self.node in exchange.nodes and not op.migrates else ():
                        if payload.groups not in seen:
                            seen.add(payload.groups)
                            self._worker.slices(payload)

    # ---- the walk ----

    def _now(self) -> float:
        return time.perf_counter() - self._zero_s

    def _synchronise(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _hook(self, *_: Any) -> None:
        self.before_step()

    def _note(self, op: int, activity: str, start_s: float, end_s: float, round: int | None = None) -> None:
        self._seen.intervals.append((op, self._round if round is None else round, activity, start_s, end_s))

    def _advance(self) -> None:
        """Walks on until the user's loop must compute, or to the end."""
        self._wait = ""
        while self._round < self._plan.rounds:
            ops = self._plan.ops(self._round)
            if self._op == 0 and self._left is None and len(self._started) != len(ops):
                self._started, self._done = [False] * len(ops), [False] * len(ops)
                self._channels = self._flights.number(ops)
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
                self._settle((self._round, index))
        self._read_at = {which: steps for which, steps in self._read_at.items() if which[0] >= self._round}
        self._round, self._op, self._started = self._round + 1, 0, []

    def _arrive(self, ops: tuple[Op, ...]) -> None:
        op, index = ops[self._op], self._op
        for later in range(index, len(ops)):
            if ops[later].pattern and not ops[later].migrates and not self._started[later] and self._may_start(ops[later]):
                self._start(later, ops[later])
        if not self._started[index]:
            for before in op.after:
                self._settle((self._round, before))
            for before, back in op.after_earlier:
                self._settle((self._round - back, before))
            if op.work and self.node in op.nodes:
                self._left, self._op_start_s = op.repeat, self._now()
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
                self._worker.outer_step(op.whole_model, self._answered.outer.kept_share if self._trained_on(op) > 0 else 0.0)
            self._left = 0
        elif op.work in ("gradients", "forward", "backward"):
            if self._left > 0 and not self._gradients_ready:
                self._wait = "gradients"
                return True
            self._left = 0
        if self._left > 0:
            self._wait = "step"
            return True
        self._synchronise()
        self._note(self._op, "compute", self._op_start_s, self._now())
        self._done[self._op], self._left = True, None
        self._op += 1
        return False

    def _trained_on(self, op: Op) -> int:
        """Optimiser steps that the node has made since it sent what this operation merges."""
        before = [(self._round, index) for index in op.after] + [(self._round - back, index) for index, back in op.after_earlier]
        return max((self._steps - self._read_at[which] for which in before if which in self._read_at), default=0)

    # ---- transfers ----

    def _may_start(self, op: Op) -> bool:
        if any((self._round - back, before) in self._flights.under_way for before, back in op.after_earlier):
            return False
        return all(self._done[before] or ((self._round, before) in self._flights.under_way
                                          and not self._flights.reads_result_of(op, (self._round, before))) for before in op.after)

    def _source(self, op: Op, payload: Payload) -> torch.Tensor:
        flat = self._worker.read(payload)
        self._worker.finite(payload, flat)
        return flat * self._weight(op, payload) if payload.content == "gradient" else flat

    def _weight(self, op: Op, payload: Payload) -> float:
        """Sites with different batches: the site's sequences divided by the mean over the nodes that the payload is averaged among."""
        counts = [self._plan.nodes[node].get("sequences", 0) for exchange in op.exchanges for node in exchange.nodes
                  if any(other.content == payload.content and other.groups == payload.groups for other in exchange.payloads)]
        mean = sum(counts) / len(counts)
        return self._plan.nodes[self.node].get("sequences", 0) / mean if mean > 0 else 1.0

    def _read_into(self, run: TransferRun, op: Op) -> None:
        lossy = any(payload.content == "pseudo_gradient" and Codec(payload.format).lossy for cut in run.cuts for payload in [cut.payload])
        run.read(lambda payload: self._source(op, payload), self._worker.keep_residual if lossy else None)

    def _start(self, index: int, op: Op) -> None:
        self._started[index] = True
        run = self._flights.run(op, self._round, self._channels[index])
        self._read_into(run, op)
        self._synchronise()
        self._flights.start((self._round, index), op, run, self._steps)
        self._read_at[self._round, index] = self._steps

    def _settle(self, which: Which) -> None:
        """Waits for a transfer that is under way, and writes what it received into the model."""
        if which not in self._flights.under_way:
            return
        for before in self._flights.under_way[which].op.after:
            self._settle((which[0], before))
        flight = self._flights.wait(which)
        for payload, values in flight.results:
            self._worker.write(payload, values, self._steps)
        if which[0] == self._round:
            self._done[which[1]] = True
        if any(self.node in exchange.nodes for exchange in flight.op.exchanges) and flight.end_s > 0:
            self._note(which[1], "transfer", flight.start_s, flight.end_s, which[0])

    def _migrate(self, op: Op, index: int) -> None:
        """Experts change owners: the old ones send, all change, the new ones write. Owners that stay write what the new ones decoded, since
        all owners must agree also if the format is lossy. If the outer state is not sent, it is reset at all owners."""
        start_s = self._now()
        run = self._flights.run(op, self._round, self._channels[index])
        self._read_into(run, op)
        self._synchronise()
        self._flights.run_now(run)
        before, after = self._plan.owners(self._round), self._plan.owners(self._round + 1)
        self._experts.change(after)
        self._placement = self._round + 1
        moved, sent, contents = set(), set(), set()
        for exchange in op.exchanges:
            for payload in exchange.payloads:
                group = self._plan.groups[payload.groups[0]]
                key = (group.layers[0], group.experts[0])
                moved.add(key)
                contents.add(payload.content)
                if (payload.content, key) in sent:
                    continue
                sent.add((payload.content, key))
                if self.node in after[key] and self.node in before[key]:
                    self._worker.write(payload, Codec(payload.format).round_trip(self._worker.read(payload)), self._steps)
        for payload, values in run.results:
            group = self._plan.groups[payload.groups[0]]
            if self.node in after[group.layers[0], group.experts[0]]:
                self._worker.write(payload, values, self._steps)
        if "outer_moment1" not in contents:
            self._experts.reset_outer_state(moved)
        if any(self.node in exchange.nodes for exchange in op.exchanges):
            self._note(index, "transfer", start_s, self._now())

    def _finish(self) -> None:
        """Transfers that go on after the last round change no weights: their averages arrive too late."""
        for which in list(self._flights.under_way):
            self._settle(which)
        self._flights.close()
        self._seen.sent = self._transport.sent
        self._seen.memory_bytes = peak_memory_bytes(self._device)
        seen = self._sites.gathered(self._seen) if self._wants_report else []
        self._sites.close()
        if self._report is not None and self.node == 0:
            document = measured_report(self._answered, self._plan, seen, first_round=self._first_round, steps=self._steps - self._first_step,
                                       device=self._device, started_at=self._started_at)
            self._report.write_text(json.dumps(document, indent=2) + "\n")
