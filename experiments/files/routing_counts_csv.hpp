// Routing counts as a CSV file: layer,expert,site,count.
#pragma once
#include <string>

#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/inputs/routing_counts.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Layers (of all layers, those without experts included) and experts count from 0; sites go by their names.
/// Combinations without a row count 0. Throws FileError at the line that is wrong.
costmodel::RoutingCounts read_routing_counts(const std::string& path, const costmodel::ModelShape& model,
                                             const platforms::Platform& platform);

}  // namespace fomoe::scenario
