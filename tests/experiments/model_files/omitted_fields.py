#!/usr/bin/env python3
"""Compares what fomoe makes of a config.json that omits a field with what the library `transformers` makes of it.

    omitted_fields.py FOMOE        prints each difference; exit status 1 if any

For each model of architectures.json, and for each of its fields: the library resolves the config without the field, and fomoe counts
the resolved config and the one without the field. fomoe may refuse the latter; otherwise the shapes must be equal. The resolved config
without omissions must have the counts of architectures.json. FOMOE is the program. Needs `transformers`.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HERE = pathlib.Path(__file__).resolve().parent


def shape(fomoe, config):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.json"
        path.write_text(json.dumps(config, default=str))
        ran = subprocess.run([fomoe, "model", str(path), "--output", "-"], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return ran.stderr.split(": ", 1)[1].strip()
    model = json.loads(ran.stdout)["model"]
    if model.get("head_dim", 0) * model["heads"] == model["d_model"]:
        del model["head_dim"]  # what it is without the field
    return model


def resolved(config):
    fields = {name: value for name, value in config.items() if name != "model_type"}
    return transformers.AutoConfig.for_model(config["model_type"], **fields).to_dict()


def without_a_field(config):
    """The config without each of its fields, and without each field of its language model."""
    wraps = "text_config" in config
    for field in config:
        # Where a file does not say whether the whole model shares its embedding, fomoe takes the default of the language model
        # (Mistral 3's weights have an unembedding of their own, which the library's default of the whole model contradicts).
        if field in ("model_type", "architectures", "text_config", "vision_config") or wraps and field == "tie_word_embeddings":
            continue
        yield field, {name: value for name, value in config.items() if name != field}
    for field in config.get("text_config", {}):
        if field not in ("model_type", "tie_word_embeddings"):
            text = {name: value for name, value in config["text_config"].items() if name != field}
            yield f"text_config.{field}", {**config, "text_config": text}


def main():
    fomoe, wrong, refused, same = sys.argv[1], 0, 0, 0
    for row in json.loads((HERE / "architectures.json").read_text()):
        config = row["config"]
        if config["model_type"] not in CONFIG_MAPPING:
            continue
        whole = shape(fomoe, resolved(config))
        if whole != shape(fomoe, config):
            wrong += 1
            print(f"{row['name']}: the config has {shape(fomoe, config)}, resolved by the library it has {whole}")
        for field, rest in without_a_field(config):
            try:
                expected = shape(fomoe, resolved(rest))
            except Exception as error:  # noqa: BLE001 - each architecture checks its fields with exceptions of any type
                expected = f"refused by the library: {error}"
            found = shape(fomoe, rest)
            if isinstance(found, str):
                refused += 1
            elif found == expected:
                same += 1
            else:
                wrong += 1
                print(f"{row['name']} without {field}: fomoe has\n  {found}\nthe library\n  {expected}")
    print(f"{same} omitted fields have the library's value, {refused} are refused, {wrong} differ (transformers "
          f"{transformers.__version__})")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
