"""The processes of a run: one for each site of the plan, which must agree on the plan and on the initial weights."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch
import torch.distributed as dist

from .. import InputError
from ._groups import Names
from ._plan_file import TrafficPlan

_PART = 1 << 22  # elements at once
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Sites:
    """A process group with one rank for each site, in the order of the sites."""

    def __init__(self, count: int, group: Any) -> None:
        self.count, self.group, self.node = count, None, 0
        if count == 1:
            started = dist.is_available() and dist.is_initialized()
            if started and dist.get_world_size(group) != 1:
                raise InputError(f"torch.distributed: got {dist.get_world_size(group)} processes; expected 1, since only one site of the scenario trains; "
                                 "for example torchrun --nproc-per-node 1")
            return
        if not dist.is_available() or not dist.is_initialized():
            raise InputError(f"torch.distributed: got no process group; expected one process for each of the {count} sites; for example "
                             'torch.distributed.init_process_group("gloo") under torchrun')
        backend = dist.get_backend()
        # A group of its own, so that its messages meet no others.
        self.group = group if group is not None else dist.new_group(backend=backend if backend in ("gloo", "nccl") else "gloo")
        if dist.get_world_size(self.group) != count:
            raise InputError(f"torch.distributed: got {dist.get_world_size(self.group)} processes; expected {count}, one for each site of the scenario; for "
                             f"example torchrun --nproc-per-node {count}")
        self.node = dist.get_rank(self.group)

    def gathered(self, value: Any) -> list[Any]:
        """The values of all sites, in their order."""
        if self.count == 1:
            return [value]
        out: list[Any] = [None] * self.count
        dist.all_gather_object(out, value, group=self.group)
        return out

    def barrier(self) -> None:
        if self.count > 1:
            dist.barrier(self.group)

    def broadcast(self, tensor: torch.Tensor, source: int) -> None:
        """Site `source` sends its tensor, which all others receive in place."""
        if self.count > 1:
            on = tensor if dist.get_backend(self.group) == "nccl" else tensor.cpu()
            dist.broadcast(on, dist.get_global_rank(self.group, source), group=self.group)
            if on is not tensor:
                tensor.copy_(on)


def digest(plan: Any) -> str:
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


@torch.no_grad()
def checksum(tensor: torch.Tensor) -> int:
    """Differs for tensors that differ in a bit, except by a rare chance."""
    flat = tensor.detach().contiguous().reshape(-1).view(_INTEGERS[tensor.element_size()])
    weights = torch.arange(1, min(_PART, flat.numel()) + 1, device=flat.device) % 8191 + 1
    total = 0
    for number, part in enumerate(flat.split(_PART)):
        total += (number + 1) * int((part.to(torch.int64) * weights[: part.numel()]).sum())
    return total


def agree(sites: Sites, plan: str, traffic: TrafficPlan, names: Names, wants_report: bool) -> bool:
    """Whether some site wants a report. plan: digest of the plan. Raises InputError, naming what differs, at every site: averages of different models would be none."""
    whole = [one for one in names.all if one.kind not in ("expert", "router") or not traffic.placed]
    own = {"plan": plan, "weights": {one.name: checksum(one.parameter) for one in whole}, "report": wants_report}
    everywhere = sites.gathered(own)
    first = everywhere[0]
    for node, other in enumerate(everywhere):
        if other["plan"] != first["plan"]:
            raise InputError(f"scenario: got another traffic plan at rank {node} than at rank 0; expected the same scenario, seed and version of fomoe at "
                             "every site; for example the same file")
        differing = [name for name in other["weights"] if other["weights"][name] != first["weights"].get(name)]
        if differing:
            raise InputError(f"model: got other weights of {differing[0]} at rank {node} than at rank 0; expected the same initial weights at every site; "
                             "for example torch.manual_seed(0) before the model is made")
    return any(other["report"] for other in everywhere)
