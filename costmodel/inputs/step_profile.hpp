// Measured training-step times of one model on one device, and the step times that are estimated from them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/enum_names.hpp"
#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/inputs/wire_format.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

/// One timed step of one micro-batch, in seconds. The three parts do not overlap.
struct StepSample {
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
};

/// What a log's figure of peak memory counts: bytes that the allocator had handed out, or that it had
/// reserved.
enum class MemoryCounter { allocated, reserved };
constexpr auto enum_names(MemoryCounter) {
  return std::to_array<EnumName<MemoryCounter>>(
      {{MemoryCounter::allocated, "allocated"}, {MemoryCounter::reserved, "reserved"}});
}

/// All samples taken at one setting, without warm-up steps.
struct ProfilePoint {
  std::int64_t micro_batch_sequences =
      0;                           // of one forward and backward pass; 0: a log that does not state it
  std::int64_t local_experts = 0;  // N_le, experts per layer on the device
  bool skip_token = false;         // the router scores all N_e experts and skips the absent ones
  std::int64_t peak_memory_bytes = 0;
  std::vector<StepSample> samples;
  /// Seconds in which the gradients of one micro-batch are added to the sums of a step of several; empty: not
  /// measured. The samples are steps of one micro-batch, which need no such sums.
  std::optional<double> accumulation_s = std::nullopt;
  /// CPU time ÷ (elapsed time · threads) while the samples were taken, on a CPU alone, and the share of that
  /// time in which threads wanted a core and had none, because of other programs or of a CPU quota. On a GPU
  /// one thread launches the steps. Empty: unknown.
  std::optional<double> cpu_share = std::nullopt, waited_share = std::nullopt;
  /// On a GPU: share of the time of the steps in which they waited for the device, which other programs had
  /// (beyond_fastest()). Empty: unknown.
  std::optional<double> device_waited_share = std::nullopt;
  /// One GPU's share of the sequences whose time the samples are. It is a fraction if GPUs share sequences
  /// (tensor, pipeline and context parallelism). Empty: micro_batch_sequences, as `fomoe-train profile` times
  /// them.
  std::optional<double> sequences_per_gpu = std::nullopt;
  /// Micro-batches of one replica in a sample (gradient accumulation); 0: not known.
  std::int64_t micro_batches = 0;
  MemoryCounter memory_counter = MemoryCounter::allocated;  // of peak_memory_bytes

  /// One GPU's share of the sequences of a sample.
  [[nodiscard]] double timed_sequences() const {
    return sequences_per_gpu.value_or(static_cast<double>(micro_batch_sequences));
  }
};

/// Whether the point's threads waited so long for cores, or its steps for the device, that its times are not
/// those of the model: a thread that waits makes all others wait at the end of each parallel loop.
bool disturbed(const ProfilePoint& point);

/// Share of the time of all steps that is beyond that of their fastest tenth. A GPU does not say for how long
/// it served other programs; the fastest steps are those that had it for themselves. So this is the least
/// share: programs that take equal turns with every step make all steps equally long.
double beyond_fastest(const std::vector<StepSample>& steps);

/// Activation checkpointing of the run whose steps were timed. The timed backward pass includes what it
/// repeats. unstated: a profile of an earlier version, which does not say.
enum class Recomputation { none, selective, full, unstated };
constexpr auto enum_names(Recomputation) {
  return std::to_array<EnumName<Recomputation>>({{Recomputation::none, "none"},
                                                 {Recomputation::selective, "selective"},
                                                 {Recomputation::full, "full"},
                                                 {Recomputation::unstated, "unstated"}});
}

/// Origin of step times that `fomoe-train profile` did not take on this device, and the assumptions made
/// about them.
struct ProfileOrigin {
  std::string kind;    // "torchtitan", "megatron", "nanotron", "kineto", "csv", "pytorch-eager", …
  std::string file;    // the log with the times; empty if a program timed them itself
  std::string sha256;  // hash of `file`
  std::string lines;   // lines of `file` that were used: "7-96, 45 of them"
  std::int64_t warmup_dropped = 0;  // samples of each point that were discarded as warm-up
  /// GPUs that executed the step together; a point's sequences are one GPU's share. With more than one GPU,
  /// the times include the communication among them.
  std::int64_t gpus = 1;
  /// Parallel degrees of the run; GPUs ÷ their product is the number of its replicas.
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1, context_parallel = 1;
  Recomputation recomputation = Recomputation::none;
  /// Only whole steps were timed: a third of the time counts as forward, the rest as backward, and the
  /// optimiser has none of its own.
  bool whole_steps = false;
  /// How the times were composed from those of fewer layers; empty: the whole model was timed.
  std::string composed;
  std::string scaled;  // how the times were converted from another device; empty: they were measured here
};

/// States that these times are no longer what the same steps take, so that nobody plans with them unawares.
struct Superseded {
  std::string date;    // of the statement, "2026-11-26"
  std::string reason;  // "measured before the embedding was padded"
  std::string
      difference;  // what is known of it: "a step of the medium model now takes 71 ms instead of 138 ms"
};

/// What a site does for a synchronisation apart from the network, timed with the profile's model on its
/// device.
struct SynchronisationTimes {
  /// Payloads in one format, without other processing: bytes sent ÷ time in which two sites read the values,
  /// encode them, copy them from a GPU to the host and back, decode and add them, and write the result.
  struct PayloadRate {
    ElementType dtype = ElementType::bf16;
    double bytes_per_s = 0;
  };
  std::vector<PayloadRate> payload_rates;
  /// An outer step with Nesterov momentum.
  double outer_step_s_per_parameter = 0;
  /// Top-k, where 64 in 4096 elements are sent, each with its position, as bf16: the time for choosing them
  /// and encoding them once, and for decoding and adding the payload of another site, per element of which
  /// they were chosen.
  struct Sparse {
    double choose_s_per_element = 0, add_s_per_element = 0;
  };
  std::optional<Sparse> sparse = std::nullopt;  // empty: not measured
};

struct StepProfile {
  ModelShape model;         // its sequence_length is the length that was timed
  std::string device_kind;  // "cpu" or "cuda"
  std::string device_name;
  int threads = 0;          // CPU threads used
  std::string dtype;        // type of the matrix multiplications: "fp32" or "bf16"
  std::string versions;     // library and driver versions
  std::string measured_at;  // UTC, ISO 8601
  /// Other processes used the device while the steps were timed, on purpose: the times are those of trainings
  /// that share it in the same way.
  bool shared_device = false;
  /// The file of the profile, or the command that measured it.
  std::string source;
  std::optional<ProfileOrigin> origin = std::nullopt;  // empty: timed by `fomoe-train profile`
  std::optional<Superseded> superseded = std::nullopt;
  std::optional<SynchronisationTimes> synchronisation = std::nullopt;  // empty: not measured
  std::vector<ProfilePoint> points;
};

/// The measured rate of payloads in this format, in bytes per second. Empty if it was not measured. fp16
/// takes as long as bf16. The values of a sparse payload are chosen once for all `others` that get it.
std::optional<double> payload_bytes_per_s(const StepProfile& profile, const WireFormat& format, int others);

/// A sentence that says by what the profile is superseded; empty if it is not.
std::string superseded_text(const StepProfile& profile);
/// A sentence that says which points were disturbed; empty if none was, or if the device was shared on
/// purpose.
std::string disturbed_text(const StepProfile& profile);

/// Whether several GPUs executed the timed steps together, so that the times include their communication.
inline bool executed_together(const StepProfile& profile) {
  return profile.origin && profile.origin->gpus > 1;
}
/// Whether the timed steps repeat forward passes because of activation checkpointing.
inline bool recomputes(const StepProfile& profile) {
  return profile.origin && (profile.origin->recomputation == Recomputation::full ||
                            profile.origin->recomputation == Recomputation::selective);
}

/// A step as long as the median step, divided into its three parts in proportion to their medians.
StepSample median_step(const ProfilePoint& point);

/// Points of the steps with this micro-batch. Steps of a log serve any micro-batch, since a scenario may
/// correct what the log says or does not say of it; among several batch sizes of a log, those of the largest
/// are taken. Empty if `fomoe-train profile` did not time this micro-batch.
std::vector<const ProfilePoint*> points_of(const StepProfile& profile, std::int64_t micro_batch_sequences,
                                           bool skip_token);
/// The micro-batch of the point with the most sequences: the default of compute.micro_batch_sequences.
std::int64_t usual_micro_batch(const StepProfile& profile);

struct StepEstimate {
  StepSample micro_batch;              // forward and backward of `sequences`; optimizer_s once per step
  bool extrapolated = false;           // local_experts is outside the measured range
  double accumulation_s = 0;           // see ProfilePoint; 0 if it was not measured
  double sequences = 1;                // one GPU's share of the sequences that `micro_batch` takes
  std::int64_t timed_micro_batch = 0;  // micro-batch of the timed steps; 0: not known
  /// See ProfilePoint: the larger ones of the points from which the step is estimated; 0 if unknown.
  double waited_share = 0, device_waited_share = 0;
};

/// Step time of a micro-batch of `micro_batch_sequences` with `local_experts` experts per layer: linear
/// between the measured expert counts, and along the nearest segment outside them. `local_experts` may be a
/// mean over layers. Throws InputError("compute.profile") if the profile has no such points (points_of()).
StepEstimate estimate_step(const StepProfile& profile, std::int64_t micro_batch_sequences,
                           double local_experts, bool skip_token);

/// What is said beside step times of which other programs took a part: "timed while other processes shared
/// the device on purpose", and shares of the time from half a percent. Empty without either.
std::string sharing_text(const StepProfile& profile, double waited_share, double device_waited_share);

/// The report's statement about step times from this profile and their assumptions. They are "measured"
/// unless they were scaled from another device or extrapolated from other expert counts. It says for how much
/// of the time the steps waited for cores and for the device.
std::vector<Provenance> step_provenance(const StepProfile& profile, const StepEstimate& estimate);

}  // namespace fomoe::costmodel
