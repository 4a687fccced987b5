// Price files: what GPUs, egress, ports and electricity cost at sites whose names begin alike.
#pragma once
#include <string>

#include "costmodel/inputs/prices.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// `pricing` is "on_demand", "spot" or "owned". Of several rows that a site's name begins with, the longest
/// counts. Throws FileError where the file is wrong or has no such GPU price for a site.
costmodel::Prices read_price_file(const std::string& path, const std::string& pricing,
                                  const platforms::Platform& platform);

}  // namespace fomoe::scenario
