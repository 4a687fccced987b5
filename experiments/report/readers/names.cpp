#include "experiments/report/readers/names.hpp"

#include <sstream>
#include <vector>

namespace fomoe::report {

std::string short_key(const std::string& key) {
  if (key == "strategy.local_steps") return "K";
  if (key == "strategy.expert_overlap") return "O_e";
  return key.substr(key.rfind('.') + 1);
}

std::string short_setting(const std::string& key, const std::string& value) {
  return key == "strategy.method" ? value : short_key(key) + '=' + value;
}

std::string short_case(const std::string& name) {
  if (name.empty()) return "unchanged";
  std::istringstream words(name);
  std::string text, method;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::size_t dot = word.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) return name;
    const std::string part = short_setting(word.substr(0, equals), word.substr(equals + 1));
    // The method comes first, wherever the user wrote it.
    (word.starts_with("strategy.method=") ? method : text) += ' ' + part;
  }
  return (method + text).substr(1);
}

}  // namespace fomoe::report
