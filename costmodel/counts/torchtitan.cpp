// torchtitan: FSDP2, whose 32-bit weights are gathered as 16-bit copies for one layer at a time.
//
// Most measured runs have reserved memory only; the model is 4 % off them in the median, up to 11 % too low
// with tensor parallelism, and 1 to 12 % too low with pipelines.
#include <algorithm>

#include "costmodel/counts/stacks.hpp"

namespace fomoe::costmodel {

namespace {

struct TorchtitanLayers {
  const SiteModel& model;
  const SiteLoad& load;

  [[nodiscard]] double tensor() const { return model.gpus.tensor_parallel; }
  [[nodiscard]] double sequence() const { return model.gpus.sequence_divided(); }
  /// Rows that the experts compute for a token.
  [[nodiscard]] double rows(bool moe) const { return moe ? model.expert_padding * load.executed_experts : 0; }
  /// Hidden width of the block that computes every token: a dense one, or the shared experts.
  [[nodiscard]] double width(bool moe) const {
    const StackShape& shape = model.stack_shape;
    return (moe ? shape.moe : shape.dense).width;
  }

  /// Parameters of a layer on a GPU, gathered.
  [[nodiscard]] double parameters(bool moe) const {
    const StackShape& shape = model.stack_shape;
    const LayerKind& kind = moe ? shape.moe : shape.dense;
    const double others = kind.divided_parameters / tensor() + kind.whole_parameters;
    if (!moe) return others;
    const ExpertsHeld held = experts_held(model, load);
    return others + (held.experts / model.gpus.experts_divided() + held.routers) / model.moe_layers;
  }

  /// Bytes of a token that a layer holds for its backward pass. Norms keep their 16-bit input (P rms_norm)
  /// and the products their outputs. Attention keeps queries, keys and values of all heads, its output, and
  /// the copy of it that the projection reads; expanded latents stay because the values are part of them. Of
  /// a block there are gate, its activation, value and product. The experts' rows are the input of the first
  /// products in 16 bits, and in 32 bits where the router's weight is multiplied (T models/moe/moe.py). With
  /// tensor parallelism, inputs that were gathered along the sequence stay.
  [[nodiscard]] double whole(bool moe) const {
    const StackShape& shape = model.stack_shape;
    const double d = model.d_model;
    const double values = shape.expanded > 0 ? shape.expanded : shape.output;
    const double block = (shape.matrices + 1) * (width(moe) + rows(moe) * shape.d_expert);
    const double divided =
        kSingleBytes * shape.heads +
        kHalfBytes * (2 * shape.queries + values + 2 * shape.output + block + shape.other_elements) +
        (moe ? (kHalfBytes + kSingleBytes) * rows(moe) * d + kSingleBytes * shape.router_scores : 0);
    return kHalfBytes * (shape.norms + 2) * d / sequence() + divided / tensor() +
           (sequence() > 1 ? kHalfBytes * 2 * d : 0) + kHalfBytes * shape.latent_elements;
  }

  /// Bytes of a token that a layer keeps until its backward pass.
  [[nodiscard]] double kept(bool moe) const {
    const StackShape& shape = model.stack_shape;
    const double d = model.d_model;
    const double input = kHalfBytes * d / sequence();
    if (model.gpus.selective_checkpointing == SelectiveCheckpointing::operators)
      // Outputs of attention and of every second product: queries, values, gate, down-projection
      // (T parallelize_llama.py, _save_list). Grouped products of experts are not among them.
      return 2 * input + (kHalfBytes * (shape.queries + shape.output + shape.values + width(moe)) +
                          kSingleBytes * shape.heads) /
                             tensor();
    if (!model.gpus.activation_checkpointing) return whole(moe);
    const double every = static_cast<double>(model.gpus.checkpoint_every);
    return whole(moe) + (input - whole(moe)) / every;
  }
};

/// What a pipeline keeps of a stage's outputs, in bytes: those of the micro-batches in flight, and buffers
/// that receive the gradients of all (P distributed/pipelining/stage.py, fwd_cache and grad_recv_info). The
/// last chunk of layers has 16-bit logits instead.
double outputs_of_stage(const SiteModel& model, const StageLayers& here, double tokens, double sequence,
                        double in_flight, double micro_batches) {
  const double chunks = model.gpus.virtual_stages - (here.last ? 1 : 0);
  const double hidden = chunks * (in_flight + micro_batches) * model.d_model / sequence;
  const double logits = here.last ? in_flight * model.stack_shape.vocabulary / model.gpus.tensor_parallel : 0;
  return kHalfBytes * tokens * (hidden + logits);
}

}  // namespace

double whole_gradient_bytes(const SiteModel& model, const SiteLoad& load, double micro_batches,
                            double parameters) {
  const double stages = static_cast<double>(model.gpus.pipeline_parallel) * load.site_stages;
  return kSingleBytes * parameters / (micro_batches <= stages ? model.gpus.virtual_stages : 1);
}

WorkingBytes torchtitan_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                              int stage, double gradients) {
  const double tokens = tokens_of_pass(model, micro_batch_sequences), tensor = model.gpus.tensor_parallel;
  const StageLayers here = layers_of_stage(model, load, stage);
  const TorchtitanLayers layer{model, load};
  const double table = model.stack_shape.vocabulary * model.d_model / tensor;
  const bool gathers = model.gpus.zero_stage == 3 && sharded_degrees(model, load).dense > 1;
  const bool whole_stage = keeps_stage_whole(model, load);
  const double flying = in_flight(model, load, micro_batch_sequences, stage);
  WorkingBytes bytes;
  bytes.workspaces = kCublasWorkspaces;
  // Copies of the unembedding, and of the last layer, which is not divided again after the forward pass.
  const double gathered_layer =
      std::max(here.dense > 0 ? layer.parameters(false) : 0, here.moe > 0 ? layer.parameters(true) : 0);
  const StageParameters held = parameters_in_memory(model, load, stage);
  if (whole_stage)
    bytes.gathered = kHalfBytes * (held.dense + held.experts);
  else if (gathers)
    bytes.gathered = kHalfBytes * ((here.last ? table : 0) + gathered_layer);
  bytes.activations = flying * tokens * (here.dense * layer.kept(false) + here.moe * layer.kept(true));
  if (model.gpus.pipeline_parallel > 1 || model.pipeline_micro_batches > 0)
    bytes.activations += outputs_of_stage(model, here, tokens, layer.sequence(), flying,
                                          micro_batches_of_step(model, load, micro_batch_sequences));
  const double logits = tokens * model.stack_shape.vocabulary / tensor;
  const bool whole_logits = model.gpus.logits.value_or(Logits::fp32_whole) == Logits::fp32_whole;
  double at_loss = 0;
  if (here.last) {
    // 32-bit softmax, its gradient and that of the logits; with tensor parallelism an exponential in addition
    // (P distributed/tensor/parallel/loss.py). Compiled: 16-bit logits and their gradient.
    const double copies = whole_logits ? (tensor > 1 ? 4 : 3) * kSingleBytes : 2 * kHalfBytes;
    at_loss = copies * logits + tokens * model.d_model *
                                    ((kSingleBytes + 3 * kHalfBytes) / layer.sequence() +
                                     (layer.sequence() > 1 ? kHalfBytes : 0));
  }
  // First layer of the backward pass: recomputed; its gathered successor, 16-bit gradients of it and of a
  // table, and the 32-bit input of the reduction. A pipeline has gathered all, and reduces later. Of the
  // experts' rows, the gradient where the router's weight is multiplied: in 16 bits, its 32-bit copy, and the
  // product.
  const bool recomputes = model.gpus.activation_checkpointing ||
                          model.gpus.selective_checkpointing == SelectiveCheckpointing::operators;
  const double rows = (kHalfBytes + 2 * kSingleBytes) * layer.rows(here.moe > 0) * model.d_model / tensor;
  const double at_layer = tokens * ((recomputes ? layer.whole(here.moe > 0) : 0) + rows) +
                          kHalfBytes * (gathered_layer + (here.last ? table : 0)) +
                          (whole_stage ? 0 : (kHalfBytes + kSingleBytes) * gathered_layer);
  // Last: all gradients, and those of the tables in 16 and in 32 bits.
  const double tables = (here.first ? table : 0) + (here.last ? table : 0);
  const double at_end = gradients + (kHalfBytes + kSingleBytes) * tables - bytes.activations;
  bytes.at_peak = std::max({at_loss, at_layer, at_end});
  // Memory that was freed on one stream is not given to another (P c10/cuda/CUDACachingAllocator.cpp), so
  // that the peaks of FSDP2's streams add up. The block of the 16-bit logits is too small for what follows.
  bytes.cached = gradients + (here.last && whole_logits ? kHalfBytes * logits : 0);
  if (gathers) bytes.cached += kHalfBytes * std::max(here.last ? table : 0, 2 * gathered_layer);
  return bytes;
}

}  // namespace fomoe::costmodel
