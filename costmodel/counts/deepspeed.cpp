// DeepSpeed with transformers. Its only public measurements do not say which counter they show, so that the
// activations have no measured run to compare with.
#include <algorithm>

#include "costmodel/counts/stacks.hpp"

namespace fomoe::costmodel {

WorkingBytes deepspeed_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                             int stage) {
  const StackShape& shape = model.stack_shape;
  const double tokens = tokens_of_pass(model, micro_batch_sequences), d = model.d_model;
  const StageLayers here = layers_of_stage(model, load, stage);
  const StageParameters held = parameters_in_memory(model, load, stage);
  const double parameters = held.dense + held.experts;
  WorkingBytes bytes;
  bytes.workspaces = kCublasWorkspaces;
  bytes.buffers = kHalfBytes * std::min(5e8, parameters);  // reduce_bucket_size (D config)
  if (model.gpus.zero_stage == 3 && sharded_degrees(model, load).dense > 1)
    bytes.gathered = kHalfBytes * std::min(1e9, parameters);  // stage3_max_live_parameters
  // modeling_llama.py: norms keep 32-bit inputs, normalised inputs and outputs; products of the block.
  const auto layer = [&](bool moe) {
    const double width = (moe ? shape.moe : shape.dense).width +
                         (moe ? model.expert_padding * load.executed_experts * shape.d_expert : 0);
    return tokens *
           ((kSingleBytes + 2 * kHalfBytes) * shape.norms * d +
            kHalfBytes * (shape.queries + 2 * shape.output + shape.keys + 2 * shape.values +
                          (shape.matrices + 1) * width + shape.other_elements) +
            kSingleBytes * shape.heads + kHalfBytes * shape.latent_elements) /
           model.gpus.tensor_parallel;
  };
  const double all = here.dense * layer(false) + here.moe * layer(true);
  const double flying = in_flight(model, load, micro_batch_sequences, stage);
  bytes.activations = flying * all;
  double recomputed = 0;
  if (model.gpus.activation_checkpointing) {
    const double inputs = (here.dense + here.moe) * tokens * kHalfBytes * d;
    bytes.activations += flying * (inputs - all) / static_cast<double>(model.gpus.checkpoint_every);
    recomputed = std::max(here.dense > 0 ? layer(false) : 0, here.moe > 0 ? layer(true) : 0);
  }
  // 32-bit logits, their shifted copy, the softmax and its gradient.
  const double logits =
      here.last ? 4 * kSingleBytes * tokens * shape.vocabulary / model.gpus.tensor_parallel : 0;
  bytes.at_peak = std::max(logits, recomputed);
  return bytes;
}

}  // namespace fomoe::costmodel
