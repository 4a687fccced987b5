#include "experiments/model_files/usual_names.hpp"

#include <filesystem>

#include "experiments/model_files/architecture.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {

UsualNames::UsualNames(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  if (!path_exists(path)) return;
  config_.emplace(path);
  for (const char* inner : {"thinker_config", "text_config", "llm_config", "language_config"}) {
    if (config_->has(inner)) config_ = config_->inside(inner);
  }
}

std::optional<std::pair<std::string, std::int64_t>> UsualNames::find(
    std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (!config_ || !config_->has(name)) continue;
    try {
      return std::pair(std::string(name), config_->count_of_all_layers(name));
    } catch (const FileError&) {  // a value of another kind under this name, such as one for each layer
      continue;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> UsualNames::first_of_list(const char* name) const {
  if (!config_ || !config_->has(name) || !config_->json()[name].is_array()) return std::nullopt;
  try {
    return config_->first_count(name);
  } catch (const FileError&) {
    return std::nullopt;
  }
}

std::vector<std::string> UsualNames::kinds(std::int64_t layers) const {
  if (!config_) return {};
  try {
    return layer_types(*config_, layers);
  } catch (const FileError&) {  // a pattern that repeats, or a list of other things
    return {};
  }
}

}  // namespace fomoe::scenario
