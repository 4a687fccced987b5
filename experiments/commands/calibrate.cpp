#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "costmodel/fit.hpp"
#include "costmodel/replicas.hpp"
#include "costmodel/validation.hpp"
#include "experiments/commands/command.hpp"
#include "experiments/commands/human.hpp"
#include "experiments/commands/measured_runs.hpp"
#include "experiments/commands/options.hpp"
#include "experiments/scenario/collectives_csv.hpp"
#include "experiments/scenario/json_values.hpp"
#include "experiments/scenario/suggest.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;
using costmodel::Fit;
using costmodel::FittedTerm;
using costmodel::FitTerm;

namespace {

const std::vector<std::string> kTerms = {"bandwidth_efficiency", "latency_factor", "call_overhead",
                                         "payload_rate", "initial_window"};

struct Observation {
  std::string name;
  costmodel::Scenario scenario;
  double communication_s = 0;  // of the mean round
};

struct Data {
  std::vector<Observation> observations;
  std::vector<std::string> run_ids;
};

Data read_data(const std::vector<std::string>& paths, const std::vector<std::string>& overrides) {
  Data data;
  std::vector<std::string> reports;
  for (const std::string& path : paths) {
    if (!path.ends_with(".csv")) {
      reports.push_back(path);
      continue;
    }
    for (const scenario::MeasuredCollective& row : scenario::read_collectives_csv(path))
      data.observations.push_back(
          {row.place, scenario::read_scenario(row.source, row.place, overrides), row.seconds});
  }
  for (ReadRun& run : read_runs(reports, overrides)) {
    const double seconds = run.measured.report.round.communication_s;
    const costmodel::RunReport predicted = predict(run.scenario);
    const bool overlapped =
        costmodel::bound_of(predicted, run.measured.report) == costmodel::Bound::overlapped;
    if (seconds <= 0 || overlapped) {
      message(fmt::format("{}: left out: {}", run.measured.path,
                          overlapped
                              ? "its transfers hide behind compute, and how long one takes depends on it"
                              : "nothing was sent"));
      continue;
    }
    data.run_ids.push_back(run.measured.record.id);
    data.observations.push_back({run.measured.path, std::move(run.scenario), seconds});
  }
  return data;
}

/// What a value of each term does to a scenario; `initial_window` apart, since it is found by trying. Of
/// payload_rate the reciprocal is fitted, in which times are linear.
void set_term(costmodel::NetworkModel& network, const std::string& term, double value) {
  if (term == "bandwidth_efficiency") network.bandwidth_efficiency = value;
  if (term == "latency_factor") network.latency_factor = value;
  if (term == "call_overhead") network.call_overhead_s = value;
  if (term == "payload_rate")
    network.payload_bytes_per_s = value > 0 ? std::optional<double>(1 / value) : std::nullopt;
}

FitTerm fit_term(const std::string& name) {
  if (name == "bandwidth_efficiency") return {name, 1, 1, 0.02, 0.05, 1};
  if (name == "latency_factor") return {name, 1, 1, 0.05, 0.1, 50};
  if (name == "payload_rate") return {name, 0, 0, 1e-9, 0, 1e-3};  // s a byte
  return {name, 0, 0, 1e-3, 0, 60};
}

std::vector<double> observed(const Data& data) {
  std::vector<double> seconds;
  for (const Observation& one : data.observations) seconds.push_back(one.communication_s);
  return seconds;
}

Fit fit_with_window(const Data& data, const std::vector<FitTerm>& terms, std::optional<double> window) {
  const costmodel::FitModel model = [&](const std::vector<double>& values) {
    std::vector<double> predictions;
    for (const Observation& one : data.observations) {
      costmodel::Scenario scenario = one.scenario;
      if (window) scenario.network.initial_window_bytes = *window;
      for (std::size_t i = 0; i < terms.size(); ++i) set_term(scenario.network, terms[i].name, values[i]);
      predictions.push_back(predict(scenario).round.communication_s);
    }
    return predictions;
  };
  return costmodel::fit_terms(terms, model, observed(data));
}

/// Slow start is no smooth function of the window: powers of two segments are tried, then steps between them.
/// The interval is where the squares are not larger than the least by more than chance (F test, 95 %).
struct WindowFit {
  Fit fit;
  FittedTerm window;
};

WindowFit fit_window(const Data& data, const std::vector<FitTerm>& terms, const Fit& without) {
  constexpr double kMostSegments = 2048;
  const double segment = data.observations.front().scenario.network.segment_bytes;
  std::vector<std::pair<double, Fit>> tried;  // segments
  const auto attempt = [&](double segments) {
    message(fmt::format("trying an initial window of {:g} segments", segments));
    tried.emplace_back(segments, fit_with_window(data, terms, segments * segment));
  };
  const auto best = [&] {
    return *std::min_element(tried.begin(), tried.end(), [](const auto& a, const auto& b) {
      return a.second.sum_of_squares < b.second.sum_of_squares;
    });
  };
  for (double segments = 1; segments <= kMostSegments; segments *= 4) attempt(segments);
  const double coarse = best().first;
  for (const double factor : {0.5, 2.0}) attempt(coarse * factor);
  const double middle = best().first;
  for (const double factor : {0.71, 0.84, 1.19, 1.41}) attempt(std::max(1.0, std::round(middle * factor)));
  const auto [segments, fit] = best();
  WindowFit found{fit, {"initial_window", false, 0, 0, 0, ""}};
  if (!costmodel::better_than_chance(fit, without)) {
    found.fit = without;
    found.window.why_not =
        "slow start explains no more than chance: where the data have few round trips, or "
        "connections that were never silent, it does not show";
    return found;
  }
  const double n_p = std::max(1, fit.degrees_of_freedom - 1), t = costmodel::student_t(static_cast<int>(n_p));
  const double most = fit.sum_of_squares * (1 + t * t / n_p);
  double low = segments, high = segments;
  std::sort(tried.begin(), tried.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // To the next values that were tried and are worse.
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const bool fits = tried[i].second.sum_of_squares <= most;
    if (fits && i > 0) low = std::min(low, tried[i - 1].first);
    if (fits && i + 1 < tried.size()) high = std::max(high, tried[i + 1].first);
  }
  found.window = {"initial_window", true, segments * segment, low * segment, high * segment, ""};
  return found;
}

std::string shown(const std::string& term, double value) {
  if (term == "call_overhead") return human_time(value);
  if (term == "payload_rate") return fmt::format("{:.4g} Gbit/s", 8e-9 / value);
  if (term == "initial_window") return fmt::format("{:.0f} B", value);
  return fmt::format("{:.4g}", value);
}

/// From the smaller to the larger of what is shown.
std::pair<std::string, std::string> interval(const FittedTerm& term) {
  if (term.name == "payload_rate") return {shown(term.name, term.high95), shown(term.name, term.low95)};
  return {shown(term.name, term.low95), shown(term.name, term.high95)};
}

std::string toml_value(const FittedTerm& term) {
  if (term.name == "call_overhead") return fmt::format("\"{:.4g}ms\"", term.value * 1e3);
  if (term.name == "payload_rate") return fmt::format("\"{:.4g}Mbps\"", 8e-6 / term.value);
  if (term.name == "initial_window") return fmt::format("\"{:.0f}B\"", term.value);
  return fmt::format("{:.5g}", term.value);
}

struct Calibration {
  Data data;
  Fit fit;
  std::vector<FittedTerm> terms;
};

/// What --set or a scenario gave to terms that were not fitted; the fit holds with these alone.
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

/// The same of all observations, or there is no one model that the fit holds with.
std::string given_terms(const Calibration& calibration) {
  const Observation& first = calibration.data.observations.front();
  const std::string text = given_terms(calibration, first.scenario.network);
  for (const Observation& one : calibration.data.observations) {
    if (given_terms(calibration, one.scenario.network) == text) continue;
    throw UsageError(fmt::format(
        "{}: got other terms of network_model than {}; expected the same of all terms that are not "
        "fitted; for example --set network_model.congestion_control=bbr for all",
        one.name, first.name));
  }
  return text;
}

/// To paste into a scenario, or for `fomoe validate --network-model`.
std::string toml_text(const Calibration& calibration) {
  std::string text = fmt::format(
      "# Fitted by fomoe calibrate to {} measured times; standard deviation of what is left: {:.2f} %.\n"
      "[network_model]\n",
      calibration.data.observations.size(), 100 * calibration.fit.relative_s);
  for (const FittedTerm& term : calibration.terms) {
    if (!term.supported) continue;
    const auto [low, high] = interval(term);
    text += fmt::format("{} = {}  # {} to {} (95 %)\n", term.name, toml_value(term), low, high);
  }
  text += given_terms(calibration);
  if (calibration.data.run_ids.empty()) return text;
  text += "\n[calibration]  # fomoe validate refuses these runs with this model\nruns = [";
  for (std::size_t i = 0; i < calibration.data.run_ids.size(); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", calibration.data.run_ids[i]);
  return text + "]\n";
}

std::string people_text(const Calibration& calibration) {
  std::vector<Row> rows = {{"term", "fitted", "from", "to"}};
  std::string reasons;
  for (const FittedTerm& term : calibration.terms) {
    if (term.supported) {
      const auto [low, high] = interval(term);
      rows.push_back({term.name, shown(term.name, term.value), low, high});
    } else {
      rows.push_back({term.name, "not fitted", "", ""});
      reasons += fmt::format("{} is not fitted: {}.\n", term.name, term.why_not);
    }
  }
  const auto& errors = calibration.fit.errors;
  const auto worst = std::max_element(errors.begin(), errors.end(),
                                      [](double a, double b) { return std::abs(a) < std::abs(b); });
  return aligned(rows) + '\n' + reasons +
         fmt::format("\n{} observations; the worst is {:+.1f} % off ({}).\n\n", errors.size(), 100 * *worst,
                     calibration.data.observations[static_cast<std::size_t>(worst - errors.begin())].name) +
         toml_text(calibration);
}

/// Schema "fomoe.calibration/1"; SI units: seconds, bytes, bytes per second.
std::string json_text(const Calibration& calibration) {
  scenario::Json terms = scenario::Json::array(), observations = scenario::Json::array();
  for (const FittedTerm& term : calibration.terms) {
    scenario::Json entry = {{"name", term.name}, {"supported", term.supported}};
    if (term.supported) {
      const bool inverse = term.name == "payload_rate";
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

std::vector<std::string> asked_terms(const po::variables_map& values) {
  if (!values.count("terms")) return kTerms;
  std::vector<std::string> terms;
  std::istringstream list(values["terms"].as<std::string>());
  for (std::string term; std::getline(list, term, ',');) {
    if (std::find(terms.begin(), terms.end(), term) != terms.end())
      throw UsageError(fmt::format("--terms: got {} twice; expected every term once; for example --terms {}",
                                   term, scenario::joined(kTerms, ",")));
    terms.push_back(choice("--terms", term, kTerms));
  }
  return terms;
}

Calibration calibrate(Data data, const std::vector<std::string>& names) {
  std::vector<FitTerm> terms;
  for (const std::string& name : names)
    if (name != "initial_window") terms.push_back(fit_term(name));
  Calibration answer{std::move(data), {}, {}};
  answer.fit = fit_with_window(answer.data, terms, std::nullopt);
  if (!answer.fit.refused.empty())
    throw std::runtime_error("the data do not support a fit: " + answer.fit.refused);
  answer.terms = answer.fit.terms;
  if (std::find(names.begin(), names.end(), "initial_window") != names.end()) {
    const WindowFit with = fit_window(answer.data, terms, answer.fit);
    answer.fit = with.fit;
    answer.terms = with.fit.terms;
    answer.terms.push_back(with.window);
  }
  return answer;
}

}  // namespace

void run_calibrate(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("terms", po::value<std::string>()->value_name("NAME,…"),
                        "what to fit (default: bandwidth_efficiency,latency_factor,call_overhead,"
                        "payload_rate,initial_window)")(
      "set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
      "override a key of network_model that is known and not fitted, any number of times (default: none)")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; a file in .json, or in .toml, the [network_model] (default: a table and the "
      "[network_model] on stdout)");
  const Help help = {
      "calibrate",
      "RUN.json…|COLLECTIVES.csv… [options]",
      "Fits terms of [network_model] to measured times: of reports of `fomoe-train run` the mean round's\n"
      "communication, of a CSV (collective,sites,payload,bandwidth,latency,seconds) each all-reduce. Every\n"
      "observation is simulated; the sum of squared relative errors becomes least. Terms that the data do "
      "not\n"
      "support are left out, and why is said. Exit status 1 where nothing can be fitted.",
      {"fomoe calibrate experiments/validation/runs/*.json --terms bandwidth_efficiency,latency_factor"}};
  const auto values = parse(arguments, help, options, "measurement", Positionals::several);
  if (!values) return;
  const Output output("--output", (*values)["output"].as<std::string>(), {".toml", ".json"});
  const std::vector<std::string> terms = asked_terms(*values);
  const std::vector<std::string> overrides = network_overrides(*values);
  Data data = read_data((*values)["measurement"].as<std::vector<std::string>>(), overrides);
  if (data.observations.empty())
    throw std::runtime_error("the data do not support a fit: nothing was measured");
  const Calibration calibration = calibrate(std::move(data), terms);
  const bool any = std::any_of(calibration.terms.begin(), calibration.terms.end(),
                               [](const FittedTerm& term) { return term.supported; });
  if (!any) {
    std::string reasons;
    for (const FittedTerm& term : calibration.terms)
      reasons += fmt::format("\n  {}: {}", term.name, term.why_not);
    throw std::runtime_error("the data support none of the terms:" + reasons);
  }
  const std::string path = (*values)["output"].as<std::string>();
  output.write(output.for_people()       ? people_text(calibration)
               : path.ends_with(".toml") ? toml_text(calibration)
                                         : json_text(calibration));
}

}  // namespace fomoe::commands
