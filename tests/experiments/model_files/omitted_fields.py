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
        for field in config:
            if field == "model_type":
                continue
            rest = {name: value for name, value in config.items() if name != field}
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
