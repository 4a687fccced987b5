// Megatron-LM with TransformerEngine: what a layer keeps for the backward pass (K, equations 2 and 4, without
// attention's scores), by what divides it.
//
// n tokens of a micro-batch are on a GPU. t GPUs divide matrices, t_e an expert's, and s = t with sequence
// parallelism, otherwise 1. d is the model's width; Q, K, V and O are the widths of queries, keys, values and
// attention's output; a is the number of heads; f is the hidden width, n_m the number of matrices of a block.
//   along the sequence  2·2·d/s for each norm, input and output
//   latents             their norms' inputs and outputs, on every GPU
//   divided by t        2·(Q + K + V + O) + 4·a, and O once more before heads are exchanged
//     dense             2·n_m·f
//     experts           2·k·(d·t_e + n_m·f_e) + 2·n_m·shared + 8·N_e: a copy of the token, the hidden
//                       elements of k experts, and the router's scores. The router's weight is applied before
//                       the second product, so that the expert's output is not kept.
#include <algorithm>
#include <set>
#include <tuple>

#include "costmodel/counts/stacks.hpp"
#include "costmodel/model/activations.hpp"

namespace fomoe::costmodel {

namespace {

struct MegatronLayers {
  const SiteModel& model;
  const SiteLoad& load;
  double tokens;

  [[nodiscard]] double tensor() const { return model.gpus.tensor_parallel; }
  [[nodiscard]] double sequence() const { return model.gpus.sequence_divided(); }
  [[nodiscard]] double experts() const { return model.expert_padding * load.executed_experts; }

  /// Bytes that a layer keeps.
  [[nodiscard]] double kept(bool moe) const {
    const StackShape& shape = model.stack_shape;
    const double d = model.d_model;
    const bool exchanged =
        model.gpus.context_parallel > 1 && model.gpus.context_exchange == ContextExchange::all_to_all;
    double divided = kHalfBytes * (shape.queries + shape.keys + shape.values +
                                   shape.output * (exchanged ? 2 : 1) + shape.other_elements);
    // Attention that is computed again does not keep the logarithm of the softmax's sum.
    if (model.gpus.selective_checkpointing != SelectiveCheckpointing::attention)
      divided += kSingleBytes * shape.heads;
    divided += kHalfBytes * shape.matrices * (moe ? shape.moe : shape.dense).width;
    if (moe) {
      divided +=
          kHalfBytes * experts() * (d * model.gpus.experts_tensor() + shape.matrices * shape.d_expert) +
          2 * kSingleBytes * shape.router_scores;
    }
    return tokens * ((kHalfBytes * 2 * shape.norms * d + kHalfBytes * shape.latent_elements) / sequence() +
                     divided / tensor());
  }

  /// What the backward pass of a layer adds at most: the gradients of gate and value while that of their
  /// product is freed.
  [[nodiscard]] double backward(bool moe) const {
    const StackShape& shape = model.stack_shape;
    const double width = (moe ? shape.moe : shape.dense).width + (moe ? experts() * shape.d_expert : 0);
    const double rows = moe ? experts() * model.d_model * model.gpus.experts_tensor() / tensor() : 0;
    return kHalfBytes * tokens *
           ((shape.matrices - 1) * width / tensor() + rows + model.d_model / sequence());
  }

  /// The loss and the backward pass of the unembedding (TE triton/cross_entropy.py, M
  /// tensor_parallel/cross_entropy.py and fusions/fused_cross_entropy.py).
  [[nodiscard]] double loss() const {
    const double d = model.d_model, s = sequence();
    const double logits = tokens * padded_vocabulary(model) / tensor();
    const double norm = kHalfBytes * 2 * tokens * d / s;
    const double back = kHalfBytes * tokens * d * (s > 1 ? 1 + 1 / s : 1);
    const Logits form = model.gpus.logits.value_or(Logits::fp32_whole);
    if (form == Logits::bf16_fused) return norm + kHalfBytes * logits + back;
    const double copies =
        form == Logits::fp32_fused ? 2 * kSingleBytes + kHalfBytes : kSingleBytes + kHalfBytes;
    return norm + std::max(copies * logits, kHalfBytes * logits + back);
  }
};

/// Elements of one matrix of each shape that a GPU has. Gradients are added to the 32-bit buffer inside the
/// product, and an empty 16-bit gradient of each shape takes their place and is kept (TE module/base.py,
/// get_dummy_wgrad).
double distinct_matrices(const SiteModel& model, const StageLayers& layers) {
  std::set<std::tuple<double, double, double>> shapes;
  for (const LayerMatrix& matrix : model.stack_shape.matrices_of_layers) {
    const bool here = (matrix.in_dense && layers.dense > 0) || (matrix.in_moe && layers.moe > 0);
    const double among = matrix.of_expert ? model.gpus.experts_tensor()
                         : matrix.divided ? model.gpus.tensor_parallel
                                          : 1;
    if (here) shapes.emplace(matrix.outputs, matrix.inputs, matrix.outputs * matrix.inputs / among);
  }
  const double rows = padded_vocabulary(model);
  if (layers.last) shapes.emplace(rows, model.d_model, rows * model.d_model / model.gpus.tensor_parallel);
  double elements = 0;
  for (const auto& shape : shapes) elements += std::get<2>(shape);
  return elements;
}

}  // namespace

WorkingBytes megatron_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                            int stage) {
  const SiteGpus& gpus = model.gpus;
  const StageLayers here = layers_of_stage(model, load, stage);
  const MegatronLayers layer{model, load, tokens_of_pass(model, micro_batch_sequences)};
  WorkingBytes bytes;
  // TransformerEngine has 32 MiB, and four times more for grouped products (pytorch/module/base.py).
  bytes.workspaces = kCublasWorkspaces + (model.moe_layers > 0 ? 5 : 1) * 32 * kMiB;
  bytes.buffers = kHalfBytes * distinct_matrices(model, here);
  // The input of the unembedding, gathered along the sequence (M tensor_parallel/layers.py, buffer "mpu").
  if (here.last && layer.sequence() > 1) bytes.buffers += kHalfBytes * layer.tokens * model.d_model;

  const double all = here.dense * layer.kept(false) + here.moe * layer.kept(true);
  const double flying = in_flight(model, load, micro_batch_sequences, stage);
  const bool again = gpus.activation_checkpointing;
  bytes.activations = flying * all;
  if (again) {
    // Of every n-th layer only the input is kept (K section 5).
    const double inputs =
        (here.dense + here.moe) * kHalfBytes * model.d_model * layer.tokens / layer.sequence();
    bytes.activations += flying * (inputs - all) / static_cast<double>(gpus.checkpoint_every);
  }
  for (const bool moe : {false, true})
    if ((moe ? here.moe : here.dense) > 0)
      bytes.at_peak = std::max(bytes.at_peak, layer.backward(moe) + (again ? layer.kept(moe) : 0));
  if (here.last) bytes.at_peak = std::max(bytes.at_peak, layer.loss());
  return bytes;
}

}  // namespace fomoe::costmodel
