#include "experiments/analysis/unknown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::commands {

namespace {

using scenario::Kind;
using scenario::Quantity;

constexpr double kMostCalls = 1024;

std::string unit_of(const std::string& text) {
  const std::size_t at = text.find_last_of("0123456789.");
  std::string unit = at == std::string::npos ? "" : text.substr(at + 1);
  unit.erase(0, unit.find_first_not_of(' '));
  return unit;
}

bool is_solvable(const scenario::Key& key, const std::string& dotted) {
  return (scenario::is_number(key.kind) || key.kind == Kind::money) && dotted != "seed";
}

const scenario::Key* find_key(const std::string& name) {
  std::vector<std::string> known;
  std::string meant;  // the full key for an abbreviated one: "platform.bandwidth" for "bandwidth"
  for (const scenario::Key& key : scenario::scenario_keys()) {
    const std::string dotted = scenario::dotted(key);
    if (!is_solvable(key, dotted) || key.table == "site" || key.table == "path") continue;
    if (dotted == name) return &key;
    if (key.name == name && meant.empty()) meant = dotted;
    known.push_back(dotted);
  }
  if (meant.empty()) meant = scenario::nearest(name, known);
  const scenario::Key* key = scenario::find_key(name);
  if (key != nullptr && is_solvable(*key, name)) return key;
  const bool suggests = key == nullptr && !meant.empty();
  throw UsageError(
      fmt::format("--for: got \"{}\"{}; expected a key whose value is a number: a count, rate, time, size, "
                  "share, factor, "
                  "power or price (`fomoe list keys`); for example --for platform.bandwidth{}",
                  name, key == nullptr ? "" : ", whose value is none that can be solved for",
                  suggests ? "; did you mean " + meant + "?" : ""));
}

/// The units of kinds of quantities: one unit, as text that the quantity parser reads.
struct Usual {
  Quantity quantity;
  const char* unit;  // the unit if the scenario does not give the key
  planner::Domain domain;
};

Usual usual(Kind kind) {
  switch (kind) {
    case Kind::rate:
      return {Quantity::rate, "Gbps", {1e2, 1e14, false}};
    case Kind::flop_rate:
      return {Quantity::flop_rate, "TFLOPS", {1e9, 1e18, false}};
    case Kind::size:
      return {Quantity::size, "MiB", {1, 1e13, false}};
    case Kind::power:
      return {Quantity::power, "W", {1e-3, 1e6, false}};
    case Kind::latency:
      return {Quantity::duration, "ms", {1e-6, 1e6, false}};
    default:
      return {Quantity::duration, "s", {1e-6, 1e9, false}};  // sites fail once in weeks or years
  }
}

planner::Domain counts(const Unknown& unknown, const costmodel::Scenario& scenario,
                       std::optional<double> own) {
  double most = std::min(unknown.key->max, std::max(1e7, 1e3 * own.value_or(1)));
  if (unknown.name == "strategy.local_steps")  // values above the number of steps in the run have no effect
    most = std::min(most, costmodel::summarise(scenario).steps);
  return {std::max(0.0, unknown.key->min), std::max(2.0, most), true, own};
}

}  // namespace

std::string Unknown::text(double value) const {
  return whole() ? fmt::format("{:.0f}", value) : fmt::format("{}{}", value / factor, unit);
}

std::string Unknown::assignment(double value) const {
  return name + '=' + (whole() ? fmt::format("{:.0f}", value) : fmt::format("{}{}", value, si_unit));
}

double Unknown::rounded(double value, bool up) const {
  if (whole() && value < planner::kManyWhole) return value;
  const double shown = value / factor;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(shown)));
  // The tolerance of 1e-9 keeps values that have four digits already.
  const double digits = up ? std::ceil(shown * scale * (1 - 1e-9)) : std::floor(shown * scale * (1 + 1e-9));
  return digits / scale * factor;
}

Unknown read_unknown(const std::string& name, const costmodel::Scenario& scenario,
                     const scenario::Document& document) {
  Unknown unknown;
  unknown.name = name;
  unknown.key = find_key(name);
  const Kind kind = unknown.key->kind;
  unknown.si_unit = scenario::si_unit(kind);
  if (document.root().at_path("platform.file") &&
      (name == "platform.bandwidth" || name == "platform.uplink" || name == "platform.downlink" ||
       name == "platform.latency"))
    throw UsageError(fmt::format(
        "--for: got {0} with a platform file, whose sites differ; expected the line of one site, a "
        "path, or a factor on all rates or latencies; for example --for site.{1}.bandwidth, --for "
        "path.{1}.{2}.latency, --for platform.rate_factor or --for network_model.latency_factor",
        name, scenario.platform.sites.front().name, scenario.platform.sites.back().name));
  const toml::node* node = document.root().at_path(name).node();
  if (kind == Kind::count) {
    const auto own = node == nullptr ? std::nullopt : node->value<double>();
    unknown.domain = counts(unknown, scenario, own);
  } else if (kind == Kind::share) {
    // A network across a continent loses one packet in 10⁴ to 10⁸.
    const double least = name == "network_model.loss_rate" ? 1e-9 : 1e-4;
    unknown.domain = {least, std::min(1.0, unknown.key->max), false};
  } else if (kind == Kind::factor) {
    unknown.domain = {1, 1e3, false};
  } else if (kind == Kind::multiple) {
    unknown.domain = {1e-3, unknown.key->max, false};
  } else if (kind == Kind::money) {
    unknown.unit = unknown.si_unit = scenario.prices ? scenario.prices->currency : "USD";
    unknown.domain = {1e-6, 1e6, false};
  } else {
    const Usual with_unit = usual(kind);
    unknown.domain = with_unit.domain;
    unknown.unit = with_unit.unit;
    if (node != nullptr && node->is_string()) unknown.unit = unit_of(*node->value_exact<std::string>());
    unknown.factor = scenario::parse_quantity("1" + unknown.unit, with_unit.quantity);
    // Linux has no smaller window or buffer (tcp(7): tcp_rmem), and each byte of it costs an event.
    if (kind == Kind::size && name.starts_with("network_model.")) unknown.domain.low = 4096;
    if (unknown.key->bounded_size()) unknown.domain = {unknown.key->min, unknown.key->max, false};
    if (name == "strategy.bucket_bytes") {
      const double sent = std::max(1.0, costmodel::summarise(scenario).sent.total());
      unknown.domain = {std::max(1.0, sent / kMostCalls), std::max(2.0, 2 * sent), false};
    }
  }
  return unknown;
}

}  // namespace fomoe::commands
