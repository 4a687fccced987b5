// Step times out of somebody else's log, as a StepProfile that says where they come from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/step_profiles/log_reader.hpp"

namespace fomoe::step_profiles {

/// What a log does not say, and whoever ran it knows.
struct RunFacts {
  costmodel::ModelShape model;                     // sequence_length: the length that was trained on
  std::int64_t gpus = 1;                           // that took a step together
  std::optional<std::int64_t> sequences_per_step;  // over all of them; nothing: the log says it
  std::int64_t local_experts = 0;                  // N_le; where the log does not say it
  bool skip_token = false;
  std::int64_t warmup = 3;  // first steps of each batch size and expert count that are left out
  std::string device_kind = "cuda";
  std::string device_name;  // empty: the log says it
  std::string dtype;
  std::string versions, measured_at;  // in words
};

/// The training steps in the log `path`. A point for each number of sequences and local experts; its
/// micro-batch is one GPU's share of a step's sequences. Throws FileError where the log has no
/// steps, contradicts `facts`, or leaves open what they do not say.
costmodel::StepProfile import_profile(const LogFormat& format, const std::string& path,
                                      const RunFacts& facts);

}  // namespace fomoe::step_profiles
