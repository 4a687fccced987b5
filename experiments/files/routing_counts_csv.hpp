// Reads routing counts from a CSV file with the columns layer,expert,site,count.
#pragma once
#include <string>

#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/inputs/routing_counts.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Layers and experts count from 0; layers without experts count too. Sites are named. A combination without
/// a row has count 0. Throws FileError at the wrong line.
costmodel::RoutingCounts read_routing_counts(const std::string& path, const costmodel::ModelShape& model,
                                             const platforms::Platform& platform);

}  // namespace fomoe::scenario
