#include "experiments/model_files/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "experiments/model_files/library_defaults.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/nesting.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {

namespace {

std::string content_of(const std::string& path) {
  std::optional<std::string> content = whole_file(path);
  if (!content)
    fail(path + ":1", "model.hf_config", "no readable file", "a config.json of Hugging Face",
         "hf_config = \"../models/mixtral-8x7b.json\"");
  return *std::move(content);
}

// Python writes numbers that JSON does not have, such as the limit Infinity of Mamba's time steps. No field
// that is read here may have such a value, so that null takes its place.
std::string without_infinities(const std::string& text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {  // an escaped quote ends no string
      result += text.substr(i++, 2);
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    bool replaced = false;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (in_string || replaced || text.compare(i, word.size(), word) != 0) continue;
      result += "null";
      i += word.size() - 1;
      replaced = true;
    }
    if (!replaced) result += text[i];
  }
  return result;
}

}  // namespace

ConfigReader::ConfigReader(const std::string& path) : path_(path), text_(content_of(path)) {
  const auto refuse = [&](const std::string& got) {
    fail(path_ + ":1", "model.hf_config", got, "a config.json of Hugging Face",
         "\"model_type\": \"mixtral\"");
  };
  if (const std::string excess = excess_in_json(text_); !excess.empty()) refuse(excess);
  json_ = Json::parse(without_infinities(text_), nullptr, false);
  if (!json_.is_object()) refuse("text that is not a JSON object");
}

ConfigReader ConfigReader::inside(const std::string& field) const {
  if (!has(field) || !json_[field].is_object())
    refuse(field, "an object with the fields of the language model", "{\"hidden_size\": 4096, …}");
  ConfigReader inner = *this;
  // The file may spell the name with escapes, such as "\u0074ext_config".
  if (const std::size_t found = text_.find('"' + field + '"', begin_); found != std::string::npos)
    inner.begin_ = found;
  inner.json_ = Json(json_[field]);
  inner.given_ = inner.defaults_ = Json::object();
  return inner;
}

void ConfigReader::take_defaults(const std::string& model_type) {
  const LibraryDefaults known = library_defaults(model_type);
  defaults_ = known.values;
  source_ = known.source;
  complete_ = known.source.empty();
}

// A null in the file is no omission: the library's default does not replace it.
bool ConfigReader::has(const std::string& field) const {
  if (given_.contains(field)) return true;
  if (json_.contains(field)) return !json_[field].is_null();
  return defaults_.contains(field);
}

const Json& ConfigReader::at(const std::string& field) const {
  if (given_.contains(field)) return given_[field];
  if (json_.contains(field)) return json_[field];
  used_->insert(field);
  return defaults_[field];
}

std::vector<std::string> ConfigReader::used_defaults() const {
  std::vector<std::string> texts;
  for (const std::string& field : *used_) texts.push_back(field + " = " + defaults_[field].dump());
  return texts;
}

std::string ConfigReader::place(const std::string& field) const {
  std::size_t at = text_.find('"' + field + '"', begin_);
  if (at == std::string::npos) at = begin_;
  return fmt::format("{}:{}", path_,
                     1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

void ConfigReader::refuse(const std::string& field, const std::string& expected, const std::string& example,
                          const std::string& suggestion) const {
  std::string got = "nothing";
  if (json_.contains(field)) {
    got = json_[field].dump(-1, ' ', false, Json::error_handler_t::replace);
  } else if (has(field)) {
    got += fmt::format(", so that it has the default {} of {}", at(field).dump(), source_);
  }
  fail(place(field), field, got, expected, fmt::format("\"{}\": {}", field, example), suggestion);
}

std::string ConfigReader::text(const std::string& field, const std::string& expected,
                               const std::string& example) const {
  if (!has(field) || !at(field).is_string()) refuse(field, expected, example);
  return at(field).get<std::string>();
}

std::int64_t ConfigReader::count(const std::string& field, std::int64_t least) const {
  const std::string expected = fmt::format("a whole number from {} to {}", least, kMaxConfigValue);
  if (!has(field) || !at(field).is_number_integer()) refuse(field, expected, "64");
  const auto value = at(field).get<std::int64_t>();
  if (value < least || value > kMaxConfigValue) refuse(field, expected, "64");
  return value;
}

std::int64_t ConfigReader::count_or(const std::string& field, std::int64_t fallback) const {
  if (has(field)) return count(field, 0);
  if (complete_ && !states(field)) refuse(field, "a whole number, or null", "0");
  return fallback;
}

std::int64_t ConfigReader::layers(const std::string& field) const {
  const std::int64_t value = count(field);
  if (value > kMaxLayers) refuse(field, fmt::format("a whole number from 1 to {}", kMaxLayers), "48");
  return value;
}

std::int64_t ConfigReader::first_count(const std::string& field, std::int64_t least) const {
  if (!has(field) || !at(field).is_array()) return count(field, least);
  const auto list = *numbers(field, kMaxConfigValue);
  if (list.empty() || list.front() < least)
    refuse(field, fmt::format("a whole number of at least {}, or a list that begins with it", least), "64");
  return list.front();
}

std::int64_t ConfigReader::count_of_all_layers(const std::string& field, std::int64_t least) const {
  if (!has(field) || !at(field).is_array()) return count(field, least);
  const auto list = *numbers(field, kMaxConfigValue);
  const bool equal = std::all_of(list.begin(), list.end(), [&](auto value) { return value == list.front(); });
  if (list.empty() || !equal || list.front() < least)
    refuse(field, fmt::format("a whole number of at least {}, or a list that repeats it", least), "8");
  return list.front();
}

bool ConfigReader::yes_no_or(const std::string& field, bool fallback) const {
  if (!has(field)) {
    if (complete_ && !states(field)) refuse(field, "true or false", "false");
    return fallback;
  }
  if (!at(field).is_boolean()) refuse(field, "true or false", "false");
  return at(field).get<bool>();
}

std::optional<std::vector<std::string>> ConfigReader::words(const std::string& field) const {
  if (!has(field)) return std::nullopt;
  const Json& list = at(field);
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), [](const Json& j) { return j.is_string(); }))
    refuse(field, "a list with a word for each layer", "[\"full_attention\", …]");
  return list.get<std::vector<std::string>>();
}

std::optional<std::vector<std::int64_t>> ConfigReader::numbers(const std::string& field,
                                                               std::int64_t most) const {
  if (!has(field)) return std::nullopt;
  const Json& list = at(field);
  const auto fits = [&](const Json& item) {
    return item.is_number_integer() && item.get<std::int64_t>() >= 0 && item.get<std::int64_t>() <= most;
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), fits))
    refuse(field, fmt::format("a list of whole numbers from 0 to {}", most), "[0, 1]");
  return list.get<std::vector<std::int64_t>>();
}

}  // namespace fomoe::scenario
