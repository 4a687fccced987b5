// Search for settings with which a site's state fits into the memory of its GPUs.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct MemoryRemedy {
  std::vector<std::string> settings;  // "compute.sharded=8"; without unnecessary settings
  double gpu_bytes = 0;               // bytes of the fullest GPU with these settings
  bool fits = false;
};

/// Tries these settings cumulatively, in this order, until the state fits: shard over all replicas of the
/// site (ZeRO 3), outer state on the host, activation checkpointing, a micro-batch of one sequence, then 2,
/// 4, … 64 times the GPUs, sharded over all. Settings that a later one makes unnecessary are removed.
/// Settings that the scenario does not allow are skipped. Returns no settings if the state fits as it is or
/// if no GPU memory is given.
MemoryRemedy memory_remedy(const Scenario& scenario);

/// "with compute.sharded=8 and compute.outer_state_on=host the model would fit (66 GB)", or a text that none
/// of the tried settings suffices. Empty without settings.
std::string remedy_text(const MemoryRemedy& remedy);

/// Says that the state exceeds the fullest GPU's memory, with the remedy. Empty if it fits or if no GPU
/// memory is given.
std::string memory_problem(const Scenario& scenario);

}  // namespace fomoe::costmodel
