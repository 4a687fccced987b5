#include "costmodel/formula/outcome.hpp"

#include "costmodel/formula/sent_to.hpp"

namespace fomoe::costmodel {

Outcome outcome_of(const Resolved& resolved) {
  const Counts& counts = resolved.counts;
  const PlanSummary& plan = resolved.plan;
  const RoundTimes& round = resolved.times.round;
  Outcome outcome{};
  outcome.wall_clock_s = resolved.wall_clock_s();
  outcome.optimizer_steps = plan.steps;
  outcome.tokens = plan.steps * counts.axes.global_batch_sequences * counts.fixed.sequence_length;
  outcome.tokens_per_s = outcome.tokens / outcome.wall_clock_s;
  outcome.sent = plan.sent;
  outcome.bytes_sent_per_site_per_round = plan.sent.total();
  outcome.bytes_per_token =
      counts.axes.sites * plan.rounds * outcome.bytes_sent_per_site_per_round / outcome.tokens;
  const SiteCounts& fullest = counts.fullest_site();
  outcome.memory_bytes_per_site = fullest.bytes_per_site;
  outcome.memory_bytes_per_gpu = fullest.need_of_gpu.needed;
  outcome.gpu_memory_bytes = fullest.model.gpus.gpu_memory_bytes;
  outcome.flops_per_token = counts.flops_per_token;
  outcome.round_count = plan.rounds;
  outcome.round_duration_s = round.duration_s;
  // Means over all sites; those that do not train count as 0.
  for (std::size_t i = 0; i < counts.sites.size(); ++i)
    outcome.round_compute_s += counts.sites[i].share_of_training * resolved.times.sites[i].round_compute_s;
  outcome.compute_utilization = outcome.round_compute_s / round.duration_s;
  outcome.round_communication_s = round.communication_s;
  outcome.round_exposed_communication_s = round.exposed_s;
  outcome.round_idle_s = round.slowest_compute_s + round.waiting_s - outcome.round_compute_s;
  outcome.link_busy_share = busiest_port(resolved).share;
  outcome.cost_total = resolved.values.cost_total;
  outcome.energy_kwh = resolved.values.energy_kwh;
  return outcome;
}

}  // namespace fomoe::costmodel
