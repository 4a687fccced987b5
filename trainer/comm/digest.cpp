#include "trainer/comm/digest.hpp"

#include <map>
#include <nlohmann/json.hpp>

namespace fomoe::trainer {

using nlohmann::ordered_json;

std::optional<std::string> first_difference(const Digest& digest, const Digest& other) {
  const std::map<std::string, std::string> values(other.begin(), other.end()),
      own(digest.begin(), digest.end());
  for (const auto& [name, value] : digest) {
    const auto found = values.find(name);
    const std::string theirs = found == values.end() ? "nothing" : found->second;
    if (theirs != value) return name + " (" + theirs + " instead of " + value + ")";
  }
  for (const auto& [name, value] : other) {
    if (!own.contains(name)) return name + " (" + value + " instead of nothing)";
  }
  return std::nullopt;
}

std::string to_json(const Digest& digest) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, value] : digest) out[name] = value;
  return out.dump();
}

Digest digest_from_json(const std::string& text) {
  Digest digest;
  const ordered_json parsed = ordered_json::parse(text);
  for (const auto& [name, value] : parsed.items()) digest.emplace_back(name, value.get<std::string>());
  return digest;
}

}  // namespace fomoe::trainer
