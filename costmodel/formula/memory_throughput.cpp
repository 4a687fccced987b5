#include "costmodel/formula/memory_throughput.hpp"

#include <algorithm>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

MemoryThroughput memory_throughput(Scenario scenario, int expert_overlap) {
  if (!std::holds_alternative<AssumedDevice>(scenario.compute)) {
    throw InputError("compute.peak_flops", "a step time that does not depend on the batch size",
                     "peak_flops and mfu", "peak_flops = \"989TFLOPS\"");
  }
  scenario.strategy.expert_overlap = expert_overlap;
  const SiteCounts site = counts_of(scenario).sites.front();
  const std::optional<std::int64_t> largest = largest_micro_batch_sequences(site.model, site.load);
  if (!largest) {
    throw InputError("compute.gpu_memory", "no gpu_memory, or a model of which only counts are known",
                     "gpu_memory and a model with a known shape", "gpu_memory = \"80GiB\"");
  }
  MemoryThroughput point;
  point.expert_overlap = expert_overlap;
  point.micro_batch_sequences = *largest;
  if (*largest == 0) return point;
  const SiteGpus& gpus = scenario.gpus;
  const std::int64_t replicas = gpus.count / gpus.gpus_per_replica();
  point.global_batch_sequences = scenario.sites() * replicas * *largest;
  scenario.gpus.micro_batch_sequences = *largest;
  scenario.workload.global_batch_sequences = point.global_batch_sequences;
  // Whole rounds, so that a short last round does not affect the ratio.
  const std::int64_t round_tokens =
      scenario.strategy.local_steps * point.global_batch_sequences * scenario.model.sequence_length;
  scenario.workload.tokens =
      round_tokens * std::max<std::int64_t>(1, (scenario.workload.tokens + round_tokens - 1) / round_tokens);
  const RunReport report = closed_form(scenario);
  point.bytes_per_token = report.bytes_per_token;
  point.tokens_per_s = report.tokens_per_s;
  return point;
}

}  // namespace fomoe::costmodel
