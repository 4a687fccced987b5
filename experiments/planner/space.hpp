// What `fomoe plan` tries: for every method the usual keys that change it, each with its values; others by
// --vary.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/sweep/axis.hpp"

namespace fomoe::planner {

struct Question {
  std::string scenario_path;
  std::vector<std::string> overrides;  // of --set and --seed
  std::vector<sweep::Axis> vary;       // of --vary: these replace what would be tried, or add to it
};

/// Candidates of one method: all combinations of its axes.
struct Family {
  const costmodel::Method* method = nullptr;
  std::vector<std::string> overrides;  // method and kind of placement
  sweep::Grid grid;
  std::vector<double>
      wire_bytes;  // of an element, by the digit of strategy.payload_dtype, or the one there is
};

struct Space {
  std::vector<Family> families;
  std::vector<std::string> tried;  // in words, one line for each axis
  bool names_sites = false;        // candidates say platform.use_sites, and platform.sites is no longer meant
  [[nodiscard]] double candidates() const;
};

/// `base` is the question's scenario as it is. Methods that cannot be compared with its kind of step time are
/// left out; `tried` says so.
Space candidate_space(const costmodel::Scenario& base, const Question& question);

}  // namespace fomoe::planner
