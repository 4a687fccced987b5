"""The FoMoE paper's transformer in PyTorch. It computes the same as fomoe-train's C++ model.

    x0      = LN(E[token])
    x      += s·LN(Attention(LN(x)))      s = 4 / L
    x      += s·LN(MoE(LN(x)))
    logits  = LN(x)·Eᵀ / (d / 256)        E is the embedding, tied to the output

Attention is causal, with rotary queries and keys and scores q·k / d_head. LN has a scale and no bias (epsilon 1e-5). A
token's gates are sigmoids of its k largest scores, divided by the router's temperature; an expert is SiLU(x·up)·down. A dense model
(no experts) has SiLU(x·ffn_up)·ffn_down in place of the MoE. Parameters have the names and the shapes of
fomoe-train's checkpoints.
"""

import dataclasses
import json
import math
import struct

import torch
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Shape:
    """The nine numbers that describe a model of the paper's family, named as in a step profile; d_ffn if there are no experts."""

    name: str
    d_model: int
    layers: int
    heads: int
    experts: int
    active_experts: int
    d_expert: int
    vocabulary: int
    sequence_length: int = 2048
    d_ffn: int = 0


# The paper's table "Overview of the model configurations". A test holds their parameter counts to fomoe's.
PRESETS = {
    shape.name: shape
    for shape in [
        Shape("small", 256, 4, 4, 8, 2, 128, 200_019),
        Shape("medium", 512, 16, 8, 16, 4, 128, 200_019),
        Shape("large", 1024, 128, 16, 32, 8, 128, 200_019),
        Shape("xl", 2048, 256, 32, 64, 16, 128, 200_019),
        Shape("xxl", 4096, 512, 64, 128, 32, 128, 200_019),
    ]
}


class Layer(torch.nn.Module):
    def __init__(self, shape, held, scored, device):
        super().__init__()
        d, hidden = shape.d_model, shape.d_expert
        std = 0.02 / math.sqrt(d / 256)

        def matrix(*sizes, scale=std):
            return torch.nn.Parameter(torch.randn(*sizes, device=device) * scale)

        def norm():
            return torch.nn.Parameter(torch.ones(d, device=device))

        self.attention_norm_in, self.attention_norm_out = norm(), norm()
        self.moe_norm_in, self.moe_norm_out = norm(), norm()
        self.qkv, self.attention_output = matrix(3 * d, d), matrix(d, d)
        if shape.experts == 0:
            self.ffn_up, self.ffn_down = matrix(d, shape.d_ffn), matrix(shape.d_ffn, d, scale=0.02 / math.sqrt(shape.d_ffn / 256))
            return
        self.router = matrix(d, scored)
        self.up, self.down = matrix(held, d, hidden), matrix(held, hidden, d, scale=0.02)


class Model(torch.nn.Module):
    """`held` is the number of experts of each layer that this site holds: the first ones (default: all). With `skip_token` the
    router scores all experts, and contributions of experts that are not held (ghosts) are left out. Without it the router scores
    the held experts only. `experts` is "loop" (one expert after the other) or "grouped" (all experts in one grouped product, whose
    shapes do not depend on the data). `rope_theta` and `router_temperature` are the keys of [trainer]. `dtype` is the type of the matrix products; parameters are fp32 and cast when they are used.
    """

    def __init__(self, shape, held=None, skip_token=False, experts="loop", dtype=torch.float32, device=None, rope_theta=10000.0,
                 router_temperature=1.0):
        super().__init__()
        if experts not in ("loop", "grouped"):
            raise ValueError(f"experts: got {experts!r}; expected loop or grouped")
        self.shape, self.held, self.skip_token = shape, held or shape.experts, skip_token
        self.experts, self.dtype, self.router_temperature = experts, dtype, router_temperature
        scored = shape.experts if skip_token else self.held
        self.chosen = min(shape.active_experts, scored)
        self.embedding = torch.nn.Parameter(torch.randn(shape.vocabulary, shape.d_model, device=device) * 0.02)
        self.embedding_norm = torch.nn.Parameter(torch.ones(shape.d_model, device=device))
        self.final_norm = torch.nn.Parameter(torch.ones(shape.d_model, device=device))
        self.layers = torch.nn.ModuleList(Layer(shape, self.held, scored, device) for _ in range(shape.layers))
        head = shape.d_model // shape.heads
        # Angles reach S radians, so they are computed in fp64 and rounded once.
        frequency = rope_theta ** (-torch.arange(0, head, 2, dtype=torch.float64, device=device) / head)
        angle = torch.arange(shape.sequence_length, dtype=torch.float64, device=device)[:, None] * frequency
        self.register_buffer("cos", angle.cos()[:, None, :].to(dtype), persistent=False)
        self.register_buffer("sin", angle.sin()[:, None, :].to(dtype), persistent=False)

    def loss(self, tokens, targets):
        """Mean cross-entropy in nats. tokens and targets are int64 [B, S]; targets are the next tokens."""
        x = self.hidden(tokens)
        logits = x @ self.embedding.to(self.dtype).t()
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    def hidden(self, tokens):
        """[B, S] -> [B, S, d], after the last norm and divided by d/256."""
        branch = 4 / self.shape.layers
        x = self.norm(F.embedding(tokens, self.embedding).to(self.dtype), self.embedding_norm)
        for layer in self.layers:
            mixed = self.attention(layer, self.norm(x, layer.attention_norm_in))
            x = x + branch * self.norm(mixed, layer.attention_norm_out)
            normed = self.norm(x, layer.moe_norm_in)
            y = self.moe(layer, normed) if self.shape.experts > 0 else self.feed_forward(layer, normed)
            x = x + branch * self.norm(y, layer.moe_norm_out)
        return self.norm(x, self.final_norm) * (256 / self.shape.d_model)

    def norm(self, x, scale):
        return F.layer_norm(x, (self.shape.d_model,), scale.to(self.dtype), eps=1e-5)

    def rope(self, x):
        length = x.shape[1]
        a, b = x.chunk(2, dim=-1)
        cos, sin = self.cos[:length], self.sin[:length]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def attention(self, layer, x):
        batch, length, d = x.shape
        heads = self.shape.heads
        qkv = (x @ layer.qkv.to(self.dtype).t()).view(batch, length, 3, heads, d // heads)
        q, k, v = qkv.unbind(2)
        y = F.scaled_dot_product_attention(self.rope(q).transpose(1, 2), self.rope(k).transpose(1, 2), v.transpose(1, 2),
                                           is_causal=True, scale=heads / d)
        return y.transpose(1, 2).reshape(batch, length, d) @ layer.attention_output.to(self.dtype).t()

    def feed_forward(self, layer, x):
        return F.silu(x @ layer.ffn_up.to(self.dtype)) @ layer.ffn_down.to(self.dtype)

    def moe(self, layer, x):
        flat = x.reshape(-1, x.shape[-1])
        score, chosen = (flat @ layer.router.to(self.dtype)).topk(self.chosen, dim=1)
        up, down = layer.up.to(self.dtype), layer.down.to(self.dtype)
        product = self.looped if self.experts == "loop" else self.grouped
        return product(flat, chosen, (score / self.router_temperature).sigmoid(), up, down).view_as(x)

    def looped(self, x, chosen, gate, up, down):
        y = torch.zeros_like(x)
        for e in range(len(up)):  # no e is a ghost
            token, slot = (chosen == e).nonzero(as_tuple=True)
            rows = F.silu(x[token] @ up[e]) @ down[e]
            y.index_add_(0, token, rows * gate[token, slot, None])
        return y

    def grouped(self, x, chosen, gate, up, down):
        slots = chosen.flatten().clamp(max=self.held)  # ghosts form an extra group at the end
        order = slots.argsort(stable=True)
        held = torch.arange(self.held, device=x.device)
        ends = (slots[:, None] == held).sum(0).cumsum(0).to(torch.int32)
        rows = x[order // self.chosen]
        # Neither the product nor its gradient writes rows outside of all groups, and 0·NaN would spread from them.
        ghost = (torch.arange(len(order), device=x.device) >= ends[-1])[:, None] if self.skip_token else None
        if self.skip_token:
            rows = rows.masked_fill(ghost, 0)
        y = F.grouped_mm(F.silu(F.grouped_mm(rows, up, offs=ends)), down, offs=ends)
        if self.skip_token:
            y = y.masked_fill(ghost, 0)
        by_slot = torch.zeros_like(y).index_copy(0, order, y).view(*chosen.shape, -1)
        return (by_slot * gate[:, :, None]).sum(1)


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def read_safetensors(path):
    """The tensors of a safetensors file by name: 8 bytes length, a JSON header, the tensors' bytes."""
    dtypes = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "BF16": torch.bfloat16}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=dtypes[entry["dtype"]]) if end > begin else torch.empty(0)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def load_checkpoint(model, path):
    """Loads the weights from one site's checkpoint of fomoe-train; moments and counters are ignored."""
    tensors = read_safetensors(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in tensors:
                raise ValueError(f"{path}: got no tensor {name}; expected a checkpoint of fomoe-train for {model.shape}")
            if tensors[name].shape != parameter.shape:
                raise ValueError(f"{path}: {name}: got {list(tensors[name].shape)}; expected {list(parameter.shape)}")
            parameter.copy_(tensors[name])


def load_exported(folder, **options):
    """The model that `fomoe-train export` wrote to `folder`, for another program to read: config.json and model.safetensors.
    `options` are those of Model. Multipliers in the configuration that this class computes itself are checked."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    shape = Shape("custom", config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"],
                  *(config.get(key, 0) for key in ("num_experts", "num_experts_per_tok", "moe_intermediate_size")),
                  config["vocab_size"], config["max_position_embeddings"], config.get("intermediate_size", 0))
    expected = {"attention_multiplier": shape.heads / shape.d_model, "residual_multiplier": 4 / shape.layers,
                "logits_scaling": shape.d_model / 256, "layer_norm_eps": 1e-5,
                "tie_word_embeddings": True}
    if shape.experts > 0:
        expected.update({"scoring_func": "sigmoid", "norm_topk_prob": False})
    for key, value in expected.items():
        if config[key] != value:
            raise ValueError(f"{folder}/config.json: {key}: got {config[key]}; expected {value}")
    tensors = read_safetensors(f"{folder}/model.safetensors")
    model = Model(shape, rope_theta=config["rope_theta"], router_temperature=config.get("router_temperature", 1.0), **options)

    def take(parameter, *names, transposed=False):
        parts = [tensors.pop(name) for name in names]
        parts = [part.t() if transposed else part for part in parts]
        parameter.copy_(torch.stack(parts) if parameter.dim() == 3 else torch.cat(parts))

    with torch.no_grad():
        take(model.embedding, "model.embed_tokens.weight")
        take(model.embedding_norm, "model.embed_norm.weight")
        take(model.final_norm, "model.norm.weight")
        for number, layer in enumerate(model.layers):
            at = f"model.layers.{number}."
            take(layer.attention_norm_in, at + "input_layernorm.weight")
            take(layer.attention_norm_out, at + "post_attention_layernorm.weight")
            take(layer.moe_norm_in, at + "pre_feedforward_layernorm.weight")
            take(layer.moe_norm_out, at + "post_feedforward_layernorm.weight")
            take(layer.qkv, *(at + f"self_attn.{name}_proj.weight" for name in "qkv"))
            take(layer.attention_output, at + "self_attn.o_proj.weight")
            if shape.experts == 0:
                take(layer.ffn_up, at + "mlp.up_proj.weight", transposed=True)
                take(layer.ffn_down, at + "mlp.down_proj.weight", transposed=True)
                continue
            take(layer.router, at + "mlp.gate.weight", transposed=True)
            for parameter, name in ((layer.up, "up_proj"), (layer.down, "down_proj")):
                take(parameter, *(at + f"mlp.experts.{e}.{name}.weight" for e in range(shape.experts)), transposed=True)
    if tensors:
        raise ValueError(f"{folder}/model.safetensors: got unknown tensors {sorted(tensors)[:3]}")
    return model
