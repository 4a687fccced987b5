// Search for settings with which a site's state fits into the memory of its GPUs.
#pragma once
#include <string>
#include <vector>

#include "costmodel/counts/counts.hpp"
#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct MemoryRemedy {
  std::vector<std::string> settings;  // "compute.sharded=8"; only the settings that are necessary
  double gpu_bytes = 0;               // bytes of the fullest GPU with these settings
  bool fits = false;
};

/// With the given GPUs, tries all combinations of these settings: sharding over all replicas of the site
/// (ZeRO 3), outer state on the host, and activation checkpointing, each with the largest micro-batch that
/// fits. Of the combinations that fit, returns the one with the fastest step, which is also the cheapest run;
/// of equally fast ones, the one with the fewest settings. If none fits, all settings are combined with 2, 4,
/// … 64 times the GPUs, sharded over all replicas, and settings that this makes unnecessary are removed.
/// Skips what the scenario does not allow. Returns no settings if the state fits without them or if no GPU
/// memory is given. If sites differ, the remedy is for the site whose GPUs are fullest.
MemoryRemedy memory_remedy(const Scenario& scenario);

/// Returns a text such as "with compute.sharded=8 and compute.outer_state_on=host the model would fit
/// (66 GB)". If the state fits with none of the tried settings, the text says so. The text is empty if
/// `remedy` has no settings.
std::string remedy_text(const MemoryRemedy& remedy);

/// Returns a sentence which says that the state exceeds the memory of the fullest GPU, and which names the
/// remedy. The result is empty if the state fits or if no GPU memory is given.
std::string memory_problem(const Scenario& scenario);
std::string memory_problem(const Scenario& scenario, const Counts& counts);

}  // namespace fomoe::costmodel
