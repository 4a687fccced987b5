#pragma once
#include "trainer/rope/rope_theta.hpp"

namespace fomoe::trainer {

/// Numbers that the model's function depends on, beside its shape and its parameters.
struct ModelConstants {
  double rope_theta = kRopeTheta;
  double router_temperature = 1;  // a gate is the sigmoid of its score ÷ temperature
  friend bool operator==(const ModelConstants&, const ModelConstants&) = default;
};

}  // namespace fomoe::trainer
