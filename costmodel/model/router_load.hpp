// How unevenly a router loads experts and the sites that hold them, what a capacity limit drops, and what its
// buffers pad.
//
// A row is the activation of one token for one of its k experts. Loads are in mean loads: 1 is tokens·k/N_e
// rows of an expert, tokens·k/M of a site.
//   uniform        every expert has load 1
//   measured       counts of the user's own router, by layer and expert, whatever the router model
//   hash           a row's expert is drawn independently (Roller et al. 2021, Hash Layers): the fullest of n
//                  equal bins has load 1 + sqrt(2 ln n · n/rows) (Raab and Steger 1998, heavily loaded case)
//   expert_choice  each expert picks its rows (Zhou et al. 2022): load = capacity factor, nothing to drop
// A capacity factor c gives every expert a buffer of c mean loads, sent and computed whole (GShard, Lepikhin
// et al. 2020; Switch, Fedus et al. 2021): rows beyond it are dropped, empty places are padding. Without one
// (0) every row is computed and none padded (MegaBlocks, Gale et al. 2022).
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Of one layer.
struct LayerLoad {
  double busiest_expert = 1;  // rows computed, padding included
  std::vector<double> sites;  // the same of each site; a site holds N_e/M consecutive experts
  double dropped_share = 0;   // rows that nobody computes ÷ rows that the router asked for
  double padded_share = 0;    // of what is sent and computed
  [[nodiscard]] double mean_site_rows() const;
  [[nodiscard]] double busiest_site_rows() const;
};

/// Counts, where there are any, take the place of the router's model.
LayerLoad layer_load(RouterModel router, double capacity_factor, const std::vector<double>& counts,
                     int experts, int sites, double rows);

/// Of every layer of the scenario in one optimiser step; a single entry where all are equal.
std::vector<LayerLoad> router_loads(const Scenario& scenario);

}  // namespace fomoe::costmodel
