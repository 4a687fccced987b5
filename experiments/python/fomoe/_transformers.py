"""Describes any model that the library `transformers` knows, without its weights."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import tempfile
from collections.abc import Callable
from typing import Any

from ._files import write_whole

# The fields of a config that decide the counts of parameters and FLOPs, by their usual names.
_DECISIVE = ("attention_bias", "first_k_dense_replace", "head_dim", "hidden_size", "intermediate_size", "kv_lora_rank",
             "mlp_bias", "moe_intermediate_size", "n_routed_experts", "n_shared_experts", "num_attention_heads", "num_experts",
             "num_experts_per_tok", "num_hidden_layers", "num_key_value_heads", "num_local_experts", "q_lora_rank",
             "qk_nope_head_dim", "qk_rope_head_dim", "shared_expert_intermediate_size", "sliding_window",
             "tie_word_embeddings", "v_head_dim", "vocab_size")
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


def _stated(config: Any, wrong: Callable[[str], Exception]) -> tuple[pathlib.Path, dict[str, Any]]:
    """The config.json of a folder or path, and its fields."""
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
    return path, fields


def _settings(transformers: Any, path: pathlib.Path, fields: dict[str, Any], wrong: Callable[[str], Exception]) -> Any:
    """The library's config object, in which every field has a value."""
    given = {name: value for name, value in fields.items() if name != "model_type"}
    try:
        settings = transformers.AutoConfig.for_model(fields["model_type"], **given)
    except Exception as error:  # each architecture checks its own fields, with exceptions of any type
        raise wrong(f"{path}:1: config: got fields that transformers refuses ({error}); expected a config of its "
                    f"version {transformers.__version__}; for example \"model_type\": \"mixtral\"") from error
    # The embedding is shared in the whole model or not at all. What the file says comes first, then the language model's
    # default, because the defaults of models with image encoders may differ from it.
    text = settings.get_text_config()
    if text is not settings:
        if "tie_word_embeddings" in fields:
            text.tie_word_embeddings = settings.tie_word_embeddings
        else:
            settings.tie_word_embeddings = text.tie_word_embeddings
    return settings


def _defaults(transformers: Any, fields: dict[str, Any], settings: Any, without_experts: bool) -> list[str]:
    """A sentence about the fields that decide the model's size and that the library filled in."""
    text = settings.get_text_config()
    stated = set(fields)
    for part in ("thinker_config", "text_config", "llm_config", "language_config"):
        fields = fields.get(part) if isinstance(fields.get(part), dict) else fields
        stated |= set(fields)
    # Other names of the same fields, such as num_local_experts for num_experts.
    stated |= {name for other, name in (getattr(text, "attribute_map", None) or {}).items() if other in stated}
    known = text.to_dict()
    filled = [f"{name} = {json.dumps(known[name])}" for name in _DECISIVE
              if name in known and name not in stated and isinstance(known[name], (bool, int))
              and not (without_experts and ("expert" in name or "moe" in name or "dense" in name))]
    if not filled:
        return []
    defaults, them = ("default", "it") if len(filled) == 1 else ("defaults", "them")
    library = f"transformers {transformers.__version__}"
    return [f"model: {', '.join(filled)}, the {defaults} of {library} for {text.model_type}, because the config does not state {them}"]


def _by_fomoe(transformers: Any, path: pathlib.Path, model_type: str, answer: Callable[[list[str]], str],
              wrong: type[Exception]) -> str:
    """The shape of a model that the library does not know. fomoe may have the architecture in its own table."""
    try:
        return answer(["model", str(path), "--output", "-"])
    except wrong as error:
        if ": model_type: got " not in str(error):
            raise
        raise wrong(f"{path}:1: model_type: got \"{model_type}\", which neither transformers {transformers.__version__} nor "
                    "fomoe knows; expected the folder of the model's *.safetensors files, which are enough for any "
                    f"architecture; for example fomoe model {path.parent}") from error


def _build(torch: Any, transformers: Any, config: Any, wrong: Callable[[str], Exception]) -> tuple[Any, bool]:
    """The model without weights, and whether it is the whole model and not its language model alone."""
    builders = [transformers.AutoModelForCausalLM]
    builders += [getattr(transformers, name) for name in ("AutoModelForImageTextToText", "AutoModelForMultimodalLM", "AutoModel")
                 if hasattr(transformers, name)]
    # Encoders may need libraries that are missing; the language model alone does not.
    attempts = [(builder, config) for builder in builders]
    thinker = getattr(config, "thinker_config", None)
    attempts += [(transformers.AutoModelForCausalLM, part)
                 for part in (config.get_text_config(), getattr(thinker, "text_config", None)) if part is not None]
    errors = []
    for builder, part in attempts:
        try:
            with torch.device("meta"):
                return builder.from_config(part), part is config
        except Exception as error:  # noqa: BLE001 - as above
            errors.append(" ".join(str(error).split())[:300])
    raise wrong(f"config: got a model of type {config.model_type} that transformers {transformers.__version__} does not "
                f"build ({errors[0]}); expected a language model, or the folder of the model's *.safetensors files; for example "
                "fomoe model FOLDER")


def _headers(model: Any) -> dict[str, dict[str, Any]]:
    """The parameters as a header of a safetensors file, each once, with the router's bias that some models buffer."""
    tensors = dict(model.named_parameters())
    tensors.update((name, tensor) for name, tensor in model.named_buffers() if "bias" in name)
    return {name: {"dtype": _TYPES.get(str(tensor.dtype).removeprefix("torch."), "F32"), "shape": list(tensor.shape),
                   "data_offsets": [0, 0]} for name, tensor in tensors.items()}


def describe(config: Any, path: str | os.PathLike | None, answer: Callable[[list[str]], str],
             wrong: Callable[[str], Exception]) -> dict[str, Any]:
    torch, transformers = _libraries()
    stated: dict[str, Any] | None = None
    if not isinstance(config, (str, os.PathLike)):
        if not hasattr(config, "to_dict"):
            raise wrong(f"config: got {type(config).__name__}; expected a folder, the path of a config.json or a config "
                        "of transformers; for example \"models/my-model/config.json\"")
        settings = config
    else:
        where, stated = _stated(config, wrong)
        if stated["model_type"] not in transformers.models.auto.configuration_auto.CONFIG_MAPPING:
            text = _by_fomoe(transformers, where, stated["model_type"], answer, wrong)
            return _written(json.loads(text), path)
        settings = _settings(transformers, where, stated, wrong)
    built, whole = _build(torch, transformers, settings, wrong)
    header = json.dumps(_headers(built)).encode()
    with tempfile.TemporaryDirectory(prefix="fomoe-model-") as folder:
        # A folder of weights without the weights: fomoe reads only the header. The config has the library's values of
        # all fields, so that fomoe takes no default of its own.
        name = pathlib.Path(os.fspath(path)).stem if path is not None else str(settings.model_type)
        place = pathlib.Path(folder) / name
        place.mkdir()
        (place / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
        (place / "config.json").write_text(json.dumps(settings.to_dict(), default=str))
        model = json.loads(answer(["model", str(place), "--output", "-"]))
    if not whole and not any("left out: " in guess for guess in model["guessed"]):
        model["guessed"].append("model: only the language model, which runs for tokens of text; left out: all other parts of "
                                f"{settings.model_type}")
    # Fields that describe experts decide nothing in a model without them.
    dense = model["model"]["experts"] == 0
    model["guessed"] += _defaults(transformers, stated, settings, without_experts=dense) if stated is not None else []
    return _written(model, path)


def _written(model: dict[str, Any], path: str | os.PathLike | None) -> dict[str, Any]:
    if path is not None:
        write_whole(path, json.dumps(model, indent=2) + "\n")
    return model
