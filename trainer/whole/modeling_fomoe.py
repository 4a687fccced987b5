"""The FoMoE paper's transformer for the library transformers, beside the weights that `fomoe-train export` has written:

    model = transformers.AutoModelForCausalLM.from_pretrained("exported", trust_remote_code=True)

    x0      = LN(E[token])
    x      += residual_multiplier · LN(Attention(LN(x)))
    x      += residual_multiplier · LN(MoE(LN(x)))
    logits  = LN(x)·Eᵀ / logits_scaling        E is the embedding, tied to the output

Attention is causal, with rotary queries and keys and scores q·k · attention_multiplier. LN has a scale and no bias. A token's gates
are sigmoids of its largest scores, divided by router_temperature; an expert is SiLU(x·up)·down. A dense model has one
SiLU(x·up)·down in place of the MoE. There is no cache of keys and values, so that generation computes all tokens anew for each.
"""

import torch
import torch.nn.functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


class FomoeConfig(PretrainedConfig):
    model_type = "fomoe"

    def __init__(self, rope_theta=10000.0, use_cache=False, **values):
        super().__init__(**values)
        self.rope_theta = rope_theta
        self.use_cache = False


class Attention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.hidden_size
        self.heads, self.scale, self.theta = config.num_attention_heads, config.attention_multiplier, config.rope_theta
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (torch.nn.Linear(d, d, bias=False) for _ in range(4))

    def rotated(self, x, positions):
        head = x.shape[-1]
        # Angles reach as many radians as there are positions, so they are computed in fp64 and rounded once.
        frequency = self.theta ** (-torch.arange(0, head, 2, dtype=torch.float64, device=x.device) / head)
        angle = (positions.double()[..., None] * frequency)[:, None]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def forward(self, x, positions, mask):
        batch, length, d = x.shape
        q, k, v = (project(x).view(batch, length, self.heads, -1).transpose(1, 2) for project in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(self.rotated(q, positions), self.rotated(k, positions), v, attn_mask=mask,
                                           is_causal=mask is None, scale=self.scale)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, d))


class FeedForward(torch.nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.up_proj, self.down_proj = torch.nn.Linear(d, hidden, bias=False), torch.nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.up_proj(x)))


class MixtureOfExperts(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.hidden_size
        self.chosen, self.temperature = min(config.num_experts_per_tok, config.num_experts), config.router_temperature
        self.gate = torch.nn.Linear(d, config.num_experts, bias=False)
        self.experts = torch.nn.ModuleList(FeedForward(d, config.moe_intermediate_size) for _ in range(config.num_experts))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        score, chosen = self.gate(flat).topk(self.chosen, dim=1)
        weight = (score / self.temperature).sigmoid()
        y = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            y.index_add_(0, token, expert(flat[token]) * weight[token, slot, None])
        return y.view_as(x)


class Layer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.branch = config.residual_multiplier
        self.input_layernorm, self.post_attention_layernorm = norm(config), norm(config)
        self.pre_feedforward_layernorm, self.post_feedforward_layernorm = norm(config), norm(config)
        self.self_attn = Attention(config)
        experts = getattr(config, "num_experts", 0)
        self.mlp = MixtureOfExperts(config) if experts else FeedForward(config.hidden_size, config.intermediate_size)

    def forward(self, x, positions, mask):
        x = x + self.branch * self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), positions, mask))
        return x + self.branch * self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


def norm(config):
    return torch.nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps, bias=False)


class FomoeModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.embed_norm, self.norm = norm(config), norm(config)
        self.layers = torch.nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, tokens, attention_mask):
        length, device = tokens.shape[1], tokens.device
        positions = torch.arange(length, device=device)[None].expand(tokens.shape)
        mask = None
        if attention_mask is not None and not bool(attention_mask.all()):  # texts of other lengths are filled up
            present = attention_mask.bool()
            positions = (present.long().cumsum(1) - 1).clamp(min=0)
            causal = torch.ones(length, length, dtype=torch.bool, device=device).tril()
            # A token that fills up sees itself, since a row without any token has no softmax.
            mask = (causal & present[:, None, :] | torch.eye(length, dtype=torch.bool, device=device))[:, None]
        x = self.embed_norm(self.embed_tokens(tokens))
        for layer in self.layers:
            x = layer(x, positions, mask)
        return self.norm(x)


class FomoeForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = FomoeConfig
    base_model_prefix = "model"
    _supports_sdpa = True

    def __init__(self, config):
        super().__init__(config)
        self.model = FomoeModel(config)
        self.post_init()

    def _init_weights(self, module):
        pass  # the weights come from a training

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def get_output_embeddings(self):
        return None  # the input's, which no other module may replace

    def forward(self, input_ids, attention_mask=None, labels=None, logits_to_keep=0, **_):
        x = self.model(input_ids, attention_mask)
        if logits_to_keep:
            x = x[:, -logits_to_keep:]
        logits = F.linear(x / self.config.logits_scaling, self.model.embed_tokens.weight)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=-100)
        return CausalLMOutput(loss=loss, logits=logits)
