// Parallelism inside a site: how its GPUs share the model, and the communication time that this costs.
#pragma once
#include <string>
#include <vector>

#include "costmodel/model/site_model.hpp"

namespace fomoe::costmodel {

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

/// Layers are divided evenly among all pipeline stages (p in each site, and M times p if each of M sites is a
/// stage of a pipeline across sites), matrices among t tensor-parallel GPUs, and experts among e
/// expert-parallel GPUs.
StageParameters stage_parameters(const SiteModel& model, const SiteLoad& load, int stage);

/// Largest number of parameters that ZeRO 3 gathers at once: the mean dense part of a layer with its experts,
/// or one embedding table.
inline double largest_layer_parameters(const SiteModel& model, const SiteLoad& load) {
  const double layer = (load.dense - model.embedding_elements) / model.layers +
                       load.experts / (std::max(model.moe_layers, 1.0) * model.gpus.expert_parallel);
  return std::max(layer, model.table_elements) / static_cast<double>(model.gpus.tensor_parallel);
}

/// Seconds of communication and waiting in one optimiser step, in addition to computation. No overlap with
/// computation is assumed, so the sum is an upper bound.
struct IntraSiteSeconds {
  double gradients = 0;        // reduction of gradients among the replicas
  double updated_weights = 0;  // gather after the optimiser, ZeRO 1 and 2
  double weight_gathers = 0;   // gathers of weights in the passes, ZeRO 3
  double tensor = 0;
  double expert = 0;
  double stages = 0;  // transfers between pipeline stages
  double bubble = 0;
  [[nodiscard]] double before_optimizer() const {
    return gradients + weight_gathers + tensor + expert + stages + bubble;
  }
  [[nodiscard]] double total() const { return before_optimizer() + updated_weights; }
};

/// GPUs of a site among which ZeRO divides a replica. fsdp shards among all GPUs that the other degrees
/// leave.
double sharded_degree(const SiteModel& model, const SiteLoad& load);

/// Bytes that each GPU sends to reduce one byte of gradients: first to z shards, then each shard among r
/// replicas. The result is (z−1)/z + 2(r−1)/(r·z).
inline double gradient_factor(double sharded, double replicas) {
  return ((sharded - 1.0) + 2.0 * (replicas - 1.0) / replicas) / sharded;
}

/// Times of intra-site communication. z, t, e and p are the sharded, tensor, expert and pipeline degrees; r
/// is the data-parallel degree. D and X are the dense and expert parameters of a GPU. T is the number of
/// tokens of its replica in a step, in m micro-batches. The model has L layers, of which L_moe have experts,
/// k experts per token, and the width d (d_model). b is the fabric bandwidth of one GPU in bytes/s. An
/// element has 2 B.
///   gradients        2·[f(z, r·e)·D + f(z, r)·X]/b,  f(z, r) = (z−1)/z + 2(r−1)/(r·z)
///   updated weights  2·(z−1)/z·(D + X)/b                                             ZeRO 1 and 2
///   weight gathers   m · 2 · 2·(z−1)/z·(D + X)/b, once forward and once backward     ZeRO 3
///   tensor           4·L/p all-reduces a micro-batch (Shoeybi et al. 2019): 4·L/p · 2(t−1)/t · 2·T·d/b
///   expert           4·L_moe/p all-to-alls a micro-batch: 4·L_moe/p · (e−1)/e · 2·T·k·d/b
///   stages           2 · 2·T·d/b if p > 1
///   bubble           (p−1)/m of the computation and of all that repeats with the micro-batches
/// Activation recomputation repeats the forward half of `tensor` and `expert`: their factor 4 becomes 6.
IntraSiteSeconds intra_site_seconds(const SiteModel& model, const SiteLoad& load, double computation_s);

}  // namespace fomoe::costmodel
