// Timing real training steps of one model on this machine's device. No LibTorch in this header.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "costmodel/step_profile.hpp"
#include "trainer/kernels/choice.hpp"
#include "trainer/launches.hpp"

namespace fomoe::trainer {

enum class DeviceKind { cpu, cuda };

struct ProfileOptions {
  costmodel::ModelShape model;              // sequence_length: the length to time
  std::vector<std::int64_t> local_experts;  // N_le, each 1 … N_e
  std::vector<std::int64_t> micro_batch_sequences;
  bool skip_token = false;
  DeviceKind device = DeviceKind::cpu;
  bool bf16 = false;  // fp32 otherwise
  Kernels kernels = Kernels::by_device;
  Launches launches = Launches::by_host;  // by_graph: only where graph_refused() says nothing
  int threads = 0;                        // 0: what LibTorch takes, one per core
  std::int64_t steps = 20;
  std::int64_t warmup = 3;
  double time_budget_s = 60;  // per point, of timed steps; at least 3 steps are timed whatever it says
  std::uint64_t seed = 42;
};

inline constexpr std::int64_t kFewestSteps = 3;

/// One point for each micro-batch and local-expert count, in that nesting. The experts held are the first
/// N_le of each layer, tokens are uniform, and the weights are those of a fresh model: steps of a
/// dense-routed transformer take as long at the start as later, but the share of ghosts is that of an
/// unbiased router.
///
/// forward: hidden states, loss, and the unembedding's gradients, which are computed while its logits are at
/// hand (see cross_entropy.hpp): most of what a textbook counts as backward where the vocabulary is large.
/// backward: the rest. optimizer: AdamW, gradients dropped, bf16 copies cast.
///
/// peak_memory_bytes: on CUDA the most that LibTorch's allocator had handed out; on CPU the process's largest
/// resident set (VmHWM) during the point, libraries included.
costmodel::StepProfile measure_profile(const ProfileOptions& options, std::ostream& progress);

/// Why steps with these options cannot be recorded, in words; empty where they can.
std::string graph_refused(const ProfileOptions& options);

}  // namespace fomoe::trainer
