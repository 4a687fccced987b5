// The search space of `fomoe plan`: for each method the usual values of the keys that affect it, and the axes
// of --vary.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/sweep/axis.hpp"

namespace fomoe::planner {

struct Question {
  std::string scenario_path;
  std::vector<std::string> overrides;  // overrides of --set and --seed
  std::vector<sweep::Axis> vary;       // axes of --vary, which replace or extend the usual ones
};

/// The candidates of one method: all combinations of its axes.
struct Family {
  const costmodel::Method* method = nullptr;
  std::vector<std::string> overrides;  // settings of the method and of the kind of placement
  sweep::Grid grid;
  /// Bytes per element on the wire, indexed by the digit of axis strategy.payload_dtype; one entry without
  /// it.
  std::vector<double> wire_bytes;
};

struct Space {
  std::vector<Family> families;
  std::vector<std::string> tried;  // description of the tried values, one line for each axis
  /// Whether candidates set platform.use_sites, which makes platform.sites irrelevant.
  bool names_sites = false;
  [[nodiscard]] double candidates() const;
};

/// `base` is the question's unchanged scenario. Methods that cannot be compared with the scenario's kind of
/// step time are left out, and `tried` names them.
Space candidate_space(const costmodel::Scenario& base, const Question& question);

}  // namespace fomoe::planner
