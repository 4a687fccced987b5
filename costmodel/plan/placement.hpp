// Expert placement: which workers hold which experts.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Places every expert of every layer on exactly O_e = `overlap` of the M workers. Every worker holds exactly
/// N_le = O_e·N_e/M of the N_e distinct experts of each layer (FoMoE paper, "Expert placement modes"). If
/// this is no whole number, a worker holds experts_at() of them (site_shares.hpp), in every placement.
class Placement {
 public:
  Placement(int layers, int experts, int workers, int overlap);

  [[nodiscard]] int layers() const { return layers_; }
  [[nodiscard]] int experts() const { return experts_; }
  [[nodiscard]] int workers() const { return workers_; }
  [[nodiscard]] int overlap() const { return overlap_; }

  /// Sorted ids of the O_e workers that hold the expert.
  [[nodiscard]] std::span<const int> owners(int layer, int expert) const;
  /// Sorted ids of the experts that the worker holds in the layer.
  [[nodiscard]] std::vector<int> local_experts(int layer, int worker) const;

  std::span<int> mutable_owners(int layer, int expert);

 private:
  int layers_, experts_, workers_, overlap_;
  std::vector<int> owners_;  // [layer][expert][overlap]
};

/// Consecutive blocks of O_e workers if O_e divides M, otherwise a cyclic pattern. All layers have the same
/// placement if N_le is a whole number.
Placement fixed_placement(int layers, int experts, int workers, int overlap);

/// The fixed placement with other sets of owners in each layer: where O_e divides M, the blocks of layer l
/// begin at worker l mod O_e. Each worker must hold equally many experts of a layer. Where O_e does not
/// divide M, the sets of the fixed placement differ by layer already, and this one is the same.
Placement rotated_placement(int layers, int experts, int workers, int overlap);

/// A random placement that depends on (seed, epoch) only. Each worker's experts of a layer are equally likely
/// to be any: a pair (expert, worker) has probability N_le/N_e.
Placement random_placement(int layers, int experts, int workers, int overlap, std::uint64_t seed,
                           std::uint64_t epoch);

/// The transfer of one expert to a worker that needs it, from an old owner.
struct Migration {
  int layer, expert, sender, receiver;
};

/// Transfers that turn one placement into the next. Each receiver is served by the old owner that has the
/// fewest transfers so far (the lowest id on a tie), which balances the senders greedily.
std::vector<Migration> migrations(const Placement& from, const Placement& to);

}  // namespace fomoe::costmodel
