"""Experts that a node does not hold: its router must not choose them, and experts that arrive begin with fresh state.

A model may have all experts of the plan at every site. Then
- if the plan sends a router's rows with the experts, the router scores only the experts that the site holds: the scores of the others
  are masked wherever the router's module multiplies with its weight;
- if the router scores all experts (skip-token), a token's absent experts contribute nothing: their weights are zeros, which stay zeros
  because an expert without biases whose weights are zeros has no gradients.
Or it has only the experts that its site holds, in ascending order; then experts that stay move to their new places.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .. import InputError
from ._groups import local_experts
from ._plan_file import Owners
from ._sites import Sites
from ._worker import Worker

_PRODUCTS = {torch.nn.functional.linear, torch.matmul, torch.mm, torch.addmm, torch.einsum, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.mm}


class _Masked(TorchFunctionMode):
    """Masks the scores of absent experts in every product with the router's weight, also with a cast or transposed one."""

    def __init__(self, weight: torch.nn.Parameter) -> None:
        super().__init__()
        self.weight = weight
        self.absent: torch.Tensor | None = None  # bool [experts]
        self.applied = 0
        self._same: list[torch.Tensor] = []

    def begin(self, *_: Any) -> None:
        self._same = [self.weight]
        self.__enter__()

    def end(self, *_: Any) -> None:
        self.__exit__(None, None, None)
        self._same = []

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = [*args, *(kwargs or {}).values()]
        if not isinstance(out, torch.Tensor) or not any(one is same for one in given for same in self._same):
            return out
        if func in _PRODUCTS:
            self.applied += 1
            return out if self.absent is None else out.masked_fill(self.absent.to(out.device), torch.finfo(out.dtype).min)
        if out.numel() == self.weight.numel():
            self._same.append(out)
        return out


class Experts:
    """Keeps the experts of one node as the placement says. Without a placement it does nothing."""

    def __init__(self, model: torch.nn.Module, worker: Worker, owners: Owners | None) -> None:
        self.worker, self.owners = worker, owners
        self.masks: dict[int, _Masked] = {}
        worker.hold(owners)
        if owners is None:
            return
        self.ghosts = not worker.router_with_experts
        if worker.names.held:
            if self.ghosts:
                raise InputError("experts: got a model with a part of the experts, whose router scores all of them (skip-token); expected a model with all "
                                 "experts; for example strategy.skip_token = false")
        elif self.ghosts:
            self._check_biases()
            self._clear_absent()
        else:
            self._mask_routers(model)
            self._set_masks()

    def _local(self) -> dict[int, list[int]]:
        return local_experts(self.owners, self.worker.node)

    def _check_biases(self) -> None:
        for one in self.worker.names.all:
            if one.kind == "expert" and one.parameter.dim() - (1 if one.dim is not None else 0) < 2:
                raise InputError(f"experts: got {one.name}, a bias, with skip-token; expected experts without biases, whose absence is a zero; for example "
                                 "strategy.skip_token = false")

    def _mask_routers(self, model: torch.nn.Module) -> None:
        buffers = [name for name, _ in model.named_buffers() if name.endswith(("e_score_correction_bias", "expert_bias"))]
        if buffers:
            raise InputError(f"router: got {buffers[0]}, which is added to the scores after they have been masked; expected a router without it, or "
                             "skip-token; for example strategy.skip_token = true")
        modules = dict(model.named_modules())
        for one in self.worker.names.all:
            if not one.routes or one.parameter.dim() < 2:
                continue
            mask = _Masked(one.parameter)
            module = modules[one.name.rpartition(".")[0]]
            module.register_forward_pre_hook(mask.begin)
            module.register_forward_hook(mask.end, always_call=True)
            self.masks[one.layer] = mask

    def _set_masks(self) -> None:
        local = self._local()
        for layer, mask in self.masks.items():
            count = self.worker.names.experts_of_layer[layer]
            mask.absent = torch.tensor([expert not in local[layer] for expert in range(count)], device=mask.weight.device)

    def check_masked(self) -> None:
        """After the first step: every router's product was seen. Raises InputError."""
        for layer, mask in self.masks.items():
            if mask.applied == 0:
                raise InputError(f"router: got a model that does not multiply with the router's weight of layer {layer} inside the module that owns it, so "
                                 "its scores cannot be masked; expected a router module such as torch.nn.Linear; for example a model with only the experts "
                                 "that the site holds")

    def _slices(self, layer: int, position: int) -> list:
        return self.worker.names.expert_slices(layer, position, self.worker.router_with_experts)

    @torch.no_grad()
    def _clear_absent(self) -> None:
        local = self._local()
        for layer, count in self.worker.names.experts_of_layer.items():
            for expert in set(range(count)) - set(local[layer]):
                for part in self._slices(layer, expert):
                    part.of(self.worker.names.all[part.index].parameter).zero_()
                    for tensor in self.worker.expert_tensors(part, outer_only=False):
                        tensor.zero_()

    @torch.no_grad()
    def change(self, owners: Owners) -> None:
        """Changes to the experts of `owners`. State of experts that arrive is zero until it is written."""
        before = self._local()
        self.owners = owners
        after = self._local()
        if self.worker.names.held:
            for layer in after:
                self._move(layer, before[layer], after[layer])
        else:
            for layer in after:
                for expert in set(after[layer]) - set(before[layer]):
                    self._restart(layer, expert)
            if self.ghosts:
                self._clear_absent()
            self._set_masks()
        self.worker.hold(owners)

    def _restart(self, layer: int, position: int) -> None:
        for part in self._slices(layer, position):
            for tensor in self.worker.expert_tensors(part, outer_only=False):
                tensor.zero_()
            state = self.worker.state_of(self.worker.names.all[part.index].parameter)
            if part.dim is None and isinstance(state.get("step"), torch.Tensor):
                state["step"].zero_()  # the parameter is this expert's alone

    def _move(self, layer: int, before: list[int], after: list[int]) -> None:
        """Experts that stay move from their old to their new position, with all their state; new ones restart."""
        kept = []
        for position, expert in enumerate(before):
            for part in self._slices(layer, position):
                tensors = [part.of(self.worker.names.all[part.index].parameter.detach()), *self.worker.expert_tensors(part, outer_only=False)]
                kept.append((expert, [tensor.clone() for tensor in tensors]))
        by_expert: dict[int, list[list[torch.Tensor]]] = {}
        for expert, tensors in kept:
            by_expert.setdefault(expert, []).append(tensors)
        for position, expert in enumerate(after):
            if expert not in by_expert:
                self._restart(layer, position)
                continue
            for part, tensors in zip(self._slices(layer, position), by_expert[expert]):
                into = [part.of(self.worker.names.all[part.index].parameter.detach()), *self.worker.expert_tensors(part, outer_only=False)]
                for target, values in zip(into, tensors):
                    target.copy_(values)

    @torch.no_grad()
    def reset_outer_state(self, moved: set[tuple[int, int]]) -> None:
        """The outer optimiser's state of experts whose owners have changed, at all owners."""
        local = self._local()
        for layer, expert in moved:
            if expert not in local[layer]:
                continue
            position = local[layer].index(expert) if self.worker.names.held else expert
            for part in self._slices(layer, position):
                for tensor in self.worker.expert_tensors(part, outer_only=True):
                    tensor.zero_()

    @contextlib.contextmanager
    def whole(self, sites: Sites) -> Iterator[None]:
        """Inside, the model has the experts of all sites, each from its first owner."""
        if self.owners is None:
            yield
            return
        if self.worker.names.held:
            raise InputError("whole_model: got a model with only the experts of its site; expected a model with all experts; for example a model whose absent "
                             "experts are masked")
        own: list[tuple[torch.Tensor, torch.Tensor]] = []  # what this site trains on with afterwards, also the experts that others own first
        with torch.no_grad():
            for layer, count in self.worker.names.experts_of_layer.items():
                for source in range(sites.count):
                    experts = [expert for expert in range(count) if self.owners[layer, expert][0] == source]
                    parts = [part.of(self.worker.names.all[part.index].parameter.detach()) for expert in experts for part in self._slices(layer, expert)]
                    if source != self.worker.node:
                        own += [(part, part.clone()) for part in parts]
                    if not parts:
                        continue
                    flat = torch.cat([part.reshape(-1) for part in parts])
                    sites.broadcast(flat, source)
                    for part, values in zip(parts, flat.split([part.numel() for part in parts])):
                        part.copy_(values.view(part.shape))
        for mask in self.masks.values():
            mask.absent = None
        try:
            yield
        finally:
            with torch.no_grad():
                for part, values in own:
                    part.copy_(values)
            self._set_masks()

    def resume(self, owners: Owners | None) -> None:
        """The experts of a state that was loaded."""
        self.owners = owners
        self.worker.hold(owners)
        if owners is not None and self.masks:
            self._set_masks()
