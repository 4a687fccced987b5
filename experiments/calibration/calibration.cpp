#include "experiments/calibration/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "experiments/cli/options.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::commands {

using costmodel::FittedTerm;

namespace {

std::string shown(const std::string& term, double value) {
  if (term == "call_overhead") return human_time(value);
  if (term == "payload_rate") return fmt::format("{:.4g} Gbit/s", 8e-9 / value);
  if (term == "tcp_window") return fmt::format("{:.0f} B", 1 / value);
  return fmt::format("{:.4g}", value);
}

/// The 95 % interval of the value shown, low end first. If the fit used the reciprocal of the term, the ends
/// of the fitted interval are swapped.
std::pair<std::string, std::string> interval(const FittedTerm& term) {
  if (fitted_as_reciprocal(term.name)) return {shown(term.name, term.high95), shown(term.name, term.low95)};
  return {shown(term.name, term.low95), shown(term.name, term.high95)};
}

std::string toml_value(const FittedTerm& term) {
  if (term.name == "call_overhead") return fmt::format("\"{:.4g}ms\"", term.value * 1e3);
  if (term.name == "payload_rate") return fmt::format("\"{:.4g}Mbps\"", 8e-6 / term.value);
  if (term.name == "tcp_window") return fmt::format("\"{:.0f}B\"", 1 / term.value);
  return fmt::format("{:.5g}", term.value);
}

/// A value of a key as TOML has it; empty: the key is not given.
std::string toml_of(const scenario::Key& key, const scenario::MemberValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* word = std::get_if<std::string>(&value)) return '"' + *word + '"';
  const auto* whole = std::get_if<std::int64_t>(&value);
  const std::string number =
      whole != nullptr ? fmt::format("{}", *whole) : fmt::format("{}", std::get<double>(value));
  const std::string unit = scenario::si_unit(key.kind);
  return unit.empty() ? number : '"' + number + unit + '"';
}

/// The host, and what was not fitted and differs from what such a host has. The fit is valid only with these
/// values.
std::string given_terms(const Calibration& calibration, const costmodel::Scenario& base) {
  costmodel::Scenario usual;
  const bool real = base.network.initial_window_bytes.has_value();  // connections have windows
  if (real) usual.network = costmodel::linux_host(base.platform.packet_bytes);
  std::string text =
      fmt::format("host = \"{}\"\n", to_string(real ? costmodel::Host::linux_tcp : costmodel::Host::ideal));
  for (const scenario::Key& key : scenario::scenario_keys()) {
    if (key.table != "network_model" || key.member.get == nullptr) continue;
    if (std::any_of(calibration.terms.begin(), calibration.terms.end(),
                    [&](const FittedTerm& term) { return term.supported && term.name == key.name; }))
      continue;
    const std::string value = toml_of(key, key.member.get(base));
    if (!value.empty() && value != toml_of(key, key.member.get(usual)))
      text += fmt::format("{} = {}  # given, not fitted\n", key.name, value);
  }
  return text;
}

/// Returns the value that all observations share. Throws if they differ, because the fit is then not valid
/// for one network model.
std::string given_terms(const Calibration& calibration) {
  const Observation& first = calibration.data.observations.front();
  std::string text = given_terms(calibration, first.scenario);
  for (const Observation& one : calibration.data.observations) {
    if (given_terms(calibration, one.scenario) == text) continue;
    throw UsageError(fmt::format(
        "{}: got terms of network_model that differ from those of {}; expected equal values of all terms "
        "that are not fitted; for example --set network_model.congestion_control=bbr for all runs",
        one.name, first.name));
  }
  return text;
}

}  // namespace

void refuse_bad_fit(const Calibration& calibration, const std::string& advice) {
  constexpr double kMostError = 0.5;
  const auto& errors = calibration.fit.errors;
  const auto worst = std::max_element(errors.begin(), errors.end(),
                                      [](double a, double b) { return std::abs(a) < std::abs(b); });
  if (worst == errors.end() || std::abs(*worst) <= kMostError) return;
  throw std::runtime_error(fmt::format(
      "the data do not support a fit: the best one is off by {:+.0f} % for {}; {}", 100 * *worst,
      calibration.data.observations[static_cast<std::size_t>(worst - errors.begin())].name, advice));
}

bool fitted_as_reciprocal(const std::string& term) { return term == "payload_rate" || term == "tcp_window"; }

std::string calibration_toml(const Calibration& calibration) {
  std::string text = fmt::format(
      "# Fitted by fomoe calibrate to {} measured times; standard deviation of the residuals: {:.2f} %.\n"
      "[network_model]\n",
      calibration.data.observations.size(), 100 * calibration.fit.relative_s);
  text += given_terms(calibration);
  for (const FittedTerm& term : calibration.terms) {
    if (!term.supported) continue;
    const auto [low, high] = interval(term);
    text += fmt::format("{} = {}  # {} to {} (95 %)\n", term.name, toml_value(term), low, high);
  }
  std::vector<std::string> fitted;
  for (const FittedTerm& term : calibration.terms) {
    if (term.supported) fitted.push_back(term.name);
  }
  const auto list = [](const std::vector<std::string>& words) {
    return words.empty() ? "[]" : "[\"" + scenario::joined(words, "\", \"") + "\"]";
  };
  text +=
      fmt::format("\n[calibration]  # the fitted terms and the runs of the fit\nterms = {}\n", list(fitted));
  if (!calibration.data.run_ids.empty())
    text += fmt::format("runs = {}  # fomoe validate refuses these runs with this model\n",
                        list(calibration.data.run_ids));
  return text;
}

std::string calibration_for_people(const Calibration& calibration) {
  std::vector<Row> rows = {{"term", "fitted", "from", "to"}};
  std::string reasons;
  for (const FittedTerm& term : calibration.terms) {
    if (term.supported) {
      const auto [low, high] = interval(term);
      rows.push_back({term.name, shown(term.name, term.value), low, high});
      if (term.doubtful)
        reasons += fmt::format(
            "{} is uncertain: there are few observations, and its interval includes the value without "
            "effect.\n",
            term.name);
    } else {
      rows.push_back({term.name, "not fitted", "", ""});
      reasons += fmt::format("{} is not fitted: {}.\n", term.name, term.why_not);
    }
  }
  const auto& errors = calibration.fit.errors;
  const auto worst = std::max_element(errors.begin(), errors.end(),
                                      [](double a, double b) { return std::abs(a) < std::abs(b); });
  return aligned(rows) + '\n' + reasons +
         fmt::format("\n{} observations; the largest error is {:+.1f} % ({}).\n\n", errors.size(),
                     100 * *worst,
                     calibration.data.observations[static_cast<std::size_t>(worst - errors.begin())].name) +
         calibration_toml(calibration);
}

std::string calibration_json(const Calibration& calibration) {
  scenario::Json terms = scenario::Json::array(), observations = scenario::Json::array();
  for (const FittedTerm& term : calibration.terms) {
    scenario::Json entry = {{"name", term.name}, {"supported", term.supported}};
    if (term.supported) {
      const bool inverse = fitted_as_reciprocal(term.name);
      entry["doubtful"] = term.doubtful;
      entry["value"] = inverse ? 1 / term.value : term.value;
      entry["low95"] = inverse ? 1 / term.high95 : term.low95;
      entry["high95"] = inverse ? 1 / term.low95 : term.high95;
    } else {
      entry["why_not"] = term.why_not;
    }
    terms.push_back(std::move(entry));
  }
  for (std::size_t i = 0; i < calibration.data.observations.size(); ++i)
    observations.push_back({{"name", calibration.data.observations[i].name},
                            {"communication_s", calibration.data.observations[i].communication_s},
                            {"error", calibration.fit.errors[i]}});
  return scenario::to_text({{"schema", "fomoe.calibration/1"},
                            {"terms", terms},
                            {"relative_standard_deviation", calibration.fit.relative_s},
                            {"degrees_of_freedom", calibration.fit.degrees_of_freedom},
                            {"observations", observations},
                            {"runs", calibration.data.run_ids}});
}

}  // namespace fomoe::commands
