// Scenario files: TOML in, a legal costmodel::Scenario out, units converted here and nowhere else.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/compose/check.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::scenario {

/// Every key is legal by itself, and together they are not; `reason` is the message without its place.
class CombinationError : public FileError {
 public:
  CombinationError(const std::string& place, std::string reason)
      : FileError(place + ": " + reason), reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

struct ReadOptions {
  std::vector<std::string> overrides;  // "strategy.local_steps=64"; a bare word is a string
  std::optional<std::uint64_t> seed;   // wins over the file's
  /// false: a profile file that does not exist is no error, and whether the profile fits is not checked, so
  /// that the program that measures it can read the scenario first.
  bool compute_required = true;
  /// false: every key is checked by itself, and costmodel::check() of them together is left to the caller.
  bool check_together = true;
};

/// Reads and checks the whole file, the step profile and platform file it names (relative to it) included.
costmodel::Scenario read_scenario(const std::string& path, const ReadOptions& options = {});

}  // namespace fomoe::scenario
