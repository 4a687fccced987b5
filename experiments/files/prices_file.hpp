// Reads price files: prices of GPUs, egress, ports and electricity, for sites selected by a prefix of their
// names.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/prices.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// `pricing` of each site is "on_demand", "spot" or "owned". If several rows match a site's name, the row
/// with the longest prefix counts. Throws FileError if the file is wrong or has no such GPU price for a site.
costmodel::Prices read_price_file(const std::string& path, const std::vector<std::string>& pricing,
                                  const platforms::Platform& platform);

}  // namespace fomoe::scenario
