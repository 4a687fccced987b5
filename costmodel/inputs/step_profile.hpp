// Measured training-step times of one model on one device, and what a scenario may conclude from them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

/// One timed step of one micro-batch, in seconds. The three parts do not overlap.
struct StepSample {
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
};

/// All samples taken at one setting; warm-up steps are not among them.
struct ProfilePoint {
  std::int64_t micro_batch_sequences = 0;
  std::int64_t local_experts = 0;  // N_le, experts held in each layer
  bool skip_token = false;         // the router scores all N_e experts, ghosts are dropped
  std::int64_t peak_memory_bytes = 0;
  std::vector<StepSample> samples;
};

/// Where times come from that `fomoe-train profile` did not take here, and what was assumed of them.
struct ProfileOrigin {
  std::string kind;    // "torchtitan", "megatron", "nanotron", "kineto", "csv", "pytorch-eager", …
  std::string file;    // the log they were read from; empty where a program timed them itself
  std::string sha256;  // of that file
  std::string lines;   // of that file, "7-96, 45 of them"
  std::int64_t warmup_dropped = 0;  // samples of each point that were left out as warm-up
  std::int64_t gpus = 1;            // that took the step together; a point's sequences are one GPU's share
  /// Only whole steps were timed: a third is taken for forward, the rest for backward, nothing for the
  /// optimiser.
  bool whole_steps = false;
  std::string composed;  // how the times follow from those of fewer layers; empty: the whole model was timed
  std::string scaled;    // how the times were converted to this device from another's; empty: they were not
};

struct StepProfile {
  ModelShape model;         // sequence_length: the length that was timed
  std::string device_kind;  // "cpu" or "cuda"
  std::string device_name;
  int threads = 0;                                     // CPU threads used
  std::string dtype;                                   // of the matrix multiplications: "fp32" or "bf16"
  std::string versions;                                // library and driver, in words
  std::string measured_at;                             // UTC, ISO 8601
  std::string source;                                  // file it was read from, or the command that made it
  std::optional<ProfileOrigin> origin = std::nullopt;  // nothing: timed by `fomoe-train profile`
  std::vector<ProfilePoint> points;
};

/// What a report says of steps from this profile: measured, where they were neither scaled from another
/// device nor `extrapolated` from other expert counts, and what was assumed besides.
std::vector<Provenance> step_provenance(const StepProfile& profile, bool extrapolated);

/// Median over samples of each part.
StepSample median_step(const ProfilePoint& point);

struct StepEstimate {
  StepSample micro_batch;     // one micro-batch forward and backward; optimizer_s once per step
  bool extrapolated = false;  // outside the local-expert counts that were measured
};

/// Step of `micro_batch_sequences` with `local_experts`, linear between the measured expert counts and
/// along the nearest segment outside them. Throws InputError("compute.profile") where the profile has no
/// point of that micro-batch and skip_token.
StepEstimate estimate_step(const StepProfile& profile, std::int64_t micro_batch_sequences,
                           std::int64_t local_experts, bool skip_token);

}  // namespace fomoe::costmodel
