#include "costmodel/plan/regions.hpp"

#include <algorithm>

namespace fomoe::costmodel {

namespace {

/// The regions that the sites name, in order; empty if one of them names none.
std::vector<std::string> named_regions(const platforms::Platform& platform) {
  std::vector<std::string> names;
  for (const platforms::Site& site : platform.sites) {
    if (site.region.empty()) return {};
    if (std::find(names.begin(), names.end(), site.region) == names.end()) names.push_back(site.region);
  }
  return names;
}

std::size_t index_in(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// Whether the named regions are the strategy's: as many, and equally many sites in each.
bool of_platform(const platforms::Platform& platform, int regions, const std::vector<std::string>& names) {
  if (static_cast<int>(names.size()) != regions) return false;
  std::vector<int> sites(names.size(), 0);
  for (const platforms::Site& site : platform.sites) ++sites[index_in(names, site.region)];
  return std::all_of(sites.begin(), sites.end(), [&](int count) { return count == sites.front(); });
}

}  // namespace

std::vector<int> regions_of_sites(const platforms::Platform& platform, int regions) {
  const std::vector<std::string> names = named_regions(platform);
  const bool named = of_platform(platform, regions, names);
  std::vector<int> found;
  for (int site = 0; site < platform.size(); ++site)
    found.push_back(
        named ? static_cast<int>(index_in(names, platform.sites[static_cast<std::size_t>(site)].region))
              : site * regions / platform.size());
  return found;
}

std::string regions_note(const platforms::Platform& platform, int regions) {
  const std::vector<std::string> names = named_regions(platform);
  const std::vector<int> found = regions_of_sites(platform, regions);
  std::string text = "the " + std::to_string(regions) + " regions are ";
  if (platform.size() > 32) {
    text += "groups of " + std::to_string(platform.size() / regions) + " sites";
  } else {
    for (int region = 0; region < regions; ++region) {
      std::string members;
      for (int site = 0; site < platform.size(); ++site) {
        if (found[static_cast<std::size_t>(site)] != region) continue;
        members += (members.empty() ? "" : ", ") + platform.sites[static_cast<std::size_t>(site)].name;
      }
      text += (region == 0 ? "" : "; ") + members;
    }
  }
  if (of_platform(platform, regions, names)) return text + ": those that the platform gives";
  if (names.empty())
    return text + ": consecutive sites, since the platform gives no region to some or all of them";
  return text + ": consecutive sites, since the platform gives " + std::to_string(names.size()) +
         " regions, which are not " + std::to_string(regions) + " of equal size";
}

}  // namespace fomoe::costmodel
