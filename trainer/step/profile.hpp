// Times real training steps of one model on this machine's device. This header does not include LibTorch.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "costmodel/inputs/step_profile.hpp"
#include "trainer/kernels/choice.hpp"
#include "trainer/step/launches.hpp"

namespace fomoe::trainer {

enum class DeviceKind { cpu, cuda };

struct ProfileOptions {
  costmodel::ModelShape model;              // sequence_length is the length to time
  std::vector<std::int64_t> local_experts;  // N_le, each 1 … N_e
  std::vector<std::int64_t> micro_batch_sequences;
  bool skip_token = false;
  DeviceKind device = DeviceKind::cpu;
  bool bf16 = false;  // fp32 otherwise
  Kernels kernels = Kernels::by_device;
  Launches launches = Launches::by_host;  // by_graph requires that graph_refused() returns an empty text
  int threads = 0;                        // 0: LibTorch's default, one per core
  std::int64_t steps = 20;
  std::int64_t warmup = 3;
  // limit in seconds for the timed steps of one point; kFewestSteps are always timed
  double time_budget_s = 60;
  // Several processes are timed on one device on purpose. Each point takes time_budget_s with its
  // preparation, whatever `steps` is, so that processes that start together are at the same point at the same
  // time, and none ends before the others. Steps of the first quarter of that time are not counted, in which
  // others may still prepare theirs.
  bool shared_device = false;
  std::uint64_t seed = 42;
};

inline constexpr std::int64_t kFewestSteps = 3;

/// Measures one point for each micro-batch size and number of local experts; the number of experts varies
/// fastest. The site holds the first N_le experts of each layer, tokens are uniformly random, and the weights
/// are those of an untrained model. The time of a step does not change during training, but the share of
/// ghosts is that of an untrained router, which has no preferences.
///
/// A step has three timed parts:
///   - forward: Hidden states, loss, and the gradients of the unembedding, which are computed while its
///     logits are in memory (see cross_entropy.hpp). With a large vocabulary, these gradients are most of
///     what is usually counted as backward.
///   - backward: The rest of the backward pass.
///   - optimizer: AdamW, dropping the gradients, and casting the bf16 copies.
///
/// peak_memory_bytes: on CUDA the largest amount that LibTorch's allocator had allocated; on a CPU the
/// largest resident set of the process (VmHWM) during the point, libraries included.
costmodel::StepProfile measure_profile(const ProfileOptions& options, std::ostream& progress);

/// Whether a point cannot be trusted: threads waited for cores, or the middle half of its steps spreads over
/// more than a quarter of the median, so that something else must have taken turns with them.
/// measure_profile() measures such points again after all others, up to twice, when what disturbed them may
/// be over, unless the device is shared on purpose: points that are timed after the other processes have
/// ended are not those of a shared device.
bool doubtful(const costmodel::ProfilePoint& point);

/// The reason why steps with these options cannot be recorded; empty if they can.
std::string graph_refused(const ProfileOptions& options);

}  // namespace fomoe::trainer
