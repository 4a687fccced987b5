#include "costmodel/counts/stacks.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

StageLayers layers_of_stage(const SiteModel& model, const SiteLoad& load, int stage) {
  const double stages = static_cast<double>(model.gpus.pipeline_parallel) * load.site_stages;
  const double index = load.site_stage * model.gpus.pipeline_parallel + stage;
  const double each = model.layers / stages;
  StageLayers layers;
  layers.moe = model.stack_shape.moe_layers_in(index * each, (index + 1) * each);
  layers.dense = each - layers.moe;
  const double most = uneven_stages(model, load);
  layers.moe *= most;
  layers.dense *= most;
  layers.first = index == 0;
  layers.last = index + 1 == stages;
  return layers;
}

double padded_vocabulary(const SiteModel& model) {
  const double vocabulary = model.stack_shape.vocabulary;
  if (model.gpus.stack != Stack::megatron) return vocabulary;
  const double multiple = 128.0 * model.gpus.tensor_parallel;
  return std::ceil(vocabulary / multiple) * multiple;
}

ExpertsHeld experts_held(const SiteModel& model, const SiteLoad& load) {
  const StackShape& shape = model.stack_shape;
  // The site holds this share of the experts, and of the router unless it has the whole one.
  const double share =
      load.experts / (shape.expert_parameters + (shape.router_is_dense ? 0 : shape.router_parameters));
  return {share * shape.expert_parameters, (shape.router_is_dense ? 1 : share) * shape.router_parameters};
}

StageParameters parameters_in_memory(const SiteModel& model, const SiteLoad& load, int stage) {
  const StackShape& shape = model.stack_shape;
  const double tensor = model.gpus.tensor_parallel;
  const StageLayers layers = layers_of_stage(model, load, stage);
  const auto of = [&](const LayerKind& kind) {
    return kind.divided_parameters / tensor + kind.whole_parameters;
  };
  const double table = padded_vocabulary(model) * model.d_model / tensor;
  const double tables =
      (layers.first ? table : 0) + (layers.last && !(layers.first && shape.tied) ? table : 0);
  StageParameters held{layers.dense * of(shape.dense) + layers.moe * of(shape.moe) + tables +
                           (layers.last ? shape.outer_norm_parameters : 0),
                       0};
  if (model.moe_layers > 0) {
    const double share_of_layers = layers.moe / model.moe_layers;
    const ExpertsHeld of_site = experts_held(model, load);
    held.experts = of_site.experts * share_of_layers / model.gpus.experts_divided();
    held.dense += of_site.routers * share_of_layers;
  }
  return held;
}

double micro_batches_of_step(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences) {
  if (model.pipeline_micro_batches > 0) return model.pipeline_micro_batches;
  return micro_batch_sequences > 0 ? replica_sequences(model, load) / micro_batch_sequences : 0;
}

double in_flight(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences, int stage) {
  if (model.pipeline_micro_batches > 0) return micro_batches_in_flight(model, load, stage);
  const double stages = model.gpus.pipeline_parallel, virtual_stages = model.gpus.virtual_stages;
  if (stages == 1) return 1;
  const double of_step = micro_batches_of_step(model, load, micro_batch_sequences);
  const double most = of_step > 0 ? std::max(1.0, of_step) : stages * virtual_stages;
  if (virtual_stages == 1) return std::min(stages - stage, most);
  return std::min(2 * (stages - stage - 1) + (virtual_stages - 1) * stages + 1, most * virtual_stages) /
         virtual_stages;
}

double weight_bytes(const SiteModel& model) { return model.gpus.stack == Stack::torchtitan ? 4 : 2; }
double master_weight_bytes(const SiteModel& model) { return model.gpus.stack == Stack::torchtitan ? 0 : 4; }

ByteRange reserved_share(Stack stack) {
  if (stack == Stack::megatron) return {1.02, 1.08};
  if (stack == Stack::torchtitan) return {0.95, 1.07};
  return {1, 1};
}

ByteRange outside_allocator(const SiteModel& model, const SiteLoad& load) {
  const SiteGpus& gpus = model.gpus;
  if (gpus.stack == Stack::fomoe) return {};
  constexpr double kContext = 0.3 * 0x1p30, kOfTwo = 544e6, kOfMore = 688e6;
  double buffers = 0;
  for (const double size :
       {load.gpus / gpus.gpus_per_replica(), 1.0 * gpus.tensor_parallel, 1.0 * gpus.context_parallel,
        1.0 * gpus.pipeline_parallel, 1.0 * gpus.expert_parallel})
    if (size > 1) buffers += size > 2 ? kOfMore : kOfTwo;
  return {kContext + buffers / 2, kContext + 2 * buffers};
}

}  // namespace fomoe::costmodel
