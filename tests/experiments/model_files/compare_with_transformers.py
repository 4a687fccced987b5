#!/usr/bin/env python3
"""Compares the totals in architectures.json with the models that the library `transformers` builds from the same configs.

    compare_with_transformers.py          prints each model whose count of parameters differs; exit status 1 if any

The library builds the models on PyTorch's meta device, which needs no memory for weights. Counted are the parameters, each
once, and the router's bias, which some models keep as a buffer. Of models with encoders of images, only the language model counts.
Models that the library does not know are counted from the tensors that their published code makes. The test hf_config_test.cpp
compares fomoe's counts with the same file. Needs `transformers` and `torch`.
"""
import json
import math
import pathlib
import re

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
# The library does not know this name; the model has the architecture of the other.
SAME_AS = {"kimi_k2": "deepseek_v3", "grinmoe": "phimoe", "ernie4_5_moe_vl": "ernie4_5_vl_moe"}
# Parts of tensors' names that belong to encoders, their projectors and experts for images.
OTHER_PARTS = r"vision|visual|multi_modal|resampler"


def attention(c, kv_heads, query_rank=0, head_norm=False, biases=0):
    """Elements of a layer: projections of queries, keys, values and output, with the norms inside."""
    d, head = c["hidden_size"], c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    queries = c["num_attention_heads"] * head
    to_queries = d * query_rank + query_rank + query_rank * queries if query_rank else d * queries
    return to_queries + 2 * d * kv_heads * head + queries * d + 2 * head * head_norm + biases


def gated(d, width):
    return 3 * d * width


def outside(c, norms_per_layer):
    """The embedding, an unembedding of its own, and all norms between blocks."""
    d = c["hidden_size"]
    return 2 * c["vocab_size"] * d + (norms_per_layer * c["num_hidden_layers"] + 1) * d


def bailing(c):
    d, dense = c["hidden_size"], c["first_k_dense_replace"]
    layers, experts = c["num_hidden_layers"] - dense, c["num_experts"]
    routed = layers * experts * gated(d, c["moe_intermediate_size"])
    shared = gated(d, c["moe_intermediate_size"] * c["num_shared_experts"])
    bias = experts if c.get("moe_router_enable_expert_bias") else 0
    rest = c["num_hidden_layers"] * attention(c, c["num_key_value_heads"], head_norm=bool(c.get("use_qk_norm")))
    rest += dense * gated(d, c["intermediate_size"]) + layers * (shared + experts * d + bias)
    return outside(c, 2) + rest + routed, routed


def step3(c):
    d = c["hidden_size"]
    layers = len(str(c["moe_layers_enum"]).split(","))
    routed = layers * c["moe_num_experts"] * gated(d, c["moe_intermediate_size"])
    rest = c["num_hidden_layers"] * attention(c, c["num_attention_groups"], query_rank=c["share_q_dim"])
    rest += (c["num_hidden_layers"] - layers) * gated(d, c["intermediate_size"])
    rest += layers * (gated(d, c["share_expert_dim"]) + c["moe_num_experts"] * d)
    return outside(c, 2) + rest + routed, routed


def grok(c):
    d, layers, experts = c["hidden_size"], c["num_hidden_layers"], c["num_local_experts"]
    routed = layers * experts * gated(d, c["moe_intermediate_size"])
    rest = layers * (attention(c, c["num_key_value_heads"]) + gated(d, c["intermediate_size"]) + experts * d)
    return outside(c, 4) + rest + routed, routed


def arctic(c):
    d, layers, experts = c["hidden_size"], c["num_hidden_layers"], c["num_local_experts"]
    routed = layers * experts * gated(d, c["intermediate_size"])
    rest = layers * (attention(c, c["num_key_value_heads"]) + gated(d, d) + experts * d)
    return outside(c, 3) + rest + routed, routed


BY_HAND = {"bailing_moe": bailing, "step3_text": step3, "git": grok, "arctic": arctic}


def counts(config):
    fields = dict(config)
    model_type = fields.pop("model_type")
    if model_type in BY_HAND:
        return BY_HAND[model_type](config)
    settings = transformers.AutoConfig.for_model(SAME_AS.get(model_type, model_type), **fields)
    text = settings.get_text_config()
    builder = transformers.AutoModelForCausalLM if text is settings else transformers.AutoModelForImageTextToText
    with torch.device("meta"):
        model = builder.from_config(settings)
    # Tied parameters appear once.
    tensors = dict(model.named_parameters())
    tensors.update((name, buffer) for name, buffer in model.named_buffers() if "bias" in name)
    tensors = {name: tensor for name, tensor in tensors.items() if not re.search(OTHER_PARTS, name)}
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
