// The numbers of a resolved scenario that belong to no single site or link: a row of a sweep.
#pragma once
#include "costmodel/formula/resolved.hpp"

namespace fomoe::costmodel {

/// The fields of RunReport and of `fomoe cost`, with the same definitions.
struct Outcome {
  double wall_clock_s, compute_utilization, tokens_per_s;
  double bytes_per_token, bytes_sent_per_site_per_round;
  SentBytes sent;
  /// Of the site whose GPUs are fullest; gpu_memory_bytes is 0 if unknown.
  double memory_bytes_per_site, memory_bytes_per_gpu, gpu_memory_bytes;
  double flops_per_token;
  double optimizer_steps, tokens;
  double round_count, round_duration_s, round_compute_s, round_communication_s, round_exposed_communication_s,
      round_idle_s;
  double link_busy_share;
  double cost_total, energy_kwh;  // NaN without prices, or without power
};

Outcome outcome_of(const Resolved& resolved);

}  // namespace fomoe::costmodel
