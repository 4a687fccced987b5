// Reads traces of Kineto in Chrome's trace format: {"traceEvents": [{"ph": "X", "name": …, "ts": µs, "dur":
// µs, "cat": …}]}. torch.profiler marks each step with a span "ProfilerStep#n". Its category is
// user_annotation on the CPU's thread, and gpu_user_annotation on every stream that computed for the step.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/logs/log_reader.hpp"
#include "experiments/text/nesting.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::step_profiles {
namespace {

using Json = nlohmann::json;
constexpr const char* kExample = "torch.profiler's export_chrome_trace(\"trace.json\")";

std::string text_of(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The number n of "ProfilerStep#n"; it starts at 0.
std::int64_t step_number(const std::string& digits, const std::string& place) {
  const auto number = parse_number<std::int64_t>(digits);
  if (!number || *number < 0)
    scenario::fail(place, "ProfilerStep#", '"' + digits + '"', "a whole number", "ProfilerStep#3");
  return *number;
}

Json parse(const std::string& path, const std::string& text) {
  if (text.starts_with("\x1f\x8b"))
    scenario::fail(path + ":1", "trace", "a gzip file", "JSON; gunzip it first", kExample);
  if (const std::string excess = scenario::excess_in_sorted_json(text); !excess.empty())
    scenario::fail(path + ":1", "trace", excess, "a Kineto or Chrome trace", kExample);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception&) {
    scenario::fail(path + ":1", "trace", "text that is not valid JSON", "a Kineto or Chrome trace", kExample);
  }
  // Chrome's format also allows the array of events without an enclosing object.
  if (json.is_array()) return {{"traceEvents", json}};
  if (!json.is_object() || !json.contains("traceEvents") || !json["traceEvents"].is_array())
    scenario::fail(path + ":1", "traceEvents", "nothing", "an array of events", kExample);
  return json;
}

}  // namespace

std::vector<Log> read_kineto(const std::string& path, const std::string& text, const Columns&) {
  const Json json = parse(path, text);
  constexpr std::string_view kName = "ProfilerStep#";
  std::map<std::int64_t, double> cpu, gpu;  // step number → start of its first span in µs
  for (const Json& event : json["traceEvents"]) {
    if (!event.is_object() || text_of(event, "ph") != "X") continue;
    const std::string name = text_of(event, "name");
    if (!name.starts_with(kName)) continue;
    const std::string place = path + ":1";
    const std::int64_t number = step_number(name.substr(kName.size()), place);
    const auto start = event.find("ts");
    if (start == event.end() || !start->is_number())
      scenario::fail(place, name + ".ts", start == event.end() ? "nothing" : start->dump(),
                     "a time in microseconds", "\"ts\": 1000.0");
    std::map<std::int64_t, double>& starts = text_of(event, "cat") == "gpu_user_annotation" ? gpu : cpu;
    const auto [row, added] = starts.try_emplace(number, start->get<double>());
    if (!added) row->second = std::min(row->second, start->get<double>());
  }
  Log log;
  log.numbered_spans = true;
  const std::map<std::int64_t, double>& starts = gpu.size() > 1 ? gpu : cpu;
  for (auto step = starts.begin(); step != starts.end(); ++step) {
    const auto next = std::next(step);
    // The next step, whose start ends this step, is not in the trace.
    if (next == starts.end() || next->first != step->first + 1) continue;
    const double seconds = 1e-6 * (next->second - step->second);
    if (!(seconds > 0)) {
      scenario::fail(path + ":1", fmt::format("ProfilerStep#{}", next->first),
                     "a start that is not after the start of the previous step", "consecutive steps",
                     kExample);
    }
    LoggedStep logged;
    logged.line = step->first;
    logged.seconds = seconds;
    log.steps.push_back(logged);
  }
  const auto devices = json.find("deviceProperties");
  if (devices != json.end() && devices->is_array() && !devices->empty() && devices->front().is_object())
    log.stated.device_name = text_of(devices->front(), "name");
  if (log.steps.empty()) return {};
  return {log};
}

}  // namespace fomoe::step_profiles
