// Counts and shapes of a scenario: the first stage of what it resolves to (formula/resolved.hpp). Parameters,
// FLOPs, memory and the parts of the batch, for each site or once for all sites that are alike.
#pragma once
#include <cstddef>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// GPUs and model of one site, or of all sites if they are alike.
struct SiteCounts {
  SiteModel model;
  SiteLoad load;             // with the longest part of the batch
  double few = 0, many = 0;  // sequences of a site in a step: ⌊batch ÷ sites⌋ and ⌈batch ÷ sites⌉ if alike
  double share_of_few = 0;       // share of the sites that have `few` sequences
  double share_of_training = 1;  // sites that this one stands for ÷ sites of the platform, if they train
  double used_experts = 0;       // of a layer, whose work it does, mean over the layers (local_tokens.hpp)
  /// Of the dense part, and of the experts that the method places on the site.
  double dense_elements = 0, expert_elements = 0;
  FlopsPerToken flops_per_token;
  GpuNeed need_of_gpu;        // memory of the fullest GPU
  double bytes_per_site = 0;  // memory of all GPUs
};

struct Counts {
  const Method* method = nullptr;
  Axes axes;
  Fixed fixed;
  bool alike = true;  // all sites have the same GPUs, step times, shares of the batch, and as many experts
  std::vector<SiteCounts> sites;  // one if the sites are alike, otherwise one for each
  std::size_t fullest = 0;        // the one of them whose GPUs are fullest, relative to their memory
  double flops_per_token = 0;     // mean over the tokens of all sites
  double mean_sequences = 0;      // of a site that trains, in a step

  [[nodiscard]] const SiteCounts& at(int site) const {
    return sites[alike ? 0 : static_cast<std::size_t>(site)];
  }
  [[nodiscard]] const SiteCounts& fullest_site() const { return sites[fullest]; }
};

Counts counts_of(const Scenario& scenario);

}  // namespace fomoe::costmodel
