#include "experiments/analysis/uncertainty.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/cli/options.hpp"
#include "experiments/json/json_object.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

using scenario::Json;
using scenario::JsonObject;

constexpr scenario::JsonKind kCalibration = {
    "fomoe.calibration/1", "calibration", "a file that fomoe calibrate --output FILE.json wrote",
    "fomoe calibrate experiments/validation/runs/*.json --terms bandwidth_efficiency,latency_factor --output "
    "calibration.json"};

const scenario::Key* find_term(const std::string& name) {
  const scenario::Key* key = scenario::find_key("network_model." + name);
  return key != nullptr && scenario::is_number(key->kind) ? key : nullptr;
}

std::string setting(const CalibratedTerm& term, double value) {
  return fmt::format("{}={}{}", term.key, value, term.unit);
}

std::string change_of_answer(double answer_s, double seconds) {
  return fmt::format("{:+.2f} %", (seconds / answer_s - 1) * 100);
}

}  // namespace

std::string input_text(double value, const std::string& unit) {
  if (unit == "s") return human_time(value);
  if (unit == "Bps") return fmt::format("{:.4g} Gb/s", value * scenario::kBitsPerByte / 1e9);
  if (unit == "B") return human_bytes(value);
  return fmt::format("{:.4g}", value);
}

std::vector<std::string> CalibrationFile::settings() const {
  std::vector<std::string> list;
  for (const CalibratedTerm& term : terms) list.push_back(setting(term, term.value));
  return list;
}

costmodel::Scenario CalibrationFile::stated(costmodel::Scenario scenario) const {
  if (terms.empty()) return scenario;
  costmodel::NetworkModel& network = scenario.network;
  network.calibration = path;
  network.calibrated.clear();
  for (const CalibratedTerm& term : terms)
    network.calibrated.push_back(term.key.substr(term.key.find('.') + 1));
  return scenario;
}

void add_calibration_option(po::options_description& options) {
  options.add_options()("calibration", po::value<std::string>()->value_name("FILE.json"),
                        "output of fomoe calibrate; its terms replace those of the scenario's "
                        "[network_model], and the answer then includes the range of the wall clock over "
                        "their 95 % intervals (two additional runs for each term; default: none)");
}

CalibrationFile read_calibration(const po::variables_map& values) {
  CalibrationFile file;
  if (!values.count("calibration")) return file;
  file.path = values["calibration"].as<std::string>();
  const Json json = scenario::read_json_file(file.path, kCalibration);
  const JsonObject top = scenario::open_object(file.path, kCalibration, "", json);
  const Json& terms = top.filled_array("terms");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const JsonObject entry =
        scenario::open_object(file.path, kCalibration, fmt::format("terms[{}]", i), terms[i]);
    const std::string name = entry.text("name");
    const scenario::Key* key = find_term(name);
    if (key == nullptr) entry.refuse("name", '"' + name + '"', "a number of [network_model]");
    if (!entry.boolean("supported")) continue;
    const std::string number = "a number of zero or more";
    CalibratedTerm term{"network_model." + name, scenario::si_unit(key->kind), entry.number("value", number),
                        entry.number("low95", number), entry.number("high95", number)};
    if (!(term.low <= term.value && term.value <= term.high))
      entry.refuse("value", fmt::format("{}", term.value),
                   fmt::format("a value between low95 and high95, {} and {}", term.low, term.high));
    file.terms.push_back(std::move(term));
  }
  return file;
}

ShownUncertainty find_uncertainty(const po::variables_map& values, const costmodel::Scenario& scenario,
                                  const CalibrationFile& calibration, const Engine& engine, double answer_s) {
  ShownUncertainty shown{answer_s, costmodel::known_spread(scenario, answer_s, engine.simulated)};
  for (std::size_t i = 0; i < calibration.terms.size(); ++i) {
    const CalibratedTerm& term = calibration.terms[i];
    const auto wall_clock_s = [&](double value) {
      std::vector<std::string> settings = calibration.settings();
      settings[i] = setting(term, value);
      return execute(read_scenario(values, settings), engine).report.wall_clock_s;
    };
    const double low_s = wall_clock_s(term.low), high_s = wall_clock_s(term.high);
    // The closed form does not model this term, so "no effect" would be wrong.
    if (!engine.simulated && low_s == high_s) continue;
    shown.inputs.push_back({term.key, term.unit, term.low, term.high, low_s, high_s,
                            engine.simulated ? "simulated" : "closed-form", "fitted: " + calibration.path});
  }
  return shown;
}

std::string uncertainty_text(const ShownUncertainty& shown) {
  if (shown.inputs.empty()) return "";
  std::vector<Row> rows = {{"input with a known 95 % range", "from", "to", "wall clock", ""}};
  std::string sources;
  for (const costmodel::Uncertainty& input : shown.inputs) {
    rows.push_back({input.input, input_text(input.low, input.unit), input_text(input.high, input.unit),
                    change_of_answer(shown.answer_s, input.wall_clock_low_s),
                    change_of_answer(shown.answer_s, input.wall_clock_high_s)});
    sources += fmt::format("  {}: {} ({})\n", input.input, input.how, input.executor);
  }
  const costmodel::Interval95 all = costmodel::in_quadrature(shown.inputs, shown.answer_s);
  rows.push_back({"all inputs, in quadrature", human_time(all.low), human_time(all.high),
                  change_of_answer(shown.answer_s, all.low), change_of_answer(shown.answer_s, all.high)});
  return aligned(rows) + sources + '\n';
}

Json uncertainty_json(const ShownUncertainty& shown) {
  Json inputs = Json::array();
  for (const costmodel::Uncertainty& input : shown.inputs)
    inputs.push_back({{"input", input.input},
                      {"unit", input.unit},
                      {"low", input.low},
                      {"high", input.high},
                      {"wall_clock_low_s", input.wall_clock_low_s},
                      {"wall_clock_high_s", input.wall_clock_high_s},
                      {"executor", input.executor},
                      {"how", input.how}});
  Json json = {{"inputs", inputs}};
  if (shown.inputs.empty()) return json;
  const costmodel::Interval95 all = costmodel::in_quadrature(shown.inputs, shown.answer_s);
  json["wall_clock_low_s"] = all.low;
  json["wall_clock_high_s"] = all.high;
  return json;
}

}  // namespace fomoe::commands
