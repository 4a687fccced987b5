// Paced runs: each computation is replaced by a sleep of the duration that the scenario's profile or step
// time gives, while transfers are real. Paced runs compare the simulated network with a real one and need no
// GPUs.
#pragma once
#include <cstdint>
#include <functional>

#include "costmodel/compute/operation_seconds.hpp"

namespace fomoe::trainer {

class Pacing {
 public:
  /// `scenario` and `plan` must outlive this object. Throws InputError if the scenario's profile does not
  /// fit.
  Pacing(const costmodel::Scenario& scenario, const costmodel::Plan& plan) : seconds_(scenario, plan) {}

  /// Sleeps for the duration of operation `op` of `round` at `node`. Calls `on_repeat` with the seconds of
  /// each of its repeats, when that repeat ends.
  void sleep(const costmodel::Compute& work, costmodel::NodeId node, std::int64_t round, costmodel::OpId op,
             const std::function<void(double seconds)>& on_repeat) const;

 private:
  costmodel::OperationSeconds seconds_;
};

}  // namespace fomoe::trainer
