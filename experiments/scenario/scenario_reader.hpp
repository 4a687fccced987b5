// Reads scenario files (TOML) into a valid costmodel::Scenario. Units are converted to SI units only here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/compose/check.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::scenario {

/// The error if each key is valid by itself, but the keys contradict each other. reason() is the message
/// without its place.
class CombinationError : public FileError {
 public:
  CombinationError(const std::string& place, std::string reason)
      : FileError(place + ": " + reason), reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

struct ReadOptions {
  /// "strategy.local_steps=64"; a value without quotes is a string. "!strategy.local_steps" removes the key.
  std::vector<std::string> overrides;
  std::optional<std::uint64_t> seed;  // overrides the seed of the file
  /// false: the profile file may be missing and is not checked against the scenario. The program that
  /// measures the profile reads its scenario this way.
  bool compute_required = true;
  /// false: each key is checked by itself, but the caller must call costmodel::check() for the combination.
  bool check_together = true;
};

/// Reads and checks the scenario file and the files that it names (relative to it), such as the step profile
/// and the platform file.
costmodel::Scenario read_scenario(const std::string& path, const ReadOptions& options = {});

/// Reads and checks only [model] of the scenario file, with these overrides.
costmodel::ModelShape read_model_of(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace fomoe::scenario
