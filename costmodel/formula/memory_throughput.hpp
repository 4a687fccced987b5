// The coupling of memory and throughput: fewer experts per site leave memory for a larger batch, which needs
// fewer synchronisations per token (FoMoE paper, "Memory-Time Coupling" and Prediction 2).
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct MemoryThroughput {
  int expert_overlap = 0;                   // O_e
  std::int64_t micro_batch_sequences = 0;   // largest that fits; 0: none fits, and the members below are 0
  std::int64_t global_batch_sequences = 0;  // all sites, one micro-batch on each replica
  double bytes_per_token = 0;
  double tokens_per_s = 0;  // all sites together, by the closed form
};

/// Throughput of the scenario with that O_e, and with the largest micro-batch that fits as each replica's
/// whole batch:
///   B_l = replicas · max{b : memory(O_e, b) ≤ gpu_memory},   tokens/s = M·K·B_l·s ÷ (K·t_step(B_l) + t_comm)
/// While communication dominates, tokens/s grows with B_l and with 1/t_comm at once: faster than 1/O_e. If
/// computation dominates, the limit is MFU · peak ÷ FLOPs per token, whatever the batch. Throws InputError if
/// gpu_memory is not given, if activations are unknown, or if step times do not depend on the batch.
MemoryThroughput memory_throughput(Scenario scenario, int expert_overlap);

}  // namespace fomoe::costmodel
