// Fields of the config.json beside weights, by the names that most architectures use.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/model_files/config_reader.hpp"

namespace fomoe::scenario {

/// The config's object for the language model, and the usual names of a field in it. A folder without a
/// config.json has no field.
class UsualNames {
 public:
  explicit UsualNames(const std::string& folder);
  /// The first of the names that the config has, with its value.
  [[nodiscard]] std::optional<std::pair<std::string, std::int64_t>> find(
      std::initializer_list<const char*> names) const;
  /// The first number of a list under this name.
  [[nodiscard]] std::optional<std::int64_t> first_of_list(const char* name) const;
  /// The kinds of the layers; empty if there is no list with a kind for each.
  [[nodiscard]] std::vector<std::string> kinds(std::int64_t layers) const;

 private:
  std::optional<ConfigReader> config_;
};

}  // namespace fomoe::scenario
