#include "experiments/calibration/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/cli/options.hpp"
#include "experiments/results/json_values.hpp"
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

/// The values of the terms that were not fitted, from --set or the scenarios. The fit is valid only with
/// these values.
std::string given_terms(const Calibration& calibration, const costmodel::NetworkModel& base) {
  const costmodel::NetworkModel usual;
  const auto fitted = [&](const char* name) {
    return std::any_of(calibration.terms.begin(), calibration.terms.end(),
                       [&](const FittedTerm& term) { return term.supported && term.name == name; });
  };
  std::string text;
  const auto give = [&](const char* name, bool is_on, const std::string& value) {
    if (is_on && !fitted(name)) text += fmt::format("{} = {}  # given, not fitted\n", name, value);
  };
  give("bandwidth_efficiency", base.bandwidth_efficiency != 1, fmt::format("{}", base.bandwidth_efficiency));
  give("latency_factor", base.latency_factor != 1, fmt::format("{}", base.latency_factor));
  give("call_overhead", base.call_overhead_s > 0, fmt::format("\"{}ms\"", base.call_overhead_s * 1e3));
  const double rate = base.payload_bytes_per_s.value_or(0), window = base.initial_window_bytes.value_or(0);
  give("payload_rate", rate > 0, fmt::format("\"{}Mbps\"", rate * 8 / 1e6));
  give("initial_window", window > 0, fmt::format("\"{}B\"", window));
  give("idle_restart", base.idle_restart, "true");
  give("background_share", base.background_share > 0, fmt::format("{}", base.background_share));
  give("jitter", base.jitter_s > 0, fmt::format("\"{}ms\"", base.jitter_s * 1e3));
  give("streams", base.streams != usual.streams, std::to_string(base.streams));
  const double tcp_window = base.tcp_window_bytes.value_or(0);
  give("tcp_window", tcp_window > 0, fmt::format("\"{}B\"", tcp_window));
  give("loss_rate", base.loss_rate.has_value(), fmt::format("{}", base.loss_rate.value_or(0)));
  give("segment_size", base.segment_bytes != usual.segment_bytes, fmt::format("\"{}B\"", base.segment_bytes));
  give("congestion_control", base.congestion_control != usual.congestion_control,
       fmt::format("\"{}\"", to_string(base.congestion_control)));
  give("ring_model", base.ring_model != usual.ring_model, fmt::format("\"{}\"", to_string(base.ring_model)));
  return text;
}

/// Returns the value that all observations share. Throws if they differ, because the fit is then not valid
/// for one network model.
std::string given_terms(const Calibration& calibration) {
  const Observation& first = calibration.data.observations.front();
  std::string text = given_terms(calibration, first.scenario.network);
  for (const Observation& one : calibration.data.observations) {
    if (given_terms(calibration, one.scenario.network) == text) continue;
    throw UsageError(fmt::format(
        "{}: got terms of network_model that differ from those of {}; expected equal values of all terms "
        "that are not fitted; for example --set network_model.congestion_control=bbr for all runs",
        one.name, first.name));
  }
  return text;
}

}  // namespace

bool fitted_as_reciprocal(const std::string& term) { return term == "payload_rate" || term == "tcp_window"; }

std::string calibration_toml(const Calibration& calibration) {
  std::string text = fmt::format(
      "# Fitted by fomoe calibrate to {} measured times; standard deviation of the residuals: {:.2f} %.\n"
      "[network_model]\n",
      calibration.data.observations.size(), 100 * calibration.fit.relative_s);
  for (const FittedTerm& term : calibration.terms) {
    if (!term.supported) continue;
    const auto [low, high] = interval(term);
    text += fmt::format("{} = {}  # {} to {} (95 %)\n", term.name, toml_value(term), low, high);
  }
  text += given_terms(calibration);
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
