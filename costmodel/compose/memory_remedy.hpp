// What would make a site's state fit into the memory of its GPUs.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct MemoryRemedy {
  std::vector<std::string> settings;  // "compute.sharded=8"; the fewest of those that were tried
  double gpu_bytes = 0;               // of the fullest GPU with them
  bool fits = false;
};

/// In this order, each beside those before it, until the state fits: shard over all replicas of the site
/// (ZeRO 3), outer state on the host, recompute activations, a micro-batch of one sequence, then 2, 4, … 64
/// times the GPUs, sharded over all. What the last of them makes unnecessary is left out. Settings that the
/// scenario refuses are skipped. Without settings where it fits as it is, or where no memory is given.
MemoryRemedy memory_remedy(const Scenario& scenario);

/// "with compute.sharded=8 and compute.outer_state_on=host it would fit (66 GB)", or that nothing tried does.
std::string remedy_text(const MemoryRemedy& remedy);

/// Empty, or in words that the fullest GPU's memory does not suffice, and what would help.
std::string memory_note(const Scenario& scenario);
/// How such a note begins: reports show it first.
inline constexpr const char* kDoesNotFit = "does not fit: ";

}  // namespace fomoe::costmodel
