#include "experiments/figures/assumptions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "experiments/text/suggest.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::figures {

Assumptions::Assumptions(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size())
      throw UsageError(
          fmt::format("--set {}: got no name=value; expected an assumption of the figure and its value; "
                      "for example --set mfu=0.5",
                      setting));
    settings_[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
}

void Assumptions::refuse(const std::string& name, const std::string& expected,
                         const std::string& example) const {
  throw UsageError(fmt::format("--set {0}={1}: got {1}; expected {2}; for example --set {0}={3}", name,
                               settings_.at(name), expected, example));
}

double Assumptions::parsed(const std::string& name, const std::string& text, double usual, double least,
                           double most) const {
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= least && *value <= most))
    refuse(name, fmt::format("a number from {:g} to {:g}", least, most), fmt::format("{:g}", usual));
  return *value;
}

double Assumptions::number(const std::string& name, double usual, double least, double most) {
  names_.insert(name);
  const auto found = settings_.find(name);
  const double value = found == settings_.end() ? usual : parsed(name, found->second, usual, least, most);
  stated_[name] = value;
  return value;
}

std::int64_t Assumptions::count(const std::string& name, std::int64_t usual, std::int64_t most) {
  names_.insert(name);
  const auto found = settings_.find(name);
  const double value = found == settings_.end() ? static_cast<double>(usual)
                                                : parsed(name, found->second, static_cast<double>(usual), 1,
                                                         static_cast<double>(most));
  if (value != std::trunc(value)) refuse(name, "a whole number", std::to_string(usual));
  stated_[name] = static_cast<std::int64_t>(value);
  return static_cast<std::int64_t>(value);
}

bool Assumptions::flag(const std::string& name, bool usual) {
  return choice(name, usual ? "true" : "false", {"true", "false"}) == "true";
}

std::string Assumptions::choice(const std::string& name, const std::string& usual,
                                const std::vector<std::string>& values) {
  names_.insert(name);
  const auto found = settings_.find(name);
  std::string value = found == settings_.end() ? usual : found->second;
  if (std::find(values.begin(), values.end(), value) == values.end())
    refuse(name, "one of " + scenario::joined(values), usual);
  stated_[name] =
      value == "true" || value == "false" ? scenario::Json(value == "true") : scenario::Json(value);
  return value;
}

std::string Assumptions::text(const std::string& name, const std::string& usual) {
  names_.insert(name);
  const auto found = settings_.find(name);
  std::string value = found == settings_.end() ? usual : found->second;
  stated_[name] = value;
  return value;
}

std::vector<double> Assumptions::numbers(const std::string& name, const std::vector<double>& usual,
                                         double least, double most) {
  names_.insert(name);
  std::vector<double> values = usual;
  if (const auto found = settings_.find(name); found != settings_.end()) {
    values.clear();
    std::istringstream parts(found->second);
    for (std::string part; std::getline(parts, part, ',');)
      values.push_back(parsed(name, part, usual.front(), least, most));
    if (values.empty())
      refuse(name, "numbers, separated by commas", fmt::format("{}", fmt::join(usual, ",")));
  }
  stated_[name] = values;
  return values;
}

std::vector<std::string> Assumptions::unused() const {
  std::vector<std::string> list;
  for (const auto& setting : settings_)
    if (!names_.contains(setting.first)) list.push_back(setting.first);
  return list;
}

}  // namespace fomoe::figures
