#include "costmodel/counts/memory.hpp"

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
  const GpuNeed& need = fullest.need_of_gpu;
  return {need.needed, fullest.model.gpus.gpu_memory_bytes, need.most};
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

namespace {

/// The differences of the fragments that travel while the site trains on, which become their average: 4 B for
/// each. The last fragment has the tables.
double in_flight_bytes(const SiteModel& model, double parameters, double tables) {
  if (model.in_flight_share == 0) return 0;
  const double of_one = model.in_flight_share * (parameters - tables);
  return 4 * std::max(tables + model.in_flight.with_last * of_one, model.in_flight.most * of_one);
}

}  // namespace

double host_bytes_per_site(const SiteModel& model, const SiteLoad& load) {
  if (model.gpus.outer_state_on == OuterStateOn::device) return 0;
  const double without = model.outer_state_of_embedding ? 0 : model.embedding_elements;
  const double all = load.dense + load.experts;
  return model.outer_bytes_per_parameter * (all - without) +
         in_flight_bytes(model, all, model.embedding_elements);
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
  const ExpertShares shares = expert_shares(scenario);
  const std::int64_t experts = shares.layers * shares.experts;
  // The divisions have a remainder only for the expert count of an opaque model.
  const auto held = [&](std::int64_t elements) {
    if (shares.differ())
      return elements / experts * shares.at(0) + elements % experts * shares.at(0) / experts;
    return elements / sites * overlap + elements % sites * overlap / sites;
  };
  return counts.dense() + held(counts.expert) +
         (scenario.strategy.skip_token ? counts.router : held(counts.router));
}

std::optional<std::int64_t> largest_micro_batch_sequences(const SiteModel& model, const SiteLoad& load) {
  if (model.gpus.gpu_memory_bytes == 0 || model.opaque) return std::nullopt;
  const double of_replica = replica_sequences(model, load);
  const auto fits = [&](std::int64_t sequences) {
    SiteLoad with = load;
    SiteModel at = model;
    at.micro_batch_sequences = static_cast<double>(sequences);
    with.gradient_bytes = gradient_bytes(at, of_replica);
    const MemoryBytes memory = memory_per_gpu(model, with, at.micro_batch_sequences);
    return need_of(model, with, memory).needed <= model.gpus.gpu_memory_bytes;
  };
  // Memory grows with the micro-batch, but where one more sequence divides the logits into more chunks: then
  // it falls, and grows from there.
  const auto grown_from = [&](std::int64_t fitting) {
    std::int64_t step = 1;
    while (fitting + step < kMaxSequences && fits(fitting + step)) {
      fitting += step;
      step *= 2;
    }
    for (; step > 0; step /= 2)
      if (fitting + step < kMaxSequences && fits(fitting + step)) fitting += step;
    return fitting;
  };
  const double tokens = model.sequence_length / static_cast<double>(model.gpus.context_parallel);
  std::int64_t fitting = grown_from(0);
  while (model.logit_bytes_per_token > 0) {
    const double chunks = logit_chunks(model, static_cast<double>(fitting) * tokens);
    const auto more = static_cast<std::int64_t>(
        std::floor(chunks * static_cast<double>(kLogitChunkBytes) / (tokens * model.logit_bytes_per_token)) +
        1);
    if (more >= kMaxSequences || !fits(more)) break;
    fitting = grown_from(more);
  }
  return fitting;
}

Provenance memory_provenance(const SiteModel& model, const SiteLoad& load) {
  const SiteGpus& gpus = model.gpus;
  const double bytes = model.opaque ? 14 + load.gradient_bytes
                                    : weight_bytes(model) + master_weight_bytes(model) +
                                          model.moment_bytes_per_parameter + load.gradient_bytes;
  std::string text = std::to_string(std::lround(bytes)) + " B per parameter";
  text += gpus.outer_state_on == OuterStateOn::host ? "; the outer state is in host memory"
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
  if (gpus.stack == Stack::megatron && !model.opaque) text += ", as Megatron-LM keeps them";
  if (gpus.stack == Stack::torchtitan && !model.opaque) text += ", as torchtitan keeps them";
  if (gpus.stack == Stack::deepspeed && !model.opaque)
    text += ", as DeepSpeed keeps them (no measured run to compare with)";
  return {"memory", Origin::computed, text};
}

MemoryBytes memory_of_stage(const SiteModel& model, const SiteLoad& load, int stage,
                            double micro_batch_sequences) {
  const SiteGpus& gpus = model.gpus;
  const bool own = gpus.stack == Stack::fomoe || model.opaque;
  const StageParameters held =
      own ? stage_parameters(model, load, stage) : parameters_in_memory(model, load, stage);
  const ShardedDegrees degrees = sharded_degrees(model, load);
  const double whole = held.dense + held.experts;
  const double parameters = whole * load.kept_share;
  const double sharded = (held.dense / degrees.dense + held.experts / degrees.experts) * load.kept_share;
  MemoryBytes memory;
  memory.weights = weight_bytes(model) * (gpus.zero_stage >= 3 ? sharded : parameters);
  memory.gradients = load.gradient_bytes * (gpus.zero_stage >= 2 ? sharded : parameters);
  memory.master_weights = master_weight_bytes(model) * sharded;
  memory.moments = model.moment_bytes_per_parameter * sharded;
  if (gpus.outer_state_on == OuterStateOn::device) {
    const double tables = stage_tables(model, load, stage) / static_cast<double>(gpus.tensor_parallel);
    const double without = model.outer_state_of_embedding ? 0 : tables * load.kept_share / degrees.dense;
    memory.outer_state = model.outer_bytes_per_parameter * (sharded - without) +
                         in_flight_bytes(model, sharded, tables * load.kept_share / degrees.dense);
  }
  const bool gathers = degrees.dense > 1 && gpus.zero_stage == 3 && !model.shards_all_gpus;
  if (gathers && (own || gpus.stack == Stack::megatron))
    memory.gathered_weights = 2.0 * largest_layer_parameters(model, load);
  memory.gathered_weights += 2.0 * whole * load.gathered_weights_share;
  memory.gradients += load.gradient_bytes * whole * load.gathered_gradients_share;
  if (own) {
    memory.activations = activation_bytes(model, load, micro_batch_sequences, stage);
    if (model.gradient_bytes_of_one_pass < 4) {
      const double one_pass = (4.0 - load.gradient_bytes) / (4.0 - model.gradient_bytes_of_one_pass);
      const double tokens = micro_batch_sequences * model.sequence_length;
      memory.activations =
          one_pass * activations_beside_gradients(model, tokens, memory.activations, memory.gradients) +
          (1.0 - one_pass) * memory.activations;
      memory.workspaces = kCublasWorkspaces;
    }
    return memory;
  }
  WorkingBytes working;
  if (gpus.stack == Stack::torchtitan) {
    const double micro_batches = micro_batches_of_step(model, load, micro_batch_sequences);
    const bool one_pass = micro_batch_sequences > 0 && micro_batches <= 1,
               whole_stage = !one_pass && keeps_stage_whole(model, load);
    working = torchtitan_bytes(model, load, micro_batch_sequences, stage,
                               one_pass || whole_stage ? memory.gradients : 0);
    if (one_pass) memory.gradients = 0;
    if (whole_stage) memory.gradients = whole_gradient_bytes(model, load, micro_batches, parameters);
  } else {
    working = gpus.stack == Stack::megatron ? megatron_bytes(model, load, micro_batch_sequences, stage)
                                            : deepspeed_bytes(model, load, micro_batch_sequences, stage);
  }
  memory.activations = working.activations;
  memory.at_peak = micro_batch_sequences > 0 ? working.at_peak : 0;
  memory.buffers = working.buffers;
  memory.workspaces = working.workspaces;
  if (gathers) memory.gathered_weights += working.gathered;
  memory.cached = micro_batch_sequences > 0 ? working.cached : 0;
  return memory;
}

MemoryBytes memory_of_site(const SiteModel& model, const SiteLoad& load) {
  const double gpus_per_stage = load.gpus / static_cast<double>(model.gpus.pipeline_parallel);
  MemoryBytes site;
  for (int stage = 0; stage < model.gpus.pipeline_parallel; ++stage) {
    const MemoryBytes gpu = memory_of_stage(model, load, stage, replica_micro_batch(model, load));
    for (const auto member : MemoryBytes::kMembers) site.*member += gpus_per_stage * gpu.*member;
  }
  return site;
}

GpuNeed need_of(const SiteModel& model, const SiteLoad& load, const MemoryBytes& memory) {
  const double allocated = memory.total(), held = allocated + memory.cached;
  GpuNeed need{allocated, allocated, {allocated, allocated}, {}};
  if (model.opaque) return need;
  const ByteRange share = reserved_share(model.gpus.stack);
  need.reserved = {share.low * held, share.high * held};
  need.outside = outside_allocator(model, load);
  need.needed = allocated + need.outside.low;
  need.most = need.reserved.high + need.outside.high;
  return need;
}

}  // namespace fomoe::costmodel
