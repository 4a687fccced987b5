// The regions into which hierarchical methods and collectives divide the sites.
#pragma once
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::costmodel {

/// The region of each site, as indices from 0 to `regions` − 1: the regions that the platform names, in the
/// order in which its sites name them, if these are as many and have equally many sites; otherwise equally
/// many consecutive sites each.
std::vector<int> regions_of_sites(const platforms::Platform& platform, int regions);

/// Which sites are in which region, and why; a sentence without a full stop.
std::string regions_note(const platforms::Platform& platform, int regions);

}  // namespace fomoe::costmodel
