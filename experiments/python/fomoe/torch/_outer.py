"""The outer optimiser: how averaged pseudo-gradients change the parameters (trainer/optimizer/outer_optimizer.hpp).

d = θ_before − θ_after, averaged over sites; η is the learning rate.

    nesterov     b ← μ·b + d,  θ ← θ_before − η·(d + μ·b)               (DiLoCo, arXiv 2311.08105)
    adam, yogi   m ← β1·m + (1 − β1)·d
                 v ← β2·v + (1 − β2)·d²                     adam
                 v ← v − (1 − β2)·d²·sign(v − d²)           yogi
                 θ ← θ_before − η·m/(√v + τ)                            (FedOpt, arXiv 2003.00295, without bias correction)
"""

from __future__ import annotations

import torch

from .. import InputError
from ._scenario import Outer


def moments(kind: str) -> int:
    """Number of state tensors: 1 for nesterov, 2 for adam and yogi. Raises InputError for an optimiser without outer steps."""
    if kind not in ("nesterov", "adam", "yogi"):
        raise InputError(f"strategy.outer_optimizer: got {kind}, but the plan has outer steps; expected nesterov, adam or yogi; for example \"nesterov\"")
    return 1 if kind == "nesterov" else 2


@torch.no_grad()
def outer_step(options: Outer, anchor: torch.Tensor, first: torch.Tensor, second: torch.Tensor | None, difference: torch.Tensor) -> None:
    """Updates `anchor` (θ_before becomes the new θ) and the state in place; all of one shape."""
    d = difference
    if options.kind == "nesterov":
        first.mul_(options.momentum).add_(d)
        anchor.sub_(d + options.momentum * first, alpha=options.learning_rate)
        return
    first.mul_(options.beta1).add_(d, alpha=1 - options.beta1)
    square = d * d
    if options.kind == "adam":
        second.mul_(options.beta2).add_(square, alpha=1 - options.beta2)
    else:
        second.sub_(square * torch.sign(second - square), alpha=1 - options.beta2)
    anchor.sub_(first / (second.sqrt() + options.adaptivity), alpha=options.learning_rate)
