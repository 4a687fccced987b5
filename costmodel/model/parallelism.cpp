#include "costmodel/model/parallelism.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

StageParameters stage_parameters(const SiteModel& model, const SiteLoad& load, int stage) {
  const double tensor = model.gpus.tensor_parallel;
  const double stages = static_cast<double>(model.gpus.pipeline_parallel) * load.site_stages;
  const double most = uneven_stages(model, load);
  return {
      (most * (load.dense - model.embedding_elements) / stages + stage_tables(model, load, stage)) / tensor,
      most * load.experts / (stages * model.gpus.experts_divided())};
}

ShardedDegrees sharded_degrees(const SiteModel& model, const SiteLoad& load) {
  const SiteGpus& gpus = model.gpus;
  const double tensor = gpus.tensor_parallel;
  const bool has_stage =
      gpus.zero_stage > 0 && (gpus.stack == Stack::megatron || gpus.stack == Stack::deepspeed);
  const bool with_context = gpus.sharded > 1 || gpus.stack == Stack::torchtitan || has_stage;
  const double dense = model.shards_all_gpus
                           ? load.gpus / static_cast<double>(gpus.tensor_parallel * gpus.pipeline_parallel)
                           : static_cast<double>(gpus.sharded * (with_context ? gpus.context_parallel : 1));
  return {dense, std::max(1.0, dense * tensor / gpus.experts_divided())};
}

bool keeps_stage_whole(const SiteModel& model, const SiteLoad& load) {
  const bool pipeline = model.gpus.pipeline_parallel > 1 || model.pipeline_micro_batches > 0;
  return pipeline && model.gpus.stack == Stack::torchtitan && model.gpus.zero_stage == 3 &&
         sharded_degrees(model, load).dense > 1;
}

namespace {

// Bytes that a GPU sends to reduce the gradients of one byte of parameters, which `copies` GPUs have.
double gradient_traffic(double sharded, double copies) { return gradient_factor(sharded, copies / sharded); }

double gathered_share(double sharded) { return (sharded - 1.0) / sharded; }

}  // namespace

IntraSiteSeconds intra_site_seconds(const SiteModel& model, const SiteLoad& load, double computation_s) {
  const SiteGpus& gpus = model.gpus;
  const double tensor = gpus.tensor_parallel, expert = gpus.expert_parallel, stages = gpus.pipeline_parallel,
               context = gpus.context_parallel;
  const ShardedDegrees sharded = sharded_degrees(model, load);
  const double s_per_byte = gpus.intra_site_bytes_per_s > 0 ? 1 / gpus.intra_site_bytes_per_s : 0;
  const double rank_sequences = replica_sequences(model, load);
  // fsdp without a micro-batch has one per step, as its plan says.
  const bool one = model.shards_all_gpus && model.micro_batch_sequences == 0;
  const double of_sequences =
      one ? 1.0 : std::max(1.0, rank_sequences / std::max(model.micro_batch_sequences, 1.0));
  const double micro_batches = model.pipeline_micro_batches > 0 ? model.pipeline_micro_batches : of_sequences;
  // A smaller last micro-batch takes a part of the time, but as many gathers and reductions of weights.
  constexpr double kRounding = 1e-9;
  const double whole_passes = std::ceil(micro_batches - kRounding);
  const StageParameters held = stage_parameters(model, load, 0);
  const double gathered_s =
      s_per_byte * 2.0 *
      (gathered_share(sharded.dense) * held.dense + gathered_share(sharded.experts) * held.experts);
  const double token_s = s_per_byte * 2.0 * model.sequence_length * rank_sequences / context;
  const double activations_s = token_s * model.d_model;
  const double sequence = gpus.sequence_divided();
  const double passes =
      4.0 + (gpus.activation_checkpointing ? 2.0 / static_cast<double>(gpus.checkpoint_every) : 0.0);

  IntraSiteSeconds seconds;
  const double copies_of_experts = load.gpus / (gpus.experts_divided() * stages);
  const bool whole_stage = keeps_stage_whole(model, load);
  const bool once = gpus.zero_stage < 2 || sharded.dense == 1 || model.reduces_once || whole_stage;
  const double reductions = once ? 1.0 : whole_passes;
  seconds.gradients = reductions * s_per_byte * model.gradient_bytes *
                      (gradient_traffic(sharded.dense, load.gpus / (tensor * stages)) * held.dense +
                       gradient_traffic(sharded.experts, copies_of_experts) * held.experts);
  if (gpus.zero_stage == 3) {
    seconds.weight_gathers = (whole_stage ? 1.0 : 2.0 * whole_passes) * gathered_s;
  } else {
    seconds.updated_weights = gathered_s;
  }
  // A block of experts that are divided along the sequence has no all-reduce but that of its shared experts.
  const bool moves_tokens = expert > 1 && sequence > 1 && model.stack_shape.moe.width == 0;
  const double with_all_reduces = model.blocks - (moves_tokens ? model.moe_layers : 0);
  seconds.tensor = passes / 2.0 * with_all_reduces / stages * 2 * (tensor - 1) / tensor * activations_s;
  const double exchanged = gpus.context_exchange == ContextExchange::ring
                               ? (passes / 2.0 + 1.0) * (context - 1) * model.key_value_elements
                               : passes / 2.0 * (context - 1) / context * model.attention_elements;
  seconds.context = model.layers / stages * exchanged / tensor * token_s;
  const double gathers = expert > 1 && sequence > 1 ? gpus.experts_tensor() - 1.0 : 0.0;
  seconds.expert = passes * model.moe_layers / stages * ((expert - 1) / expert + gathers) / sequence *
                   (model.expert_padding * load.executed_experts) * activations_s;
  seconds.stages = (stages > 1 ? 2.0 * gpus.virtual_stages : 0.0) * activations_s / sequence;
  const double repeated_gathers = whole_stage ? 0.0 : seconds.weight_gathers;
  const double repeated_s =
      computation_s + repeated_gathers + seconds.tensor + seconds.context + seconds.expert + seconds.stages;
  seconds.bubble =
      ((stages - 1) / (micro_batches * gpus.virtual_stages) + uneven_stages(model, load) - 1) * repeated_s;
  return seconds;
}

}  // namespace fomoe::costmodel
