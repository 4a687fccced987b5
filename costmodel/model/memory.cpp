#include "costmodel/model/memory.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

constexpr std::int64_t kMaxSequences = std::int64_t{1} << 40;

}  // namespace

GpuMemory fullest_gpu(const Counts& counts) {
  const SiteCounts& fullest = counts.fullest_site();
  return {fullest.bytes_per_gpu, fullest.model.gpus.gpu_memory_bytes};
}

MemoryBytes memory_per_gpu(const SiteModel& model, const SiteLoad& load) {
  return memory_per_gpu(model, load, replica_micro_batch(model, load));
}

MemoryBytes memory_per_gpu(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences) {
  MemoryBytes fullest;
  for (int end = 0; end < pipeline_ends(model); ++end) {
    const SiteLoad at_end = at_end_of_pipeline(load, end == 1);
    for (int stage = 0; stage < model.gpus.pipeline_parallel; ++stage) {
      const MemoryBytes gpu = memory_of_stage(model, at_end, stage, micro_batch_sequences);
      if (gpu.total() > fullest.total()) fullest = gpu;
    }
  }
  return fullest;
}

MemoryBytes memory_per_site(const SiteModel& model, const SiteLoad& load) {
  MemoryBytes fullest;
  for (int end = 0; end < pipeline_ends(model); ++end) {
    const MemoryBytes site = memory_of_site(model, at_end_of_pipeline(load, end == 1));
    if (site.total() > fullest.total()) fullest = site;
  }
  return fullest;
}

double host_bytes_per_site(const SiteModel& model, const SiteLoad& load) {
  if (model.gpus.outer_state_on == OuterStateOn::device) return 0;
  const double without = model.outer_state_of_embedding ? 0 : model.embedding_elements;
  return model.outer_bytes_per_parameter * (load.dense + load.experts - without);
}

std::int64_t parameters_per_site(const Scenario& scenario) {
  const ParameterCounts counts = count_parameters(scenario.model);
  const Residency residency = residency_of(*scenario.strategy.method, scenario.strategy.sharding);
  if (residency == Residency::sharded_gathered) return chunk_elements(counts.total(), scenario.sites(), 0);
  const int stages = scenario.sites() / scenario.strategy.stage_sites;
  if (residency == Residency::sharded && stages > 1)
    return chunk_elements(counts.total() - counts.embedding, stages, 0) +
           scenario.model.vocabulary * scenario.model.d_model;
  if (residency == Residency::experts_sharded)
    return counts.total() - counts.expert + chunk_elements(counts.expert, scenario.sites(), 0);
  const std::int64_t overlap = effective_overlap(scenario), sites = scenario.sites();
  // The division has a remainder only for the expert count of an opaque model.
  const auto held = [&](std::int64_t elements) {
    return elements / sites * overlap + elements % sites * overlap / sites;
  };
  return counts.dense() + held(counts.expert) +
         (scenario.strategy.skip_token ? counts.router : held(counts.router));
}

double outer_bytes_per_parameter(const Method& method, OuterOptimizer optimizer) {
  if (!has_axis(method, "outer_optimizer")) return method.outer_bytes_per_parameter;
  switch (optimizer) {
    case OuterOptimizer::nesterov:
      return 4 + 4;
    case OuterOptimizer::adam:
    case OuterOptimizer::yogi:
      return 4 + 4 + 4;
    case OuterOptimizer::average:
    case OuterOptimizer::local_adamw:
      return 0;
  }
  return 0;
}

std::optional<std::int64_t> largest_micro_batch_sequences(const SiteModel& model, const SiteLoad& load) {
  if (model.gpus.gpu_memory_bytes == 0 || model.opaque) return std::nullopt;
  const auto fits = [&](std::int64_t sequences) {
    return memory_per_gpu(model, load, static_cast<double>(sequences)).total() <= model.gpus.gpu_memory_bytes;
  };
  std::int64_t fitting = 0, too_many = 1;
  while (too_many < kMaxSequences && fits(too_many)) {
    fitting = too_many;
    too_many *= 2;
  }
  while (too_many - fitting > 1) {
    const std::int64_t middle = fitting + (too_many - fitting) / 2;
    (fits(middle) ? fitting : too_many) = middle;
  }
  return fitting;
}

Provenance memory_provenance(const SiteModel& model, const SiteLoad& load) {
  std::string text = std::to_string(14 + std::lround(load.gradient_bytes)) + " B per parameter";
  text += model.gpus.outer_state_on == OuterStateOn::host ? "; the outer state is in host memory"
                                                          : " plus the outer state";
  if (load.gpus > 1)
    text += ", distributed over the " + std::to_string(std::lround(load.gpus)) + " GPUs of a site";
  const double micro_batch = replica_micro_batch(model, load);
  if (model.opaque) {
    text += "; activations are not included, because only the counts of the model are known";
  } else if (micro_batch == 0) {
    text += "; activations are not included, because compute.micro_batch_sequences is not given";
  } else {
    text += "; plus the activations of micro-batches of " + std::to_string(std::lround(micro_batch)) +
            " sequences";
  }
  return {"memory", Origin::computed, text};
}

MemoryBytes memory_of_stage(const SiteModel& model, const SiteLoad& load, int stage,
                            double micro_batch_sequences) {
  const SiteGpus& gpus = model.gpus;
  const StageParameters held = stage_parameters(model, load, stage);
  const double whole = held.dense + held.experts;
  const double parameters = whole * load.kept_share;
  const double degree = sharded_degree(model, load);
  const double sharded = parameters / degree;
  MemoryBytes memory;
  memory.weights = 2.0 * (gpus.zero_stage >= 3 ? sharded : parameters);
  memory.gradients = load.gradient_bytes * (gpus.zero_stage >= 2 ? sharded : parameters);
  memory.master_weights = 4.0 * sharded;
  memory.moments = model.moment_bytes_per_parameter * sharded;
  if (gpus.outer_state_on == OuterStateOn::device) {
    const double tables = stage_tables(model, load, stage) / static_cast<double>(gpus.tensor_parallel);
    const double with_outer_state =
        model.outer_state_of_embedding ? parameters : (parameters - tables * load.kept_share);
    memory.outer_state = model.outer_bytes_per_parameter * with_outer_state / degree;
  }
  if (gpus.sharded > 1 && gpus.zero_stage == 3 && !model.shards_all_gpus)
    memory.gathered_weights = 2.0 * largest_layer_parameters(model, load);
  memory.gathered_weights += 2.0 * whole * load.gathered_weights_share;
  memory.gradients += load.gradient_bytes * whole * load.gathered_gradients_share;
  memory.activations = activation_bytes(model, load, micro_batch_sequences, stage);
  if (model.gradient_bytes_of_one_pass < 4) {
    const double one_pass = (4.0 - load.gradient_bytes) / (4.0 - model.gradient_bytes_of_one_pass);
    const double tokens = micro_batch_sequences * model.sequence_length;
    memory.activations =
        one_pass * activations_beside_gradients(model, tokens, memory.activations, memory.gradients) +
        (1.0 - one_pass) * memory.activations;
  }
  return memory;
}

MemoryBytes memory_of_site(const SiteModel& model, const SiteLoad& load) {
  const double gpus_per_stage = load.gpus / static_cast<double>(model.gpus.pipeline_parallel);
  MemoryBytes site;
  for (int stage = 0; stage < model.gpus.pipeline_parallel; ++stage) {
    const MemoryBytes gpu = memory_of_stage(model, load, stage, replica_micro_batch(model, load));
    site.weights += gpus_per_stage * gpu.weights;
    site.master_weights += gpus_per_stage * gpu.master_weights;
    site.moments += gpus_per_stage * gpu.moments;
    site.gradients += gpus_per_stage * gpu.gradients;
    site.outer_state += gpus_per_stage * gpu.outer_state;
    site.gathered_weights += gpus_per_stage * gpu.gathered_weights;
    site.activations += gpus_per_stage * gpu.activations;
  }
  return site;
}

}  // namespace fomoe::costmodel
