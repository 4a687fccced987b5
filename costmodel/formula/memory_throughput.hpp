// The coupling of memory and throughput: fewer experts per site leave memory for a larger batch, over which a
// synchronisation is diluted (FoMoE paper, "Memory-Time Coupling" and Prediction 2).
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct MemoryThroughput {
  int expert_overlap = 0;                   // O_e
  std::int64_t micro_batch_sequences = 0;   // the largest that fits; 0: not even one, and nothing below
  std::int64_t global_batch_sequences = 0;  // of all sites, one micro-batch on each replica
  double bytes_per_token = 0;
  double tokens_per_s = 0;  // all sites, closed form
};

/// The scenario with that O_e and with the largest micro-batch that fits as each replica's whole batch:
///   B_l = replicas · max{b : memory(O_e, b) ≤ gpu_memory},   tokens/s = M·K·B_l·s ÷ (K·t_step(B_l) + t_comm)
/// While communication dominates, tokens/s grows with B_l and with 1/t_comm at once: faster than 1/O_e. Where
/// computation does, MFU · peak ÷ FLOPs per token is the limit, whatever the batch. Throws InputError where
/// no gpu_memory is given, where activations are unknown, or where step times do not follow from the batch.
MemoryThroughput memory_throughput(Scenario scenario, int expert_overlap);

}  // namespace fomoe::costmodel
