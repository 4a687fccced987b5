// Imports step times from the log of another training program as a StepProfile that names its source.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/step_profiles/log_reader.hpp"

namespace fomoe::step_profiles {

/// Facts about the run that a log does not state and that the user supplies.
struct RunFacts {
  costmodel::ModelShape model;
  std::optional<std::int64_t> sequence_length;  // empty: that of the log, or else of the model
  std::optional<std::int64_t> gpus;             // GPUs that compute a step together; empty: the log states it
  std::optional<std::int64_t> sequences_per_step;  // sequences over all GPUs; empty: the log states them
  std::optional<costmodel::Recomputation> recomputation;  // empty: the log states it, or nobody does
  std::int64_t local_experts = 0;  // experts per layer that a site holds (N_le), if the log lacks it
  bool skip_token = false;
  std::int64_t warmup = 3;  // number of first optimiser steps to skip for each batch size and expert count
  std::string device_kind = "cuda";
  std::string device_name;  // empty: the log states it
  std::string dtype;
  std::string versions, measured_at;  // free text
};

/// Facts that neither the log nor `facts` states, as the option that states each one, what it expects, and an
/// example.
struct MissingFact {
  std::string option, expected, example;
};
std::vector<MissingFact> missing_facts(const Log& log, const RunFacts& facts);

/// Reads the log `path`. Throws FileError if it has no steps.
Log read_log(const LogFormat& format, const std::string& path);

/// Imports the training steps of the log `path`. The profile has one point for each pair of micro-batch and
/// number of local experts in the log. The micro-batch of a point is one GPU's share of the sequences of a
/// step. Throws FileError if the log contradicts `facts`. No fact may be missing.
costmodel::StepProfile import_profile(const LogFormat& format, const std::string& path, const Log& log,
                                      RunFacts facts);

}  // namespace fomoe::step_profiles
