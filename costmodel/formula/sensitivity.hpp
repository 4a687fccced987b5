// What the wall clock owes to each numeric input: each in turn 10 % less and 10 % more.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

inline constexpr double kSensitivityStep = 0.1;

struct Sensitivity {
  std::string input;      // "link rates", "strategy.local_steps"
  double less_s = 0;      // wall clock with the input 10 % less
  double more_s = 0;      // 10 % more
  double less_share = 0;  // what the input was multiplied by; whole numbers cannot be 10 % less
  double more_share = 0;
  /// Of the larger of both changes, ÷ the wall clock as it is.
  double change = 0;
};

/// All inputs that the scenario has, those that change most first. Rates and latencies change at all links
/// together. `wall_clock_s` answers for one scenario; inputs that it cannot answer for are left out.
std::vector<Sensitivity> sensitivity(const Scenario& scenario,
                                     const std::function<double(const Scenario&)>& wall_clock_s);

/// By the closed form.
std::vector<Sensitivity> sensitivity(const Scenario& scenario);

}  // namespace fomoe::costmodel
