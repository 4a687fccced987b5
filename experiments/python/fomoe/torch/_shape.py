"""The shape of a PyTorch model for a scenario, so that the scenario describes exactly the model that is trained."""

from __future__ import annotations

import json
import operator
import os
import pathlib
import struct
import tempfile
from collections.abc import Iterable
from typing import Any

import torch

from .. import InputError, model_from_transformers
from .._files import write_whole
from ._groups import compiled
from ._scenario import run_fomoe

_TYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16"}


def shape(model: torch.nn.Module, path: str | os.PathLike | None = None, *, experts: str | Iterable[str] | None = None,
          active_experts: int | None = None) -> dict[str, Any]:
    """Describes the model (schema fomoe.model/1) and writes the description to `path`, which a scenario names with model.shape.

    A model of the library transformers is described by its config. Of any other model, fomoe counts the parameters: those that match the
    pattern `experts` (default: "experts") as routed experts, all others as dense; `active_experts` is the number of experts that a token
    uses. The list under "guessed" says what was guessed. Raises InputError.
    """
    config = getattr(model, "config", None)
    document = model_from_transformers(config) if getattr(config, "model_type", None) else _counted(model, experts, active_experts)
    counted = _parameters_of(document)
    elements = sum(parameter.numel() for parameter in model.parameters())
    if counted != elements:
        raise InputError(f"shape: got a model of {elements} parameters, whose config describes {counted}; expected as many, without encoders of images "
                         "and sound, which do not count; for example a language model that is made from its config and has not been changed")
    if path is not None:
        write_whole(path, json.dumps(document, indent=2) + "\n")
    return document


def _parameters_of(document: dict[str, Any]) -> int:
    with tempfile.TemporaryDirectory(prefix="fomoe-shape-") as folder:
        file = os.path.join(folder, "shape.json")
        pathlib.Path(file).write_text(json.dumps(document))
        for line in run_fomoe("model", file).splitlines():
            words = line.split()
            if words[:1] == ["parameters"]:
                return int(words[-1].replace(",", ""))
    raise InputError("shape: got no number of parameters from `fomoe model`; expected one; for example a newer version of fomoe")


def _counted(model: torch.nn.Module, experts: str | Iterable[str] | None, active_experts: int | None) -> dict[str, Any]:
    """From names and shapes, which fomoe reads as the headers of a file of weights."""
    patterns = [compiled(pattern) for pattern in ([experts] if isinstance(experts, str) else experts or ())]
    header = {}
    for name, parameter in model.named_parameters():
        # fomoe takes parameters whose names contain "experts" as experts.
        listed = name if not any(pattern.search(name) for pattern in patterns) or "experts" in name else f"{name.rpartition('.')[0]}.experts.{name.rpartition('.')[2]}"
        header[listed] = {"dtype": _TYPES.get(parameter.dtype, "F32"), "shape": list(parameter.shape), "data_offsets": [0, 0]}
    text = json.dumps(header).encode()
    with tempfile.TemporaryDirectory(prefix="fomoe-shape-") as folder:
        place = pathlib.Path(folder) / type(model).__name__
        place.mkdir()
        (place / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
        document = json.loads(run_fomoe("model", str(place), "--output", "-"))
    if active_experts is not None:
        active_experts = operator.index(active_experts)
        document["model"]["active_experts"] = active_experts
        document["guessed"] = [text for text in document["guessed"] if not text.startswith("active experts")]
    return document
