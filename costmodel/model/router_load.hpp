// Router load: the imbalance among experts and among the sites that hold them, the rows that a capacity limit
// drops and the padding of its buffers.
//
// A row is the activation of one token for one of the k experts of this token. There are N_e experts in a
// layer and M sites. All loads are multiples of the mean load, which is tokens·k/N_e rows for an expert, or
// tokens·k/M rows for a site. The router models are:
//
//   - uniform: Every expert has load 1.
//   - measured: Counts of the user's own router, by layer and expert. They replace uniform and hash.
//   - hash: The expert of each row is drawn independently (Roller et al. 2021, Hash Layers). The fullest of n
//     equal bins has load 1 + sqrt(2 ln n · n/rows) (Raab and Steger 1998, heavily loaded case).
//   - expert_choice: Each expert chooses its rows (Zhou et al. 2022). Its load is the capacity factor, and
//     nothing is dropped.
//
// A capacity factor c gives every expert a buffer of c mean loads, which is sent and computed whole (GShard,
// Lepikhin et al. 2020; Switch, Fedus et al. 2021). Rows beyond the buffer are dropped; empty places are
// padding. Without a capacity factor (0) every row is computed and none is padded (MegaBlocks, Gale et al.
// 2022).
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Loads of one layer, in mean loads.
struct LayerLoad {
  double busiest_expert = 1;  // rows that the busiest expert computes, padding included
  std::vector<double> sites;  // rows that each site computes; a site holds N_e/M consecutive experts
  double dropped_share = 0;   // rows that no expert computes ÷ rows that the router asked for
  double padded_share = 0;    // padding ÷ rows that are sent and computed
  [[nodiscard]] double mean_site_rows() const;
  [[nodiscard]] double busiest_site_rows() const;
};

/// Load of one layer with `rows` rows. If `counts` is not empty, it has the counts of a measured router,
/// which replace the router model except for expert_choice.
LayerLoad layer_load(RouterModel router, double capacity_factor, const std::vector<double>& counts,
                     int experts, int sites, double rows);

/// Load of every layer of the scenario in one optimiser step; a single entry if all layers are equal.
std::vector<LayerLoad> router_loads(const Scenario& scenario);

}  // namespace fomoe::costmodel
