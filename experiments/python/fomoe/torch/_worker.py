"""One node's share of the training: how the elements of a payload are read from the model and written to it
(trainer/execution/worker.hpp). Nothing here depends on a training method; the payload's content selects what it holds:

    parameter, gradient                  the parameter, its gradient
    moment1, moment2                     exp_avg and exp_avg_sq of the optimiser (AdamW)
    outer_moment1, outer_moment2         the outer optimiser's state
    pseudo_gradient                      θ_before − θ: the anchor (the parameters at the last synchronisation) minus the parameters
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import InputError
from ._codec import Codec
from ._groups import Names, Slice, local_experts
from ._outer import moments, outer_step
from ._plan_file import Owners, Payload, TrafficPlan
from ._scenario import Outer

_MOMENTS = {"moment1": "exp_avg", "moment2": "exp_avg_sq"}


class Worker:
    """Tensors of the state have the shapes of the parameters, in fp32, or fp64 for fp64 parameters."""

    def __init__(self, plan: TrafficPlan, names: Names, optimizers: list[Any], node: int, outer: Outer) -> None:
        self.plan, self.names, self.node, self.outer = plan, names, node, outer
        self._optimizer_of = {parameter: optimizer for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]}
        self.layers = max((group.layers[1] for group in plan.groups), default=0)
        ops = [op for ops in plan.described() for op in ops]
        payloads = [payload for op in ops for exchange in op.exchanges if node in exchange.nodes for payload in exchange.payloads]
        steps = any(op.work == "outer_step" and node in op.nodes for op in ops)
        sends = any(payload.content == "pseudo_gradient" for payload in payloads)
        lossy = any(payload.content == "pseudo_gradient" and Codec(payload.format).lossy for payload in payloads)
        # A router's rows go with the experts, unless the router scores all experts, also absent ones (skip-token).
        self.router_with_experts = any(group.of_experts() and "router" in group.classes for group in plan.groups)
        self.anchor = [self._copy(one.parameter) for one in names.all] if steps or sends else []
        self.residual = [torch.zeros_like(tensor) for tensor in self.anchor] if lossy else []
        self.state1 = [torch.zeros_like(tensor) for tensor in self.anchor] if steps else []
        self.state2 = [torch.zeros_like(tensor) for tensor in self.anchor] if steps and moments(outer.kind) == 2 else []
        self.averages: list[tuple[Slice, torch.Tensor]] = []
        self.local: dict[int, list[int]] | None = None
        self._slices: dict[int, list[Slice]] = {}
        wanted = sorted({payload.content for payload in payloads} & set(_MOMENTS))
        without = [type(optimizer).__name__ for optimizer in optimizers if "betas" not in optimizer.defaults]
        if wanted and without:
            raise InputError(f"optimizer: got {without[0]}, which has no moments, but the plan averages {wanted[0]}; expected AdamW; for example "
                             "torch.optim.AdamW(model.parameters())")

    def state_of(self, parameter: torch.nn.Parameter) -> dict[str, Any]:
        """The optimiser's state of a parameter; nothing that lasts if no optimiser has the parameter."""
        optimizer = self._optimizer_of.get(parameter)
        return {} if optimizer is None else optimizer.state[parameter]

    @staticmethod
    def _copy(parameter: torch.nn.Parameter) -> torch.Tensor:
        return parameter.detach().to(torch.float64 if parameter.dtype == torch.float64 else torch.float32, copy=True)

    def hold(self, owners: Owners | None) -> None:
        """The experts that the model has from now on. It matters for slices only if the model has no others."""
        self.local = local_experts(owners, self.node) if owners is not None and self.names.held else None
        if self.names.held and owners is None:
            raise InputError("experts: got a model with a part of the experts; expected all of them, which the plan gives to every site; for example "
                             "strategy.method = \"fomoe\"")
        if self.local is not None:
            self.names.check_held(self.local)
            self._slices = {}

    def slices(self, payload: Payload) -> list[Slice]:
        out: list[Slice] = []
        for number in payload.groups:
            if number not in self._slices:
                self._slices[number] = self.names.slices(self.plan.groups[number], self.layers, self.local)
            out += self._slices[number]
        return out

    # ---- payloads ----

    def _inner(self, key: str, parameter: torch.nn.Parameter, steps: int | None) -> torch.Tensor | None:
        """A moment of the optimiser. With `steps` it is made if it is missing: the parameter had no gradient here, but elsewhere."""
        state = self.state_of(parameter)
        if key not in state and steps is not None:
            state.setdefault("step", torch.tensor(float(steps)))
            for name in _MOMENTS.values():
                state.setdefault(name, torch.zeros_like(parameter))
        return state.get(key)

    def _read(self, content: str, part: Slice) -> torch.Tensor:
        parameter = self.names.all[part.index].parameter
        if content == "parameter":
            return part.of(parameter.detach())
        if content == "gradient":
            return part.of(parameter.grad if parameter.grad is not None else torch.zeros_like(parameter))
        if content in _MOMENTS:
            moment = self._inner(_MOMENTS[content], parameter, None)
            return part.of(moment if moment is not None else torch.zeros_like(parameter))
        if content in ("outer_moment1", "outer_moment2"):
            return part.of((self.state1 if content == "outer_moment1" else self.state2)[part.index])
        if content == "pseudo_gradient":
            difference = part.of(self.anchor[part.index]) - part.of(parameter.detach())
            return difference + self.outer.residual_decay * part.of(self.residual[part.index]) if self.residual else difference
        raise InputError(f"plan: content: got {content}; expected parameter, gradient, pseudo_gradient or a moment; for example strategy.method = \"diloco\"")

    @torch.no_grad()
    def read(self, payload: Payload) -> torch.Tensor:
        """A copy of the payload's elements: flat, in the plan's order. With error feedback it includes what earlier payloads lost."""
        parts = [self._read(payload.content, part).reshape(-1) for part in self.slices(payload)]
        if not parts:
            return torch.empty(0)
        kind = torch.float64 if all(part.dtype == torch.float64 for part in parts) else torch.float32
        return torch.cat([part.to(kind) for part in parts])

    def finite(self, payload: Payload, flat: torch.Tensor) -> None:
        if not math.isfinite(flat.sum().item()):
            names = [self.names.all[part.index].name for part in self.slices(payload)]
            raise FloatingPointError(f"the training diverged: a {payload.content} in {names[0]} is not finite, and was about to be sent")

    def _targets(self, payload: Payload, flat: torch.Tensor) -> list[tuple[Slice, torch.Tensor]]:
        out, begin = [], 0
        for part in self.slices(payload):
            shape = part.of(self.names.all[part.index].parameter).shape
            out.append((part, flat.narrow(0, begin, math.prod(shape)).view(shape)))
            begin += math.prod(shape)
        return out

    @torch.no_grad()
    def write(self, payload: Payload, flat: torch.Tensor, steps: int, keeps_anchor: bool = False) -> None:
        """Writes the mean over the sites of what read() returned. Means of pseudo-gradients wait for outer_step(). keeps_anchor: parameters are not
        what the next pseudo-gradient begins from, as those of an average among some sites."""
        for part, values in self._targets(payload, flat):
            parameter = self.names.all[part.index].parameter
            if payload.content == "pseudo_gradient":
                self.averages.append((part, values))
            elif payload.content == "parameter":
                part.of(parameter).copy_(values)
                if self.anchor and not keeps_anchor:
                    part.of(self.anchor[part.index]).copy_(values)
            elif payload.content == "gradient":
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                part.of(parameter.grad).copy_(values)
            elif payload.content in _MOMENTS:
                part.of(self._inner(_MOMENTS[payload.content], parameter, steps)).copy_(values)
            else:
                part.of((self.state1 if payload.content == "outer_moment1" else self.state2)[part.index]).copy_(values)

    @torch.no_grad()
    def keep_residual(self, payload: Payload, residual: torch.Tensor) -> None:
        """What the others did not get because the format is lossy; the next payload adds it (error feedback, arXiv 1901.09847)."""
        for part, values in self._targets(payload, residual):
            part.of(self.residual[part.index]).copy_(values)

    @torch.no_grad()
    def outer_step(self, whole: bool, kept_share: float) -> None:
        """The new parameters from the anchor and the averages that have arrived. With `whole`, a part that nobody averaged counts as
        its own average. kept_share α > 0: the node has trained on since it sent its difference, and keeps θ ← α·θ + (1 − α)·new θ."""
        if whole:
            differences = [anchor - one.parameter.detach() for anchor, one in zip(self.anchor, self.names.all)]
            for part, values in self.averages:
                part.of(differences[part.index]).copy_(values)
            merged = [(Slice(index), difference) for index, difference in enumerate(differences)]
        else:
            merged = self.averages
        for part, difference in merged:
            anchor = part.of(self.anchor[part.index])
            second = part.of(self.state2[part.index]) if self.state2 else None
            outer_step(self.outer, anchor, part.of(self.state1[part.index]), second, difference.to(anchor))
            values = part.of(self.names.all[part.index].parameter)
            if kept_share == 0:
                values.copy_(anchor)
            else:
                values.copy_(values.to(anchor.dtype).mul(kept_share).add_(anchor, alpha=1 - kept_share))
        self.averages = []

    # ---- experts that come and go ----

    def expert_tensors(self, part: Slice, outer_only: bool) -> list[torch.Tensor]:
        """Views of the state of a part of a parameter; with outer_only, of the outer optimiser's state."""
        outer = [part.of(tensors[part.index]) for tensors in (self.state1, self.state2) if tensors]
        if outer_only:
            return outer
        parameter = self.names.all[part.index].parameter
        inner = [part.of(tensor) for tensor in self.state_of(parameter).values()
                 if isinstance(tensor, torch.Tensor) and tensor.shape == parameter.shape]
        kept = [part.of(tensors[part.index]) for tensors in (self.anchor, self.residual) if tensors]
        return inner + kept + outer

    # ---- checkpoints ----

    def tables(self) -> dict[str, list[torch.Tensor]]:
        return {"anchor": self.anchor, "residual": self.residual, "outer1": self.state1, "outer2": self.state2}
