// A plan reduced to what the closed form needs: sums and counts of the mean round.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/plan.hpp"

namespace fomoe::costmodel {

/// Bytes that a site sends, mean over sites and rounds.
struct SentBytes {
  double dense = 0;
  double expert_sync = 0;
  double migration = 0;
  [[nodiscard]] double total() const { return dense + expert_sync + migration; }
};

/// Transfers that run at the same time; stages follow each other.
struct Stage {
  double latency_hops = 0;        // sequential one-way latencies, of the longest transfer in the stage
  double bytes = 0;               // sent by a site = received by a site (equal sites), mean
  double busiest_pair_bytes = 0;  // the most that one ordered pair of sites exchanges
  double share_of_rounds = 1;     // 1/T for what happens every T-th round
};

struct PlanSummary {
  std::int64_t rounds = 0;
  std::int64_t steps = 0;   // optimiser steps
  bool split_step = false;  // communication between gradients and optimiser (same compute time)
  double outer_steps_per_round = 0;
  std::vector<Stage> stages;
  SentBytes sent;
};

}  // namespace fomoe::costmodel
