#include "experiments/model_files/library_defaults.hpp"

#include "experiments/model_files/library_defaults_json.hpp"

namespace fomoe::scenario {

LibraryDefaults library_defaults(const std::string& model_type) {
  static const Json groups = Json::parse(kLibraryDefaults);
  for (const Json& group : groups) {
    const Json& architectures = group["defaults"];
    if (architectures.contains(model_type))
      return {architectures[model_type], group["source"].get<std::string>() + " for " + model_type};
  }
  return {};
}

}  // namespace fomoe::scenario
