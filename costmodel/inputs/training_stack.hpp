// The framework that trains the model of a site, and the settings that decide what it keeps in GPU memory.
#pragma once
#include <array>

#include "costmodel/inputs/enum_names.hpp"

namespace fomoe::costmodel {

/// Whose memory layout a GPU has (costmodel/counts). Bytes of a parameter: weights + master weights +
/// gradients + moments of AdamW.
///   fomoe       fomoe-train: 2 + 4 + 4 + 8
///   megatron    Megatron-LM with TransformerEngine: 2 + 4 + 4 + 8
///   torchtitan  FSDP2 of PyTorch: 4 + 0 + 4 + 8, 16-bit copies while a layer computes
///   deepspeed   DeepSpeed with transformers: 2 + 4 + 2 + 8
enum class Stack { fomoe, megatron, torchtitan, deepspeed };
constexpr auto enum_names(Stack) {
  using enum Stack;
  return std::to_array<EnumName<Stack>>(
      {{fomoe, "fomoe"}, {megatron, "megatron"}, {torchtitan, "torchtitan"}, {deepspeed, "deepspeed"}});
}

/// How logits exist, and what the loss keeps of them.
///   chunked     for a part of the tokens at a time
///   fp32_whole  all at once; the softmax is 32-bit
///   fp32_fused  the same in compiled functions, which keep one more 32-bit copy
///   bf16_fused  16-bit, overwritten by their gradients (TransformerEngine)
///   compiled    16-bit logits and their gradient (PyTorch's compiler)
enum class Logits { chunked, fp32_whole, fp32_fused, bf16_fused, compiled };
constexpr auto enum_names(Logits) {
  using enum Logits;
  return std::to_array<EnumName<Logits>>({{chunked, "chunked"},
                                          {fp32_whole, "fp32_whole"},
                                          {fp32_fused, "fp32_fused"},
                                          {bf16_fused, "bf16_fused"},
                                          {compiled, "compiled"}});
}

/// Parts of each layer that the backward pass computes again while the rest is kept.
///   operators  all but the outputs of attention and of every second matrix product (torchtitan's
///              "selective" with option "op")
///   attention  attention without its projections (Megatron-LM's "selective")
enum class SelectiveCheckpointing { none, operators, attention };
constexpr auto enum_names(SelectiveCheckpointing) {
  using enum SelectiveCheckpointing;
  return std::to_array<EnumName<SelectiveCheckpointing>>(
      {{none, "none"}, {operators, "operators"}, {attention, "attention"}});
}

/// How context-parallel GPUs exchange keys and values: around a ring, or by exchanging heads.
enum class ContextExchange { ring, all_to_all };
constexpr auto enum_names(ContextExchange) {
  return std::to_array<EnumName<ContextExchange>>(
      {{ContextExchange::ring, "ring"}, {ContextExchange::all_to_all, "all_to_all"}});
}

enum class StateDtype { fp32, bf16 };
constexpr auto enum_names(StateDtype) {
  return std::to_array<EnumName<StateDtype>>({{StateDtype::fp32, "fp32"}, {StateDtype::bf16, "bf16"}});
}
constexpr double bytes_of(StateDtype dtype) { return dtype == StateDtype::fp32 ? 4 : 2; }

}  // namespace fomoe::costmodel
