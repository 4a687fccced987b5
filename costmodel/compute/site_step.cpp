#include "costmodel/compute/site_step.hpp"

#include <variant>

#include "costmodel/compute/state_updates.hpp"
#include "costmodel/model/flops.hpp"

namespace fomoe::costmodel {

SiteStep site_step(const Scenario& site, const SiteCounts& counts) {
  const SiteGpus& gpus = site.gpus;
  const SiteModel& model = counts.model;
  SiteStep step;
  step.dense = counts.dense_elements;
  step.experts = counts.expert_elements;
  step.flops_per_token = counts.flops_per_token.total();
  const double unembedding = unembedding_flops(site.model);
  step.repeated = repeated_share(gpus, counts.flops_per_token, unembedding);
  const FlopsPerToken causal = causal_flops(site.model, counts.flops_per_token);
  step.executed_per_model_flops =
      causal.total() / step.flops_per_token * (1 + kForwardShare * repeated_share(gpus, causal, unembedding));
  if (const auto* given = std::get_if<GivenStepTime>(&site.compute)) {
    step.given_s = given->seconds;
  } else if (const auto* device = std::get_if<AssumedDevice>(&site.compute)) {
    step.from = SiteStep::From::assumed;
    step.device = *device;
    step.includes_optimizer = device->mfu > 0;
    step.adds_communication = !step.includes_optimizer;
  } else {
    const auto& [profile, micro_batch_sequences] = std::get<ProfiledCompute>(site.compute);
    const bool together = executed_together(profile);
    step.from = SiteStep::From::profiled;
    step.profiled =
        estimate_step(profile, micro_batch_sequences, counts.used_experts, site.strategy.skip_token);
    step.adds_communication = !together;
    if (recomputes(profile)) step.repeated = 0;
    if (!together)
      step.optimizer_division = (model.shards_all_gpus ? 1.0 : sharded_degrees(model, SiteLoad{}).dense) *
                                gpus.tensor_parallel * gpus.pipeline_parallel;
  }
  return step;
}

StepSeconds step_seconds(const SiteStep& step, const SiteModel& model, const SiteLoad& load,
                         IntraSiteSeconds* inside) {
  StepSeconds seconds{};
  // An MFU is that of the whole site, and a log that of its GPUs together, however they divide the batch.
  const double of_gpu = step.adds_communication
                            ? replica_sequences(model, load) / model.gpus.gpus_per_replica()
                            : load.sequences / load.gpus;
  switch (step.from) {
    case SiteStep::From::given:
      seconds.gradients_s = step.given_s;
      seconds.forward_s = forward_share(step.repeated) * step.given_s;
      break;
    case SiteStep::From::assumed: {
      seconds.gradients_s = assumed_gradients_s(
          step.counted_per_model_flops() * step.flops_per_token, of_gpu * load.gpus * model.sequence_length,
          step.device.share_of_peak(), step.device.peak_flops, load.gpus);
      seconds.forward_s = forward_share(step.repeated) * seconds.gradients_s;
      break;
    }
    case SiteStep::From::profiled: {
      const StepSample& timed = step.profiled.micro_batch;
      const auto gradients_s = [&](double accumulation_s) {
        return profiled_gradients_s(of_gpu, step.profiled.sequences,
                                    profiled_micro_batch_s(timed.forward_s, timed.backward_s, step.repeated),
                                    accumulation_s);
      };
      seconds.gradients_s = gradients_s(step.profiled.accumulation_s);
      seconds.forward_s = forward_share(timed, step.repeated) * gradients_s(0);
      seconds.optimizer_s = timed.optimizer_s / step.optimizer_division;
      if (model.shards_all_gpus && step.adds_communication)
        seconds.optimizer_s /= sharded_degrees(model, load).dense;
      break;
    }
  }
  if (step.adds_communication && load.gpus > 1) {
    const IntraSiteSeconds added = intra_site_seconds(model, load, seconds.gradients_s);
    // Both passes grow by the same factor.
    if (seconds.gradients_s > 0) seconds.forward_s *= 1 + added.before_optimizer() / seconds.gradients_s;
    seconds.gradients_s += added.before_optimizer();
    seconds.optimizer_s += added.updated_weights;
    if (inside != nullptr) *inside = added;
  }
  if (!step.includes_optimizer) seconds.optimizer_s += adam_seconds(model, load, step.dense, step.experts);
  return seconds;
}

}  // namespace fomoe::costmodel
