// Parallelism inside a site: how its GPUs share the model, and the communication time that this costs.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "costmodel/model/site_model.hpp"

namespace fomoe::costmodel {

/// Sequences of the replica that has most of them. A sequence is not divided among replicas, so a site with
/// fewer sequences than replicas, or with a remainder, takes as long as its fullest replica. A stage of a
/// pipeline across sites divides the sequences of its pipeline, of which load.sequences are a part.
inline double replica_sequences(const SiteModel& model, const SiteLoad& load) {
  constexpr double kRounding = 1e-9;
  const double replicas = load.gpus / model.gpus.gpus_per_replica();
  if (load.batch_sequences > 0) {
    const double batch = std::ceil(load.batch_sequences - kRounding);
    return std::ceil(batch / replicas - kRounding) / batch * load.sequences;
  }
  return std::ceil(load.sequences / replicas - kRounding);
}

/// Layers of the stage that has most of them ÷ their mean: ⌈L/p⌉·p/L. 1 if the sites are stages too, for
/// which layers are divided exactly.
inline double uneven_stages(const SiteModel& model, const SiteLoad& load) {
  const double stages = model.gpus.pipeline_parallel;
  if (stages == 1 || load.site_stages > 1 || model.layers == 0) return 1;
  return std::ceil(model.layers / stages) * stages / model.layers;
}

/// Parameters on one GPU of a pipeline stage, before ZeRO sharding.
struct StageParameters {
  double dense, experts;
};

/// Whether a GPU is in the last stage of the pipeline: 1 or 0. `stage` is its stage inside the site.
inline double in_last_stage(const SiteModel& model, const SiteLoad& load, int stage) {
  const double last_here = stage + 1 == model.gpus.pipeline_parallel ? 1 : 0;
  return last_here * std::max(2.0 + load.site_stage - load.site_stages, 0.0);
}

/// Elements of the embedding tables of a pipeline stage. The first stage has the embedding and the last one
/// the unembedding. If embedding and unembedding are one tied table, each of the two stages has its own copy.
inline double stage_tables(const SiteModel& model, const SiteLoad& load, int stage) {
  const double first = (stage == 0 ? 1.0 : 0.0) * std::max(1.0 - load.site_stage, 0.0);
  const double last = in_last_stage(model, load, stage), both = first * last;
  return both * model.embedding_elements + (first + last - 2.0 * both) * model.table_elements;
}

/// Each stage is taken to have as many layers as the fullest one. Layers are divided among all pipeline
/// stages (p in each site, and M times p if each of M sites is a stage of a pipeline across sites), matrices
/// among t tensor-parallel GPUs, and experts among e expert-parallel GPUs and their matrices among t_e.
StageParameters stage_parameters(const SiteModel& model, const SiteLoad& load, int stage);

/// Largest number of parameters that ZeRO 3 gathers at once: the mean dense part of a layer with its experts,
/// or one embedding table.
inline double largest_layer_parameters(const SiteModel& model, const SiteLoad& load) {
  const double tensor = model.gpus.tensor_parallel;
  const double layer = (load.dense - model.embedding_elements) / model.layers / tensor +
                       load.experts / (std::max(model.moe_layers, 1.0) * model.gpus.experts_divided());
  return std::max(layer, model.table_elements / tensor);
}

/// Seconds of communication and waiting in one optimiser step, in addition to computation. No overlap with
/// computation is assumed, so the sum is an upper bound.
struct IntraSiteSeconds {
  double gradients = 0;        // reduction of gradients among the replicas
  double updated_weights = 0;  // gather after the optimiser, ZeRO 1 and 2
  double weight_gathers = 0;   // gathers of weights in the passes, ZeRO 3
  double tensor = 0;
  double context = 0;
  double expert = 0;
  double stages = 0;  // transfers between pipeline stages
  double bubble = 0;
  [[nodiscard]] double before_optimizer() const {
    return gradients + weight_gathers + tensor + context + expert + stages + bubble;
  }
  [[nodiscard]] double total() const { return before_optimizer() + updated_weights; }
};

/// GPUs of a site among which ZeRO divides the dense parameters and the experts of a GPU. fsdp shards among
/// all GPUs that the other degrees leave. Context-parallel GPUs have the same parameters and shard them too
/// if `sharded` GPUs do. Without those, torchtitan's shard them (its mesh dp_shard_cp), and Megatron-LM's and
/// DeepSpeed's do if the scenario states a stage: Megatron-LM's distributed optimiser shards over data and
/// context parallelism together, and without it each GPU has the whole state. The experts are already divided
/// among e·t_e of the Z_d·t GPUs that share the dense parameters, so that max(1, Z_d·t / (e·t_e)) of them
/// share a part of the experts.
struct ShardedDegrees {
  double dense, experts;
};
ShardedDegrees sharded_degrees(const SiteModel& model, const SiteLoad& load);

/// Whether a stage's gathered weights and 32-bit gradients stay from its first micro-batch to its last, as in
/// torchtitan's pipelines: gathering and reducing them for each micro-batch would take too long (torchtitan
/// at 9dec370, parallelize_llama.py, apply_fsdp; PyTorch 2, distributed/pipelining/stage.py,
/// backward_maybe_with_nosync).
bool keeps_stage_whole(const SiteModel& model, const SiteLoad& load);

/// Bytes that each GPU sends to reduce one byte of gradients: first to z shards, then each shard among r
/// replicas. The result is (z−1)/z + 2(r−1)/(r·z).
inline double gradient_factor(double sharded, double replicas) {
  return ((sharded - 1.0) + 2.0 * (replicas - 1.0) / replicas) / sharded;
}

/// Times of intra-site communication. N GPUs have the tensor, context, expert and pipeline degrees t, c, e
/// and p; t_e GPUs divide an expert. Z_d and Z_e are the sharded degrees of dense parameters and of experts.
/// R_d = N/(t·p) GPUs have the same dense parameters, and R_e = N/(e·t_e·p) the same experts. D and X are the
/// dense and expert parameters of a GPU. T is the number of tokens of a GPU in a step, in m micro-batches, of
/// which the last one may be smaller: m counts it as a part in the bubble, and as a whole elsewhere.
/// The gradients are reduced n times: m with ZeRO 2 and 3, once with less, with full_shard_no_sync and where
/// a stage is kept whole. q is t with sequence parallelism and 1 without. The model has L layers, of which
/// L_moe have experts, k experts per token, and the width d (d_model). The queries, keys, values and outputs
/// of all heads have the widths Q, K, V and O. B blocks are attention, or what stands in its place, and
/// feed-forward parts: 2·L, unless layers have only one of them. c_f is the capacity factor (1 without). b is
/// the fabric bandwidth of one GPU in bytes/s. A weight or an activation has 2 B, and a gradient g B: 4, or 2
/// with DeepSpeed or 16-bit sums.
///   gradients        n·g·[f(Z_d, R_d/Z_d)·D + f(Z_e, R_e/Z_e)·X]/b,  f(z, r) = (z−1)/z + 2(r−1)/(r·z)
///   updated weights  2·[(Z_d−1)/Z_d·D + (Z_e−1)/Z_e·X]/b                              ZeRO 1 and 2
///   weight gathers   m · 2 · 2·[(Z_d−1)/Z_d·D + (Z_e−1)/Z_e·X]/b, once forward and once backward   ZeRO 3;
///                    once in a step where a stage is kept whole
///   tensor           2·B/p all-reduces a micro-batch (Shoeybi et al. 2019): 2·B/p · 2(t−1)/t · 2·T·d/b; none
///                    for a block of experts that are divided among GPUs that divide the sequence, unless it
///                    has shared experts
///   context          L/p · 3 · (c−1)·2·T·(K + V)/t/b: the keys and values of the other GPUs, again in the
///                    backward pass, and their gradients (Liu et al. 2023, arXiv 2310.01889); all-to-all:
///                    L/p · 2 · (c−1)/c·2·T·(Q + K + V + O)/t/b (Jacobs et al. 2023, arXiv 2309.14509)
///   expert           4·L_moe/p all-to-alls a micro-batch of the GPU's part of the sequences, and as many
///                    gathers among the GPUs that divide an expert (Megatron-LM, moe/token_dispatcher.py):
///                    4·L_moe/p · [(e−1)/e + (t_e−1)]/q · 2·T·c_f·k·d/b, the gathers if e and q > 1
///   stages           v · 2 · 2·T·d/q/b if p > 1, v virtual stages (Narayanan et al. 2021, section 2.2.2)
///   bubble           (p−1)/(m·v) of the computation and of all that repeats with the micro-batches (the same
///                    section), and ⌈L/p⌉·p/L − 1 of it, since the fullest stage sets the pace
/// Activation recomputation repeats the forward half of `tensor`, `context` and `expert`.
IntraSiteSeconds intra_site_seconds(const SiteModel& model, const SiteLoad& load, double computation_s);

}  // namespace fomoe::costmodel
