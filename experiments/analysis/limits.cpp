#include "experiments/analysis/limits.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "costmodel/counts/memory.hpp"
#include "costmodel/value/goodput.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/planner/rules.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace {

const std::vector<std::string> kLimits = {"time", "cost", "energy", "perplexity", "memory"};
constexpr const char* kExample = "--within time=3d,cost=5000USD,energy=800kWh,perplexity=30,memory=80GiB";

[[noreturn]] void refuse(const std::string& part, const std::string& expected) {
  throw UsageError(
      fmt::format("--within: got \"{}\"; expected {}; for example {}", part, expected, kExample));
}

double number(const std::string& part, std::string text, const std::string& expected) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0) refuse(part, expected);
  return *value;
}

double quantity(const std::string& part, const std::string& text, scenario::Quantity kind,
                const std::string& expected) {
  try {
    const double value = scenario::parse_quantity(text, kind);
    if (value > 0) return value;
  } catch (const scenario::QuantityError&) {
  }
  refuse(part, expected);
}

/// Reads an amount of money, "5000" or "5000USD".
double money(const std::string& part, const std::string& text, const std::string& currency) {
  const std::string expected = "an amount above zero in " + currency;
  if (text.empty() || text.back() < 'A') return number(part, text, expected);
  try {
    const scenario::Money amount = scenario::parse_money(text);
    if (amount.currency == currency && amount.amount > 0) return amount.amount;
  } catch (const scenario::QuantityError&) {
  }
  refuse(part, expected);
}

void require_prices(const char* option, const costmodel::Scenario& scenario) {
  if (scenario.prices) return;
  throw UsageError(
      fmt::format("{}: got cost, and the scenario has no prices; expected [prices]; for example --set "
                  "prices.gpu_hour=2.50USD",
                  option));
}

void require_power(const char* option, const costmodel::Scenario& scenario) {
  if (scenario.power) return;
  throw UsageError(
      fmt::format("{}: got energy, and the scenario states no power; expected [energy]; for example --set "
                  "energy.gpu_power=700W --set energy.idle_share=0.2",
                  option));
}

}  // namespace

planner::Limits read_limits(const std::string& text, const costmodel::Scenario& scenario) {
  planner::Limits limits;
  std::set<std::string> given;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (equals == std::string::npos && !part.empty() && part[0] >= '0' && part[0] <= '9' && part != text)
      refuse(text, "numbers without commas, because a comma begins the next limit");
    if (!given.insert(name).second) refuse(part, "each limit once");
    if (equals == std::string::npos || equals + 1 == part.size())
      refuse(part, "limit=value, with " + scenario::joined(kLimits) + " as the limit");
    const std::string value = part.substr(equals + 1);
    if (name == "time") {
      limits.time_s = quantity(part, value, scenario::Quantity::duration, "a time with a unit");
    } else if (name == "cost") {
      require_prices("--within", scenario);
      limits.cost = money(part, value, scenario.prices->currency);
    } else if (name == "energy") {
      require_power("--within", scenario);
      const std::string plain = value.ends_with("kWh") ? value.substr(0, value.size() - 3) : value;
      limits.energy_kwh = number(part, plain, "an energy above zero in kWh");
    } else if (name == "perplexity") {
      if (!scenario.quality)
        throw UsageError(
            "--within: got perplexity, and the scenario has no quality model; expected [quality]; for "
            "example --set quality.model=paper-table");
      limits.perplexity = number(part, value, "a perplexity above zero");
    } else if (name == "memory") {
      limits.gpu_memory_bytes =
          quantity(part, value, scenario::Quantity::size, "the memory of one GPU, with a unit");
    } else {
      const std::string meant = scenario::nearest(name, kLimits);
      refuse(part, "one of " + scenario::joined(kLimits) +
                       (meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant)));
    }
  }
  return limits;
}

void add_limits_option(boost::program_options::options_description& options) {
  options.add_options()(
      "within", boost::program_options::value<std::string>()->default_value("")->value_name("LIMITS"),
      "upper limits, any of time=3d,cost=5000,energy=800kWh,perplexity=30,memory=80GiB; the exit status is 3 "
      "if nothing meets them all (default: no limits)");
}

std::optional<planner::Limits> given_limits(const boost::program_options::variables_map& values,
                                            const costmodel::Scenario& scenario) {
  const std::string text = values["within"].as<std::string>();
  return text.empty() ? std::nullopt : std::optional(read_limits(text, scenario));
}

std::string broken_limit(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                         const planner::Limits& limits) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const costmodel::RunAmounts of_run = costmodel::amounts_of(report);
  const planner::Amounts amounts{of_run.wall_clock_s, of_run.cost.value_or(kUnknown),
                                 of_run.energy_kwh.value_or(kUnknown)};
  const costmodel::GpuMemory memory = costmodel::fullest_gpu(costmodel::counts_of(scenario));
  for (const std::string& broken :
       {planner::broken_memory(memory.needed, memory.available, limits),
        planner::broken_amount(amounts, limits),
        planner::broken_perplexity(
            report.quality && report.quality->known ? report.quality->perplexity : kUnknown, limits)}) {
    if (!broken.empty()) return broken;
  }
  return "";
}

planner::Measure read_measure(const std::string& word, const costmodel::Scenario& scenario) {
  const std::string measure = choice("--minimise", word, {"time", "cost", "energy"});
  if (measure == "time") return planner::Measure::time;
  if (measure == "cost") {
    require_prices("--minimise", scenario);
    return planner::Measure::cost;
  }
  require_power("--minimise", scenario);
  return planner::Measure::energy;
}

std::string amount_text(planner::Measure measure, double amount, const costmodel::Scenario& scenario) {
  if (std::isnan(amount)) return "";
  if (measure == planner::Measure::time) return human_time(amount);
  if (measure == planner::Measure::energy)
    return std::isinf(amount) ? "unlimited" : fmt::format("{:.4g} kWh", amount);
  return human_money(amount, scenario.prices ? scenario.prices->currency : "");
}

}  // namespace fomoe::commands
