// Imports step times from the log of another training program as a StepProfile that names its source.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/step_profiles/log_reader.hpp"

namespace fomoe::step_profiles {

/// Facts about the run that a log does not state and that the user supplies.
struct RunFacts {
  costmodel::ModelShape model;                     // sequence_length is that of the training
  std::int64_t gpus = 1;                           // GPUs that compute a step together
  std::optional<std::int64_t> sequences_per_step;  // sequences over all GPUs; empty: the log states them
  std::int64_t local_experts = 0;  // experts per layer that a site holds (N_le), if the log lacks it
  bool skip_token = false;
  std::int64_t warmup = 3;  // number of first steps to skip for each batch size and expert count
  std::string device_kind = "cuda";
  std::string device_name;  // empty: the log states it
  std::string dtype;
  std::string versions, measured_at;  // free text
};

/// Imports the training steps of the log `path`. The profile has one point for each pair of micro-batch and
/// number of local experts in the log. The micro-batch of a point is one GPU's share of the sequences of a
/// step. Throws FileError if the log has no steps, contradicts `facts`, or lacks information that `facts`
/// does not give either.
costmodel::StepProfile import_profile(const LogFormat& format, const std::string& path,
                                      const RunFacts& facts);

}  // namespace fomoe::step_profiles
