#!/usr/bin/env python3
"""Compares the totals in architectures.json with the models that the library `transformers` builds from the same configs.

    compare_with_transformers.py          prints each model whose count of parameters differs; exit status 1 if any

The library builds the models on PyTorch's meta device, which needs no memory for weights. Counted are the parameters, each
once, and the router's bias, which some models keep as a buffer. The test hf_config_test.cpp compares fomoe's counts with the
same file. Needs `transformers` and `torch`.
"""
import json
import math
import pathlib
import re

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
# The library does not know this name; the model has the architecture of the other.
SAME_AS = {"kimi_k2": "deepseek_v3"}


def counts(config):
    fields = dict(config)
    model_type = fields.pop("model_type")
    settings = transformers.AutoConfig.for_model(SAME_AS.get(model_type, model_type), **fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(settings)
    # Tied parameters appear once.
    tensors = dict(model.named_parameters())
    tensors.update((name, buffer) for name, buffer in model.named_buffers() if "bias" in name)
    routed = sum(math.prod(t.shape) for name, t in tensors.items()
                 if re.search(r"\.experts\.", name) and ".shared" not in name)
    total = sum(math.prod(t.shape) for t in tensors.values())
    if model_type == "longcat_flash":
        # The library also allocates gate and up projections for the identity experts, which never use them.
        unused = settings.num_layers * settings.zero_expert_num * 2 * settings.moe_intermediate_size * settings.hidden_size
        total, routed = total - unused, routed - unused
    return total, routed


def main():
    rows = json.loads((HERE / "architectures.json").read_text())
    wrong = 0
    for row in rows:
        found = counts(row["config"])
        if found != (row["total"], row["experts"]):
            wrong += 1
            print(f"{row['name']}: transformers {transformers.__version__} counts {found}, "
                  f"the file has {(row['total'], row['experts'])}")
    print(f"{len(rows) - wrong} of {len(rows)} models agree with transformers {transformers.__version__}")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
