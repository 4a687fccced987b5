#include "experiments/files/xml_loader.hpp"

#include <utility>

#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::scenario {

namespace {
XmlPlatformLoader& loader_of_program() {
  static XmlPlatformLoader loader;
  return loader;
}
}  // namespace

void use_xml_platform_loader(XmlPlatformLoader loader) { loader_of_program() = std::move(loader); }

bool is_xml_platform(const std::string& path) { return path.ends_with(".xml"); }

platforms::Platform read_xml_platform(const std::string& path, const platforms::UsedSites& used) {
  if (!loader_of_program())
    fail(path, "platform", "a SimGrid platform, which this program does not read", "a platform file in TOML",
         "platforms/eight-regions.toml");
  try {
    return loader_of_program()(path, used);
  } catch (const InputError& error) {
    throw FileError(error.what());  // the message begins with the file's name
  }
}

}  // namespace fomoe::scenario
