#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "costmodel/math/fit.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/report/validation.hpp"
#include "experiments/analysis/measured_runs.hpp"
#include "experiments/calibration/calibrate_iperf3.hpp"
#include "experiments/calibration/calibration.hpp"
#include "experiments/calibration/collectives_csv.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;
using costmodel::Fit;
using costmodel::FittedTerm;
using costmodel::FitTerm;

namespace {

const std::vector<std::string> kTerms = {"bandwidth_efficiency", "latency_factor", "call_overhead",
                                         "payload_rate"};

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
    const costmodel::RunReport predicted = predict(run);
    const bool overlapped =
        costmodel::bound_of(predicted, run.measured.report) == costmodel::Bound::overlapped;
    if (seconds <= 0 || overlapped) {
      message(fmt::format("{}: not used for the fit: {}", run.measured.path,
                          overlapped ? "its transfers overlap with compute, which changes their duration"
                                     : "nothing was sent"));
      continue;
    }
    data.run_ids.push_back(run.measured.record.id);
    data.observations.push_back({run.measured.path, std::move(run.scenario), seconds});
  }
  return data;
}

/// How each term's value is set in a scenario. For payload_rate the reciprocal is fitted, because times are
/// linear in the reciprocal.
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
  if (name == "payload_rate") return {name, 0, 0, 1e-9, 0, 1e-3};  // seconds per byte
  return {name, 0, 0, 1e-3, 0, 60};
}

std::vector<double> observed(const Data& data) {
  std::vector<double> seconds;
  for (const Observation& one : data.observations) seconds.push_back(one.communication_s);
  return seconds;
}

/// Says after the first trial of a fit that the others will take long; once in a run of the program.
void announce_trials(std::size_t measurements, double trial_s) {
  constexpr double kLong_s = 1;
  static bool said = false;
  if (said) return;
  said = true;
  if (trial_s >= kLong_s)
    message(fmt::format(
        "a trial of the fit predicts {} measurements in {}; a fit needs some tens of trials. Faster: fewer "
        "measurements, or fewer of --terms",
        measurements, human_time(trial_s)));
}

Fit fitted(const Data& data, const std::vector<FitTerm>& terms) {
  const costmodel::FitModel model = [&](const std::vector<double>& values) {
    std::vector<double> predictions;
    const auto begin = std::chrono::steady_clock::now();
    for (const Observation& one : data.observations) {
      costmodel::Scenario scenario = one.scenario;
      for (std::size_t i = 0; i < terms.size(); ++i) set_term(scenario.network, terms[i].name, values[i]);
      predictions.push_back(predict(scenario).round.communication_s);
    }
    announce_trials(data.observations.size(),
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return predictions;
  };
  return costmodel::fit_terms(terms, model, observed(data));
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

std::optional<double> quantity_option(const po::variables_map& values, const char* option,
                                      scenario::Quantity kind, const char* example) {
  if (!values.count(option)) return std::nullopt;
  const auto text = values[option].as<std::string>();
  std::string got = '"' + text + '"';
  try {
    if (const double value = scenario::parse_quantity(text, kind); value > 0) return value;
  } catch (const scenario::QuantityError& error) {
    got = error.what();
  }
  throw InputError(fmt::format("--{}", option), got,
                   fmt::format("{} above zero ({})", to_string(kind), known_units(kind)),
                   fmt::format("--{} {}", option, example));
}

/// Returns nothing if no file is an iperf3 report.
std::optional<Calibration> calibrated_iperf3(const po::variables_map& values) {
  const auto paths = values["measurement"].as<std::vector<std::string>>();
  const auto reports = std::count_if(paths.begin(), paths.end(), is_iperf3_report);
  const auto rate = quantity_option(values, "link-rate", scenario::Quantity::rate, "1Gbps");
  const auto round_trip = quantity_option(values, "round-trip", scenario::Quantity::duration, "50ms");
  for (const std::string& path : paths) refuse_other_iperf3_output(path);
  if (reports == 0) {
    if (rate || round_trip)
      throw UsageError(
          "--link-rate, --round-trip: got these options without a report of iperf3; expected them only with "
          "reports of iperf3");
    return std::nullopt;
  }
  if (static_cast<std::size_t>(reports) < paths.size())
    throw UsageError(
        "got reports of iperf3 and other files; expected only one of these kinds, because rates of transfers "
        "and times of collectives are not fitted together");
  if (values.count("terms") || values.count("set"))
    throw UsageError(
        "--terms, --set: got these options with reports of iperf3; expected neither, because only "
        "bandwidth_efficiency and tcp_window are fitted to these reports");
  if (!rate)
    throw UsageError(
        "--link-rate: got nothing; expected the platform's rate of the link that iperf3 measured; for "
        "example --link-rate 1Gbps");
  return calibrate_iperf3(paths, *rate, round_trip);
}

Calibration calibrate(Data data, const std::vector<std::string>& names) {
  std::vector<FitTerm> terms;
  for (const std::string& name : names) terms.push_back(fit_term(name));
  Calibration answer{std::move(data), {}, {}};
  answer.fit = fitted(answer.data, terms);
  if (!answer.fit.refused.empty())
    throw std::runtime_error("the data do not support a fit: " + answer.fit.refused);
  answer.terms = answer.fit.terms;
  refuse_bad_fit(answer, "do the measurements belong to these links, latencies and bytes?");
  return answer;
}

Calibration calibrate_collectives(const po::variables_map& values) {
  const std::vector<std::string> terms = asked_terms(values);
  const std::vector<std::string> overrides = network_overrides(values);
  Data data = read_data(values["measurement"].as<std::vector<std::string>>(), overrides);
  if (data.observations.empty())
    throw std::runtime_error("the data do not support a fit: nothing was measured");
  return calibrate(std::move(data), terms);
}

}  // namespace

void run_calibrate(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()(
      "terms", po::value<std::string>()->value_name("NAME,…"),
      "names of the terms to fit (default: bandwidth_efficiency,latency_factor,call_overhead,"
      "payload_rate)")("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
                       "set a key of network_model to a known value instead of fitting it; "
                       "may be given several times (default: none)")(
      "link-rate", po::value<std::string>()->value_name("RATE"),
      "rate of the link as in the platform file, for iperf3 reports")(
      "round-trip", po::value<std::string>()->value_name("TIME"),
      "round-trip time of the link, for iperf3 reports (default: TCP's shortest in each report)")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; a .json file, or a .toml file with the [network_model] (default: a table and the "
      "[network_model] on stdout)");
  const Help help = {
      "calibrate",
      "RUN.json…|COLLECTIVES.csv…|IPERF3.json… [options]",
      "Fits terms of [network_model] to measured times. For a report of `fomoe-train run` the time is the "
      "mean\nround's communication; for a CSV (collective,sites,payload,bandwidth,latency,seconds) it is "
      "each all-reduce.\nEvery observation is simulated, and the fit minimises the sum of squared relative "
      "errors. Terms that the\ndata do not determine are left out, and the output states the reason. The "
      "exit status is 1 if nothing can\nbe fitted. For iperf3 reports (iperf3 -c HOST -P N -J, with several "
      "N, over one link) the fit determines\nbandwidth_efficiency and tcp_window: rate = min(efficiency · "
      "link rate, N · window ÷ round trip).",
      {"fomoe calibrate experiments/validation/runs/*.json --terms bandwidth_efficiency,latency_factor"}};
  const auto values = parse(arguments, help, options, "measurement", Positionals::several);
  if (!values) return;
  const Output output("--output", (*values)["output"].as<std::string>(), {".toml", ".json"});
  const std::optional<Calibration> transfers = calibrated_iperf3(*values);
  const Calibration calibration = transfers ? *transfers : calibrate_collectives(*values);
  const bool any = std::any_of(calibration.terms.begin(), calibration.terms.end(),
                               [](const FittedTerm& term) { return term.supported; });
  if (!any) {
    std::string reasons;
    for (const FittedTerm& term : calibration.terms)
      reasons += fmt::format("\n  {}: {}", term.name, term.why_not);
    throw std::runtime_error("the data support none of the terms:" + reasons);
  }
  const std::string path = (*values)["output"].as<std::string>();
  output.write(output.for_people()       ? calibration_for_people(calibration)
               : path.ends_with(".toml") ? calibration_toml(calibration)
                                         : calibration_json(calibration));
}

}  // namespace fomoe::commands
