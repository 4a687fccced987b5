"""The same traffic plan for any PyTorch model: measures a training step, and executes a scenario's plan over torch.distributed.

    import fomoe.torch
    fomoe.torch.profile(step, "profile.json", model="shape.json", sequences=4)      # times your step, as `fomoe-train profile` does
    plan = fomoe.torch.Plan("scenario.toml", model, optimizer, experts="mlp.experts")
    plan.step()                                                                     # after each optimizer.step()

experiments/python/torch.md explains both. Needs PyTorch, which the rest of fomoe does not.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("fomoe.torch needs PyTorch; install it with: pip install torch", name="torch") from None

from ._executor import Plan, held_experts
from ._profile import profile
from ._shape import shape

__all__ = ["Plan", "held_experts", "profile", "shape"]
