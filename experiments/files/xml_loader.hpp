// The loader for SimGrid platform files (.xml). This library does not link SimGrid, so a program that links
// SimGrid registers its loader here.
#pragma once
#include <functional>
#include <string>

#include "platforms/choose_sites.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

using XmlPlatformLoader =
    std::function<platforms::Platform(const std::string& path, const platforms::UsedSites& used)>;

/// Sets the loader for the whole program. Call it before the first scenario is read.
void use_xml_platform_loader(XmlPlatformLoader loader);

bool is_xml_platform(const std::string& path);
/// Throws FileError, also if no loader was set.
platforms::Platform read_xml_platform(const std::string& path, const platforms::UsedSites& used = {});

}  // namespace fomoe::scenario
