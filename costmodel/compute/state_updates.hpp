// Seconds of the passes over a GPU's parameters that are limited by memory: the outer step, the encoding of
// payloads, AdamW, and the transfer of outer state that is kept in host memory.
//
// Each of them is a number of bytes per parameter, divided by a rate: the memory bandwidth of a GPU or, for
// outer state in host memory, that of its link to the host. One fused pass that reads and writes each value
// once is assumed, so that the times are lower bounds.
#pragma once
#include "costmodel/model/parallelism.hpp"

namespace fomoe::costmodel {

/// The inner optimiser's update with fp32 gradients and master weights, and 16-bit weights: reads 4 + 4,
/// writes 4 + 2, and reads and writes the moments once. AdamW, with 8 B of moments, has 30 B.
inline double optimizer_bytes(double moment_bytes) { return 14 + 2 * moment_bytes; }
/// A pseudo-gradient: reads the anchor and the master weights, and writes their difference, 4 B each.
inline constexpr double kPseudoGradientBytes = 12;
/// The outer step apart from its state: reads the average (4 B), and writes master weights and weights (4 + 2
/// B).
inline constexpr double kOuterUpdateBytes = 10;

/// Bytes per element of a payload of differences, and of one of parameters.
struct WireBytes {
  double difference, parameter;
};

WireBytes wire_bytes(const Strategy& strategy);

/// Bytes that an outer step moves in the memory of a GPU, per parameter: the pseudo-gradient, the outer state
/// (read and written once), the update, and the payloads, which are encoded from 4 B per element and decoded
/// to 4 B. A pair of payloads is one that is encoded and one that is decoded.
inline double outer_step_bytes(const SiteModel& model, const WireBytes& wire) {
  return kPseudoGradientBytes + kOuterUpdateBytes + 2 * model.outer_bytes_per_parameter +
         2 * model.encoded_differences * (4.0 + wire.difference) +
         2 * model.encoded_parameters * (4.0 + wire.parameter);
}

/// Parameters of a GPU whose moments and outer state it keeps. The first pipeline stage stands for all.
inline double updated_parameters(const SiteModel& model, const SiteLoad& load) {
  const StageParameters held = stage_parameters(model, load, 0);
  const ShardedDegrees degrees = sharded_degrees(model, load);
  return (held.dense / degrees.dense + held.experts / degrees.experts) * load.kept_share;
}

/// Seconds of an outer step; 0 without outer state, and if it was not measured and the memory bandwidth is
/// unknown. A measured one
/// does not include payloads, which a measured rate has.
double outer_step_seconds(const SiteModel& model, const SiteLoad& load, const WireBytes& wire);

/// Seconds in which the inner optimiser updates a replica of so many dense parameters and parameters of
/// experts; 0 if the memory bandwidth is unknown. If sites update parts of it, the plan's operations have
/// these shares of the time.
double adam_seconds(const SiteModel& model, const SiteLoad& load, double dense, double experts);

}  // namespace fomoe::costmodel
