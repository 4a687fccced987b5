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
  std::vector<std::string> overrides;  // settings that --set and --seed give
  std::vector<sweep::Axis> vary;       // axes that --vary gives; they replace or extend the usual axes
};

/// The candidates of one method: all combinations of the values on the axes of `grid`.
struct Family {
  const costmodel::Method* method = nullptr;
  std::vector<std::string> overrides;  // settings of the method and of the kind of placement
  sweep::Grid grid;
  /// Bytes per element on the wire for each value of the axis strategy.payload_dtype, in the order of the
  /// axis. If the grid does not have this axis, there is only one entry.
  std::vector<double> wire_bytes;
};

struct Space {
  std::vector<Family> families;
  std::vector<std::string> methods;  // the names of the tried methods
  std::vector<std::string> tried;    // description of the tried values, one line for each axis
  /// Whether candidates set platform.use_sites, which makes platform.sites irrelevant.
  bool names_sites = false;
  [[nodiscard]] double candidates() const;
};

/// `base` is the question's unchanged scenario. If the scenario gives a fixed step time, methods that would
/// need another step time are left out, and `tried` names them.
Space candidate_space(const costmodel::Scenario& base, const Question& question);

}  // namespace fomoe::planner
