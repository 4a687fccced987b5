#include "costmodel/model/parallelism.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

StageParameters stage_parameters(const SiteModel& model, const SiteLoad& load, int stage) {
  const double tensor = model.gpus.tensor_parallel;
  const double stages = static_cast<double>(model.gpus.pipeline_parallel) * load.site_stages;
  return {((load.dense - model.embedding_elements) / stages + stage_tables(model, load, stage)) / tensor,
          load.experts / (stages * (tensor * model.gpus.expert_parallel))};
}

double sharded_degree(const SiteModel& model, const SiteLoad& load) {
  const SiteGpus& gpus = model.gpus;
  if (!model.shards_all_gpus) return gpus.sharded;
  return load.gpus /
         static_cast<double>(gpus.tensor_parallel * gpus.expert_parallel * gpus.pipeline_parallel);
}

IntraSiteSeconds intra_site_seconds(const SiteModel& model, const SiteLoad& load, double computation_s) {
  const SiteGpus& gpus = model.gpus;
  const double tensor = gpus.tensor_parallel, expert = gpus.expert_parallel, stages = gpus.pipeline_parallel;
  const double sharded = sharded_degree(model, load);
  const double s_per_byte = gpus.intra_site_bytes_per_s > 0 ? 1 / gpus.intra_site_bytes_per_s : 0;
  const double replicas = load.gpus / (sharded * tensor * expert * stages);
  const double rank_sequences = load.sequences * (tensor * stages) / load.gpus;
  // fsdp without a micro-batch has one per step, as its plan says.
  const bool one = model.shards_all_gpus && model.micro_batch_sequences == 0;
  const double micro_batches =
      one ? 1.0 : std::max(1.0, rank_sequences / std::max(model.micro_batch_sequences, 1.0));
  const StageParameters held = stage_parameters(model, load, 0);
  const double gathered_s = s_per_byte * 2.0 * (sharded - 1.0) / sharded * (held.dense + held.experts);
  const double activations_s = s_per_byte * 2.0 * model.sequence_length * model.d_model * rank_sequences;
  const double passes = gpus.activation_checkpointing ? 6 : 4;

  IntraSiteSeconds seconds;
  seconds.gradients = s_per_byte * 2.0 *
                      (gradient_factor(sharded, replicas * expert) * held.dense +
                       gradient_factor(sharded, replicas) * held.experts);
  if (gpus.zero_stage == 3) {
    seconds.weight_gathers = 2.0 * micro_batches * gathered_s;
  } else {
    seconds.updated_weights = gathered_s;
  }
  seconds.tensor = passes * model.layers / stages * 2 * (tensor - 1) / tensor * activations_s;
  seconds.expert =
      passes * model.moe_layers / stages * (expert - 1) / expert * load.executed_experts * activations_s;
  seconds.stages = (stages > 1 ? 2.0 : 0.0) * activations_s;
  seconds.bubble =
      (stages - 1) / micro_batches *
      (computation_s + seconds.weight_gathers + seconds.tensor + seconds.expert + seconds.stages);
  return seconds;
}

}  // namespace fomoe::costmodel
