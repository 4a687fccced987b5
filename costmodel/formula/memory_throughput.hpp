// The coupling of memory and throughput: fewer experts per site leave memory for a larger batch, which needs
// fewer synchronisations per token (FoMoE paper, "Memory-Time Coupling" and Prediction 2).
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct MemoryThroughput {
  int expert_overlap = 0;                   // O_e, the number of sites that hold each expert
  std::int64_t micro_batch_sequences = 0;   // largest that fits; 0: none fits, and the members below are 0
  std::int64_t global_batch_sequences = 0;  // of all sites, with one micro-batch on each replica
  double bytes_per_token = 0;
  double tokens_per_s = 0;  // of all sites together, by the closed form
};

/// Computes the throughput of the scenario with that O_e. The largest micro-batch that fits is each replica's
/// whole batch:
///   B_l = replicas · max{b : memory(O_e, b) ≤ gpu_memory},   tokens/s = M·K·B_l·s ÷ (K·t_step(B_l) + t_comm)
/// M is the number of sites, and K is the number of optimiser steps between two synchronisations. B_l is the
/// number of sequences of a site in one step, b those of a micro-batch, and s is the number of tokens in a
/// sequence. t_step is the time of one step, and t_comm is the communication time of one round.
///
/// While communication dominates, a smaller O_e raises tokens/s in two ways: B_l grows and t_comm falls.
/// Tokens/s then rises faster than 1/O_e. If computation dominates, the limit is MFU · peak ÷ FLOPs per
/// token, whatever the batch. Throws InputError if gpu_memory is not given, if activations are unknown, or if
/// step times do not depend on the batch.
MemoryThroughput memory_throughput(Scenario scenario, int expert_overlap);

}  // namespace fomoe::costmodel
