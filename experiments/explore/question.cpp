#include "experiments/explore/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::explore {

namespace {

/// A word that a shell does not change, if necessary in quotes.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-+=/:%,@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool is_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

}  // namespace

std::vector<std::string> overrides_of(const Question& question, const Json& settings) {
  if (!settings.is_object()) throw BadRequest("settings: expected an object of keys and values");
  std::vector<std::string> overrides = question.overrides;
  for (const auto& [key, value] : settings.items()) {
    if (key.empty() || key.front() == '!' || key.find('=') != std::string::npos)
      throw BadRequest("settings: \"" + key + "\" is not a key");
    if (value.is_null()) {
      overrides.push_back('!' + key);
    } else if (value.is_string()) {
      overrides.push_back(key + '=' + value.get<std::string>());
    } else if (value.is_number() || value.is_boolean()) {
      overrides.push_back(key + '=' + value.dump());
    } else {
      throw BadRequest("settings: \"" + key + "\" has neither a text nor a number");
    }
  }
  return overrides;
}

costmodel::Scenario read(const Question& question, const std::vector<std::string>& overrides) {
  scenario::ReadOptions options;
  options.overrides = overrides;
  return scenario::read_scenario(question.path, options);
}

std::optional<costmodel::Scenario> with_local_steps(const Question& question,
                                                    std::vector<std::string> overrides,
                                                    std::int64_t local_steps) {
  overrides.push_back(fmt::format("strategy.local_steps={}", local_steps));
  try {
    return read(question, overrides);
  } catch (const FileError&) {
    return std::nullopt;
  }
}

std::string options_of(const std::vector<std::string>& overrides) {
  std::string text;
  for (const std::string& assignment : overrides) {
    text += assignment.starts_with('!') ? " --unset " + quoted(assignment.substr(1))
                                        : " --set " + quoted(assignment);
  }
  return text;
}

std::string command_of(const Question& question, const std::vector<std::string>& overrides) {
  return "fomoe simulate " + quoted(question.path) + options_of(overrides);
}

std::string toml_of(const Question& question, const std::vector<std::string>& overrides) {
  scenario::Document document = scenario::Document::read(question.path, "scenario", "");
  for (const std::string& assignment : overrides) document.override_key(assignment);
  scenario::displace_alternatives(document);
  std::ostringstream text;
  text << "# Made by fomoe explore from " << std::filesystem::path(question.path).filename().string()
       << ". Save it in the same folder: paths in it are relative to it.\n"
       << document.root() << '\n';
  return text.str();
}

Json mistakes_of(const std::string& message, const std::vector<std::string>& overrides) {
  Json mistakes = Json::array();
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    std::string key, text = line;
    // "--set KEY=VALUE: KEY: got …": what concerns a setting of the page belongs to its field.
    for (const std::string& assignment : overrides) {
      const std::string place = "--set " + assignment + ": ";
      if (!line.starts_with(place)) continue;
      key = assignment.substr(0, assignment.find('='));
      text = line.substr(place.size());
    }
    // "FILE:LINE: KEY: got …"
    for (std::size_t begin = 0; key.empty() && begin != std::string::npos;) {
      const std::size_t end = line.find(": ", begin);
      if (end == std::string::npos) break;
      const std::string part = line.substr(begin, end - begin);
      if (is_key(part) && part.find('.') != std::string::npos) {
        key = part;
        text = line.substr(begin);
      }
      begin = end + 2;
    }
    if (!key.empty() && text.starts_with(key + ": ")) text = text.substr(key.size() + 2);
    mistakes.push_back({{"key", key}, {"text", text}});
  }
  return mistakes;
}

}  // namespace fomoe::explore
