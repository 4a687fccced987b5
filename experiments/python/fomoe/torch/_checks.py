"""What is checked before anything is trained: that the plan has only operations that are executed here, and that the model is its model."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from .. import InputError
from ._codec import Codec
from ._collectives import make_run
from ._plan_file import STEP_WORK, Op, TrafficPlan
from ._worker import Worker


def check_against_scenario(plan: TrafficPlan, report: dict[str, Any]) -> None:
    """Raises InputError if a plan from a file is that of other sites or of another number of steps."""
    sites, steps = len(report["scenario"]["platform"]["sites"]), report["optimizer_steps"]
    if any(node["site"] >= sites for node in plan.nodes):
        raise InputError(f"plan_file: got a plan of {len(plan.nodes)} nodes at {1 + max(node['site'] for node in plan.nodes)} sites; expected the {sites} sites "
                         "of the scenario; for example the file that `fomoe simulate --write-plan` writes for it")
    if plan.steps != steps:
        raise InputError(f"plan_file: got a plan of {plan.steps} optimiser steps; expected {steps}, those of the scenario's tokens; for example the file that "
                         "`fomoe simulate --write-plan` writes for it")


_Chunk = tuple[int, str, tuple[int, ...]]  # node, content and groups


def _check_chunks(op: Op, left: set[_Chunk]) -> None:
    """Chunks that an operation reads must have been left by a reduce-scatter of the same round. `left`: those that are there."""
    for exchange in op.exchanges:
        for node, payload in itertools.product(exchange.nodes, exchange.payloads):
            key = (node, payload.content, payload.groups)
            if (op.pattern == "all_gather" or payload.chunks > 1) and key not in left:
                raise InputError(f'plan: operation "{op.name}": got chunks that no operation of the round has left; expected a reduce-scatter before it; for '
                                 'example strategy.method = "diloco"')
            if op.pattern == "all_gather":
                left.discard(key)
            elif op.pattern == "reduce_scatter":
                left.add(key)


def check_operations(plan: TrafficPlan) -> None:
    """Raises InputError if something in the plan is not executed."""
    for ops in plan.described():
        left: set[_Chunk] = set()
        for op in ops:
            if op.work in ("whole_step", "optimizer") and op.share != 1:
                raise InputError(f'plan: operation "{op.name}": got {op.share:.3g} of a step; expected whole steps, since an optimiser of PyTorch updates all '
                                 "layers together; for example strategy.layerwise = false")
            if op.after_earlier and op.work and (op.work != "outer_step" or op.whole_model):
                raise InputError(f'plan: operation "{op.name}": got an operation that waits for a transfer of the whole model of an earlier round, whose '
                                 "differences would be overwritten before they are sent; expected fragments, or no delay; for example strategy.method = "
                                 '"streaming_diloco"')
            _check_chunks(op, left)
            if op.work and op.work not in (*STEP_WORK, "outer_step"):
                raise InputError(f'plan: operation "{op.name}": got the work {op.work}; expected one of {", ".join(STEP_WORK)}, outer_step; for example '
                                 "whole_step")
            for exchange in op.exchanges:
                for payload in exchange.payloads:
                    if payload.traffic not in ("dense", "expert_sync", "migration"):
                        raise InputError(f"traffic: got {payload.traffic}, which belongs to no method; expected no [traffic] table, since fomoe.torch executes "
                                         "only the method's own transfers; for example a scenario without [traffic]")
                    if op.pattern == "point_to_point" and payload.traffic != "migration":
                        raise InputError(f'plan: operation "{op.name}": got a message between two sites; expected averages of several; '
                                         'for example strategy.method = "diloco"')
                    make_run(op.pattern, op.collective, len(exchange.nodes), 0, 0, Codec(payload.format), torch.empty(0))  # or it is refused


def check_groups(plan: TrafficPlan, worker: Worker) -> None:
    """Raises InputError if the model does not have the elements that the plan sends."""
    seen = set()
    for ops in plan.described()[:1]:
        for op in ops:
            for exchange in op.exchanges:
                for payload in exchange.payloads if worker.node in exchange.nodes and not op.migrates else ():
                    if payload.groups not in seen:
                        seen.add(payload.groups)
                        worker.slices(payload)
