// Platform files that end in .xml are SimGrid's. This library is free of SimGrid, so that a program that has
// it says who reads them.
#pragma once
#include <functional>
#include <string>

#include "platforms/platform.hpp"

namespace fomoe::scenario {

using XmlPlatformLoader = std::function<platforms::Platform(const std::string& path)>;

/// For the whole program, before the first scenario is read.
void use_xml_platform_loader(XmlPlatformLoader loader);

bool is_xml_platform(const std::string& path);
/// Throws FileError, also where the program has no loader.
platforms::Platform read_xml_platform(const std::string& path);

}  // namespace fomoe::scenario
