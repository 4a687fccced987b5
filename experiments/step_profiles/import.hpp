// Imports step times from the log of another training program as a StepProfile that names its source.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/step_profiles/logs/log_reader.hpp"

namespace fomoe::step_profiles {

/// Facts about the run that a log does not state and that the user supplies.
struct RunFacts {
  costmodel::ModelShape model;
  std::optional<std::int64_t> sequence_length;  // empty: that of the log, or else of the model
  std::optional<std::int64_t> gpus;             // GPUs that compute a step together; empty: the log states it
  std::optional<std::int64_t> sequences_per_step;     // sequences over all GPUs; empty: the log states them
  std::optional<std::int64_t> micro_batch_sequences;  // empty: the log states it, or nobody does
  std::optional<costmodel::Recomputation> recomputation;  // empty: the log states it, or nobody does
  std::int64_t local_experts = 0;  // experts per layer that a site holds (N_le), if the log lacks it
  bool skip_token = false;
  /// Number of first optimiser steps to skip for each batch size and expert count. Empty: kUsualWarmup, but
  /// no step of a log that begins later in the run and would have none left.
  std::optional<std::int64_t> warmup;
  std::string device_kind = "cuda";
  std::string device_name;  // empty: the log states it
  std::string dtype;
  std::string versions, measured_at;  // free text
};
inline constexpr std::int64_t kUsualWarmup = 3;

/// Facts that neither the log nor `facts` states, as the option that states each one, what it expects, and an
/// example.
struct MissingFact {
  std::string option, expected, example;
};
std::vector<MissingFact> missing_facts(const Log& log, const RunFacts& facts);

/// Reads the runs of the log `path`. Throws FileError if it has no steps; the message says how to import the
/// log otherwise. `rest` is what follows the format in the command: "--model small …".
std::vector<Log> read_runs(const LogFormat& format, const std::string& path, const Columns& columns,
                           const std::string& rest);
/// The run with this number from 1, or the only one. Throws FileError with a list of the runs if there are
/// several and none is chosen.
const Log& chosen_run(const std::vector<Log>& runs, const std::string& path,
                      std::optional<std::int64_t> number);

struct Imported {
  costmodel::StepProfile profile;
  std::vector<std::string> notes;  // for the user: what was decided or is not known
};

/// Imports the training steps of the log `path`. The profile has one point for each pair of batch size and
/// number of local experts in the log. Throws FileError if the log contradicts `facts` or trained another
/// model. No fact may be missing.
Imported import_profile(const LogFormat& format, const std::string& path, const Log& log, RunFacts facts);

}  // namespace fomoe::step_profiles
