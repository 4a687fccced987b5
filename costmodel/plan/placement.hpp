// Which workers hold which experts.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Every expert of every layer on exactly `overlap` workers; every worker holds exactly N_le = O_e·N_e/M
/// distinct experts of each layer (FoMoE paper, "Expert placement modes").
class Placement {
 public:
  Placement(int layers, int experts, int workers, int overlap);

  [[nodiscard]] int layers() const { return layers_; }
  [[nodiscard]] int experts() const { return experts_; }
  [[nodiscard]] int workers() const { return workers_; }
  [[nodiscard]] int overlap() const { return overlap_; }

  /// Sorted ids of the O_e workers that hold the expert.
  [[nodiscard]] std::span<const int> owners(int layer, int expert) const;
  /// Sorted ids of the N_le experts that the worker holds in the layer.
  [[nodiscard]] std::vector<int> local_experts(int layer, int worker) const;

  std::span<int> mutable_owners(int layer, int expert);

 private:
  int layers_, experts_, workers_, overlap_;
  std::vector<int> owners_;  // [layer][expert][overlap]
};

/// The same in every layer: consecutive blocks of O_e workers where O_e divides M, else a cyclic pattern.
Placement fixed_placement(int layers, int experts, int workers, int overlap);

/// Drawn anew for each (seed, epoch); each (expert, worker) pair has probability O_e/M.
Placement random_placement(int layers, int experts, int workers, int overlap, std::uint64_t seed,
                           std::uint64_t epoch);

/// One expert that a worker must fetch, and the owner that sends it.
struct Migration {
  int layer, expert, sender, receiver;
};

/// What must move from one placement to the next. Each receiver is served by the old owner that has been
/// given the least to send so far (lowest id on a tie), which balances senders greedily.
std::vector<Migration> migrations(const Placement& from, const Placement& to);

}  // namespace fomoe::costmodel
