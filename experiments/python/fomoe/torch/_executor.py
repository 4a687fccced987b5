"""Executes a scenario's traffic plan inside the user's own training loop."""

from __future__ import annotations

import contextlib
import datetime
import json
import numbers
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .. import InputError, Scenario
from .._files import check_output, write_whole
from ._checks import check_against_scenario, check_groups, check_operations
from ._experts import Experts
from ._groups import Names, local_experts
from ._plan_file import TrafficPlan
from ._report import measured_report, peak_memory_bytes
from ._scenario import ask
from ._sites import Sites, agree, digest
from ._transport import Transport
from ._walk import Walk
from ._worker import Worker

SCHEMA = "fomoe.torch-state/1"


def held_experts(scenario: Scenario, node: int, *, plan_file: str | os.PathLike | None = None) -> dict[int, list[int]]:
    """The experts that site `node` holds at the start, by layer, for a model with only these experts (in ascending order)."""
    plan = TrafficPlan(ask(scenario, plan_file).plan)
    if isinstance(node, bool) or not isinstance(node, numbers.Integral) or not 0 <= node < len(plan.nodes):
        raise InputError(f"node: got {node!r}; expected the place of a site, from 0 to {len(plan.nodes) - 1}; for example "
                         'int(os.environ["RANK"])')
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

    scenario: path or dict, as everywhere in fomoe. optimizer: one, or several that step one after the other. experts, router: patterns of
    parameter names (see _groups.py). automatic: the last optimiser's step() calls step(), so that the loop needs no new line. group: a process group
    with one rank for each site, in the order of the sites (default: a new one of all ranks, with the default backend). report: file for
    the report of the run, written at rank 0 after the last step. plan_file: a traffic plan to execute instead of that of the scenario's method
    (experiments/plans/README.md). Raises InputError if the scenario and the model do not fit, before anything is trained.

    Gradients that a plan exchanges are exchanged in optimizer.step(), before the optimiser reads them. To clip the averaged gradients,
    call before_step() yourself, before you clip.
    """

    def __init__(self, scenario: Scenario, model: torch.nn.Module, optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer], *,
                 experts: str | Iterable[str] | None = None, router: str | Iterable[str] | None = None, automatic: bool = False, group: Any = None,
                 report: str | os.PathLike | None = None, plan_file: str | os.PathLike | None = None) -> None:
        optimizers = [optimizer] if hasattr(optimizer, "param_groups") else list(optimizer)
        if report is not None:
            check_output("report", report, [file for file in (scenario, plan_file) if isinstance(file, (str, os.PathLike))])
        self._answered = ask(scenario, plan_file)
        self._plan, self._digest = TrafficPlan(self._answered.plan), digest(self._answered.plan)
        resolved = self._answered.report["scenario"]
        if resolved["strategy"].get("quorum") is not None:
            raise InputError(f'strategy.quorum: got {resolved["strategy"]["quorum"]}; expected no quorum with fomoe.torch, which waits for all sites in every '
                             "round; for example a scenario without strategy.quorum")
        if resolved["strategy"].get("granularity") == "tensor":
            raise InputError('strategy.granularity: got "tensor"; expected "flat" with fomoe.torch, or buckets; for example strategy.bucket_bytes = "25MB"')
        check_against_scenario(self._plan, self._answered.report)
        check_operations(self._plan)
        self._sites = Sites(len(self._plan.nodes), group)
        self._names = Names(model, self._plan.groups, experts, router, resolved["model"].get("architecture") == "opaque")
        worker = Worker(self._plan, self._names, optimizers, self.node, self._answered.outer)
        self._experts = Experts(model, worker, self._plan.owners(0))
        check_groups(self._plan, worker)
        device = self._names.all[0].parameter.device
        double = all(one.parameter.dtype == torch.float64 for one in self._names.all)
        like = torch.empty(0, dtype=torch.float64 if double else torch.float32, device=device)
        transport = Transport(self.node, self._sites.count, self._sites.group, device)
        self._walk = Walk(self._plan, worker, self._experts, transport, int(resolved["strategy"].get("bucket_bytes", 0)), like)
        self._first_round = self._first_step = 0
        self._report = pathlib.Path(report).absolute() if report is not None else None
        self._started_at = datetime.datetime.now(datetime.timezone.utc)
        self._wants_report = agree(self._sites, self._digest, self._plan, self._names, self._report is not None)
        for one in optimizers:
            one.register_step_pre_hook(self._before_step_of)
        if automatic:
            optimizers[-1].register_step_post_hook(lambda *_: self.step())
        self._sites.barrier()
        self._walk.restart_clock()
        self._walk.advance()

    @property
    def node(self) -> int:
        """The place of this site among the sites."""
        return self._sites.node

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self._plan.steps

    @property
    def steps_done(self) -> int:
        return self._walk.steps

    @property
    def done(self) -> bool:
        """Whether all steps have been made and everything has been exchanged."""
        return self._walk.done

    def held_experts(self, layer: int) -> list[int]:
        """The experts of a layer that this site holds now."""
        owners = self._experts.owners
        return list(range(self._names.experts_of_layer.get(layer, 0))) if owners is None else local_experts(owners, self.node).get(layer, [])

    def before_step(self) -> None:
        """Exchanges gradients, if the plan does so before the optimiser's step. optimizer.step() calls it, unless it was called before."""
        self._walk.gradients_ready()

    def _before_step_of(self, _optimizer: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        closure = args[1] if len(args) > 1 else kwargs.get("closure")  # the optimiser is args[0]
        if closure is not None and self._walk.waits_for == "gradients":
            raise InputError("optimizer.step: got a closure, which computes the gradients after they would have been exchanged; expected gradients before "
                             "the step, since this plan exchanges them; for example loss.backward(); optimizer.step()")
        self.before_step()

    def step(self) -> None:
        """Call it once after each step of the optimiser: it sends, receives and updates what the plan wants after this step."""
        if self.done:
            raise InputError(f"step: got step {self.steps_done + 1}; expected at most {self.steps} steps, those of the scenario's tokens; for example "
                             "for _ in range(plan.steps)")
        if self._walk.waits_for != "step":
            raise InputError("step: got a call without a step of the optimiser before it, which exchanges the gradients; expected optimizer.step(), or "
                             "plan.before_step() if the step is not that of the optimiser that the plan was given; for example optimizer.step(); plan.step()")
        if self.steps_done == self._first_step:
            self._experts.check_masked()
        self._walk.step_made()
        if self.done:
            self._end()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """For validation and checkpoints between steps: their time counts as upkeep, not as computation."""
        begin_s = self._walk.pause()
        yield
        self._walk.go_on(begin_s)

    @contextlib.contextmanager
    def whole_model(self) -> Iterator[None]:
        """Inside, the model has the experts of all sites, and its routers may choose all of them: for validation, or to save the whole model.
        Every site must enter it after the same step. The bytes belong to no plan and are not counted, and the time is upkeep. It takes the memory of another copy of
        the experts."""
        with self.pause():
            self._walk.flights.wait_for_all()
            with self._experts.whole(self._sites):
                yield

    def state_dict(self) -> dict[str, Any]:
        """The state of this site's part of the plan, for torch.save beside those of the model and the optimiser, after any plan.step()."""
        return {"schema": SCHEMA, "plan": self._digest, "node": self.node, **self._walk.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state. Load the states of the model and the optimiser too. Every site must load the state after the same step."""
        if state.get("schema") != SCHEMA or state["plan"] != self._digest or state["node"] != self.node:
            got = "a state of another plan" if state.get("plan") != self._digest else f"the state of site {state['node']}"
            raise InputError(f"load_state_dict: got {got}; expected the state of site {self.node} with the same scenario and seed; for example the file "
                             "that this rank saved")
        steps = self._sites.gathered(state["steps"])
        if len(set(steps)) > 1:
            raise InputError(f"load_state_dict: got states after {steps} steps; expected the same number at every site; for example the newest state "
                             "that all sites have")
        self._walk.load(state)
        self._first_round, self._first_step = self._walk.round, self._walk.steps
        self._sites.barrier()
        self._walk.restart_clock()

    def _end(self) -> None:
        seen = self._walk.seen
        seen.sent, seen.memory_bytes = self._walk.transport.sent, peak_memory_bytes(self._walk.device)
        everywhere = self._sites.gathered(seen) if self._wants_report else []
        self._sites.barrier()
        if self._report is not None and self.node == 0:
            document = measured_report(self._answered, self._plan, everywhere, first_round=self._first_round, steps=self.steps_done - self._first_step,
                                       device=self._walk.device, started_at=self._started_at)
            self._write(json.dumps(document, indent=2) + "\n")

    def _write(self, report: str) -> None:
        """A report is the result of hours, so it is not lost with the disk of its file."""
        try:
            write_whole(self._report, report)
        except OSError as error:
            print(report, flush=True)
            raise OSError(f"{self._report}: cannot be written ({error.strerror}); the report was printed instead") from error
