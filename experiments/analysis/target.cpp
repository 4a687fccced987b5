#include "experiments/analysis/target.hpp"

#include <fmt/format.h>

#include <limits>

#include "costmodel/value/goodput.hpp"
#include "experiments/analysis/limits.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace {

using costmodel::RunReport;
using costmodel::Scenario;

constexpr const char* kTargetExample =
    "--target compute_utilization=0.95, --target wall_clock=3d, --target cost=5000, --target energy=800, "
    "--target tokens_per_s=1e6 or --target loss=2%";

double utilization(const RunReport& report) { return report.compute_utilization; }

double loss_of(const RunReport& report) {
  if (report.quality && report.quality->published && report.quality->published->level.known())
    return report.quality->published->level.points;
  return std::numeric_limits<double>::quiet_NaN();
}

/// Reads the value as --within does.
planner::Limits limits_of(const std::string& text, const Scenario& scenario) {
  try {
    return read_limits(text, scenario);
  } catch (const UsageError& error) {
    const std::string message = error.what();
    const std::size_t example = message.rfind("for example --within");
    throw UsageError("--target" + message.substr(8, example == std::string::npos ? example : example - 8) +
                     (example == std::string::npos ? "" : fmt::format("for example {}", kTargetExample)));
  }
}

}  // namespace

std::string asked_for(const Target& target, const Scenario& scenario) {
  return target.name == "loss" && !scenario.quality ? "quality.model=\"published\"" : "";
}

Target utilization_target(double share) { return {"compute_utilization", share, true, utilization}; }

Target read_target(const std::string& text, const Scenario& scenario) {
  const auto refuse = [&](const std::string& expected) -> UsageError {
    return UsageError(
        fmt::format("--target: got \"{}\"; expected {}; for example {}", text, expected, kTargetExample));
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) throw refuse("name=value");
  std::string name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  for (const char* other : {"utilization", "utilisation", "compute_utilisation"}) {
    if (name == other) name = "compute_utilization";
  }
  const auto number = [&](double most, const std::string& expected) {
    const bool percent = most == 1 && scenario::is_percentage(value);
    const std::string_view digits = std::string_view(value).substr(0, value.size() - (percent ? 1 : 0));
    double read = parse_leading_number<double>(digits).value_or(0);
    if (percent) read /= 100;
    if (!parse_number<double>(digits) || !(read > 0) || !(read <= most))
      throw refuse(expected + (most == 1 && read > 1 && read <= 100
                                   ? fmt::format(" (did you mean {}={}%?)", name, read)
                                   : ""));
    return read;
  };
  constexpr double kAny = std::numeric_limits<double>::max();
  if (name == "compute_utilization")
    return {name, number(1, "a share above 0 and of at most 1, or a percentage"), true, utilization};
  if (name == "tokens_per_s")
    return {name, number(kAny, "a number above 0"), true, [](const RunReport& r) { return r.tokens_per_s; }};
  if (name == "wall_clock") {
    try {
      if (const double seconds = scenario::parse_quantity(value, scenario::Quantity::duration); seconds > 0)
        return {name, seconds, false,
                [](const RunReport& r) { return costmodel::amounts_of(r).wall_clock_s; }};
    } catch (const scenario::QuantityError&) {
    }
    throw refuse("a time with a unit");
  }
  if (name == "cost" || name == "energy") {
    const planner::Limits limits = limits_of(text, scenario);
    if (name == "cost")
      return {name, *limits.cost, false, [](const RunReport& r) { return *costmodel::amounts_of(r).cost; }};
    return {name, *limits.energy_kwh, false,
            [](const RunReport& r) { return *costmodel::amounts_of(r).energy_kwh; }};
  }
  if (name == "loss") {
    // A loss of 0 % is data-parallel training itself. Points are per cent.
    constexpr double kMost = 100;
    const bool percent = scenario::is_percentage(value);
    const std::string_view digits = std::string_view(value).substr(0, value.size() - (percent ? 1 : 0));
    const double points = parse_leading_number<double>(digits).value_or(0);
    if (!percent || !parse_number<double>(digits) || !(points > 0) || !(points <= kMost))
      throw refuse("a percentage above 0 and of at most 100: the loss above that of data-parallel training");
    return {name, points, false, loss_of};
  }
  throw refuse("compute_utilization, wall_clock, cost, energy, tokens_per_s or loss");
}

std::string target_amount(const Target& target, double value, const Scenario& scenario) {
  // Five digits, because 1 % less bandwidth can change only the fourth digit.
  if (target.name == "compute_utilization") return fmt::format("{:.5g} %", value * 100);
  if (target.name == "wall_clock") return human_time(value);
  if (target.name == "loss") return fmt::format("{:+.3g} % against data-parallel training", value);
  if (target.name == "cost") return amount_text(planner::Measure::cost, value, scenario);
  if (target.name == "energy") return amount_text(planner::Measure::energy, value, scenario);
  return human_count(value) + " tokens/s";
}

std::pair<std::string, std::string> target_amounts(const Target& target, double one, double other,
                                                   const Scenario& scenario) {
  std::pair<std::string, std::string> texts = {target_amount(target, one, scenario),
                                               target_amount(target, other, scenario)};
  // "1 h 35 min" is right to 1 %, which is how far neighbours are apart.
  if (texts.first == texts.second && target.name == "wall_clock")
    texts = {human_whole(one) + " s", human_whole(other) + " s"};
  if (texts.first == texts.second && target.name == "cost") {
    const std::string currency = scenario.prices ? " " + scenario.prices->currency : "";
    texts = {fmt::format("{:.4g}{}", one, currency), fmt::format("{:.4g}{}", other, currency)};
  }
  return texts;
}

}  // namespace fomoe::commands
