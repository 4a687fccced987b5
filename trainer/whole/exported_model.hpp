// Writes and reads whole models as other programs do: a folder with model.safetensors and config.json, with
// the names of Hugging Face's transformers.
//
// The paper's architecture is none of transformers' own, so the configuration has model_type "fomoe".
// Everything that an implementation needs is in config.json, under the names that transformers uses where it
// has them:
//   Gemma 2    the four norms of a layer: input_layernorm, post_attention_layernorm,
//              pre_feedforward_layernorm, post_feedforward_layernorm (LayerNorms with a scale and no bias)
//   Granite    attention_multiplier (scores are multiplied by it), residual_multiplier (on each branch),
//              logits_scaling (logits are divided by it)
//   Qwen3 MoE  mlp.gate, mlp.experts.E.up_proj and down_proj (without a gate_proj: SiLU(x·up)·down)
//   Llama      intermediate_size, mlp.up_proj and down_proj of a dense model (without a gate_proj)
// DeepSeek-V3's scoring_func "sigmoid" without norm_topk_prob: a token's gates are the sigmoids of its k
// largest scores, divided by router_temperature. The embedding has a norm of its own, model.embed_norm.
// Matrices are [outputs, inputs].
#pragma once
#include <string>

#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// Writes the parameters in fp32, without the state of the optimisers, and modeling_fomoe.py, with which
/// transformers load them (trust_remote_code). Creates the folder. Throws std::runtime_error.
void write_exported(const WholeModel& whole, const std::string& folder);

/// Reads what write_exported() wrote. Throws FileError, also if a tensor is missing or has a shape other than
/// that of config.json.
WholeModel read_exported(const std::string& folder);

}  // namespace fomoe::trainer
