#!/usr/bin/env python3
"""Compares experiments/data/library_defaults.json with the configs of the installed library `transformers`.

    library_defaults.py            prints the defaults that differ; exit status 1 if any
    library_defaults.py --write    writes those of the installed library

The file has the numbers and truth values that a field of a config.json has if the file omits it: the declared defaults of the
library's config classes (`configuration_*.py`). Only names that fomoe reads are kept, and no value that the library derives from
others. Architectures that the library does not know have the defaults of their publishers' files, which this script keeps.
"""
import argparse
import dataclasses
import json
import pathlib
import re

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

ROOT = pathlib.Path(__file__).resolve().parents[3]
READERS = ROOT / "experiments/model_files"
FILE = ROOT / "experiments/data/library_defaults.json"


def quoted(pattern):
    return {word for path in READERS.glob(pattern) for word in re.findall(r'"([A-Za-z_0-9]+)"', path.read_text())}


def declared(config_class, names):
    found = {}
    for field in dataclasses.fields(config_class):
        if field.name in names and isinstance(field.default, (bool, int)):
            found[field.name] = field.default
    for other, name in (config_class.attribute_map or {}).items():
        if other in names and name in found | {f.name: 0 for f in dataclasses.fields(config_class)}:
            default = next(f.default for f in dataclasses.fields(config_class) if f.name == name)
            if isinstance(default, (bool, int)):
                found.setdefault(other, default)
    return found


def text_config(model_type):
    """The class that describes the language model of this name, which may be a part of a larger model."""
    if model_type in CONFIG_MAPPING:
        return CONFIG_MAPPING[model_type]
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", action="store_true")
    write = arguments.parse_args().write
    groups = json.loads(FILE.read_text()) if FILE.exists() else []
    own = [group for group in groups if not group["source"].startswith("transformers ")]
    names = quoted("*.cpp") - {"model_type"}
    types = sorted(name for name in quoted("*architectures.cpp") if text_config(name) is not None)
    library = {"source": f"transformers {transformers.__version__}",
               "defaults": {name: dict(sorted(declared(text_config(name), names).items())) for name in types}}
    if write:
        rows = []
        for group in [library, *own]:
            lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in group["defaults"].items())
            rows.append(f'{{"source": {json.dumps(group["source"])}, "defaults": {{\n{lines}}}}}')
        FILE.write_text("[" + ",\n".join(rows) + "]\n")
        return
    kept = next((group["defaults"] for group in groups if group["source"].startswith("transformers ")), {})
    wrong = 0
    for name in sorted(set(kept) | set(library["defaults"])):
        old, new = kept.get(name, {}), library["defaults"].get(name, {})
        for field in sorted(set(old) | set(new)):
            if old.get(field) != new.get(field):
                wrong += 1
                print(f"{name}.{field}: the file has {old.get(field)}, {library['source']} has {new.get(field)}")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
