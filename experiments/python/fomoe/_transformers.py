"""Describes any model that the library `transformers` knows, without its weights."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import tempfile
from collections.abc import Callable
from typing import Any

_TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
          "float8_e5m2": "F8_E5M2"}


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ImportError("fomoe.model_from_transformers needs the libraries torch and transformers, and the library "
                          f"{error.name} is missing; install it with: pip install torch transformers") from error
    return torch, transformers


def _config(transformers: Any, config: Any, wrong: Callable[[str], Exception]) -> tuple[Any, dict[str, Any]]:
    """The config as an object of the library, and as the JSON that describes it."""
    if not isinstance(config, (str, os.PathLike)):
        if not hasattr(config, "to_dict"):
            raise wrong(f"config: got {type(config).__name__}; expected a folder, the path of a config.json or a config "
                        "of transformers; for example \"models/my-model/config.json\"")
        return config, config.to_dict()
    path = pathlib.Path(config)
    path = path / "config.json" if path.is_dir() else path
    try:
        fields = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise wrong(f"{path}:1: config: got a file that is not read ({error}); expected the config.json of a model; for "
                    "example \"models/my-model/config.json\"") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("model_type"), str):
        raise wrong(f"{path}:1: model_type: got nothing; expected a model type that transformers knows; for example "
                    "\"model_type\": \"mixtral\"")
    settings = {name: value for name, value in fields.items() if name != "model_type"}
    try:
        return transformers.AutoConfig.for_model(fields["model_type"], **settings), fields
    except Exception as error:  # each architecture checks its own fields, with exceptions of any type
        raise wrong(f"{path}:1: config: got fields that transformers refuses ({error}); expected a config of its "
                    f"version {transformers.__version__}; for example \"model_type\": \"mixtral\"") from error


def _build(torch: Any, transformers: Any, config: Any, wrong: Callable[[str], Exception]) -> Any:
    builders = [transformers.AutoModelForCausalLM]
    builders += [getattr(transformers, name) for name in ("AutoModelForImageTextToText", "AutoModel")
                 if hasattr(transformers, name)]
    errors = []
    for builder in builders:
        try:
            with torch.device("meta"):
                return builder.from_config(config)
        except Exception as error:  # noqa: BLE001 - as above
            errors.append(str(error).split("\n")[0])
    raise wrong(f"config: got a model of type {config.model_type} that transformers {transformers.__version__} does not "
                f"build ({errors[0]}); expected a language model; for example \"model_type\": \"mixtral\"")


def _headers(model: Any) -> dict[str, dict[str, Any]]:
    """The parameters as a header of a safetensors file, each once, with the router's bias that some models buffer."""
    tensors = dict(model.named_parameters())
    tensors.update((name, tensor) for name, tensor in model.named_buffers() if "bias" in name)
    return {name: {"dtype": _TYPES.get(str(tensor.dtype).removeprefix("torch."), "F32"), "shape": list(tensor.shape),
                   "data_offsets": [0, 0]} for name, tensor in tensors.items()}


def describe(config: Any, path: str | os.PathLike | None, answer: Callable[[list[str]], str],
             wrong: Callable[[str], Exception]) -> dict[str, Any]:
    torch, transformers = _libraries()
    settings, fields = _config(transformers, config, wrong)
    header = json.dumps(_headers(_build(torch, transformers, settings, wrong))).encode()
    with tempfile.TemporaryDirectory(prefix="fomoe-model-") as folder:
        # A folder of weights without the weights: fomoe reads only the header.
        name = pathlib.Path(os.fspath(path)).stem if path is not None else str(settings.model_type)
        place = pathlib.Path(folder) / name
        place.mkdir()
        (place / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
        (place / "config.json").write_text(json.dumps(fields, default=str))
        text = answer(["model", str(place), "--output", "-"])
    if path is not None:
        pathlib.Path(path).write_text(text)
    return json.loads(text)
