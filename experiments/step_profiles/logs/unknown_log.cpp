#include "experiments/step_profiles/logs/unknown_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/step_durations.hpp"

namespace fomoe::step_profiles {
namespace {

bool looks_like_a_step(const std::string& line) {
  std::string text = line;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto contains_any = [&](const std::vector<const char*>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return text.find(part) != std::string::npos; });
  };
  if (text.find_first_of("0123456789") == std::string::npos) return false;
  if (contains_any({"s/it", "s/step", "it/s]", "it/s,"})) return true;  // progress bars
  return contains_any({"step", "iter", "batch"}) &&
         contains_any({"time", "sec", " ms", "ms ", "/s", "dt", "loss", "tok", "took"});
}

}  // namespace

std::string how_to_import(const std::string& path, const std::string& text, const std::string& rest) {
  constexpr std::size_t kShown = 3, kRead = 10'000;
  std::string shown;
  std::vector<std::string> steps;
  bool bars = false;  // lines that a progress bar has written over each other
  std::int64_t before = 0;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    if (!looks_like_a_step(line) || steps.size() >= kRead) return;
    bars = bars || number == before;
    before = number;
    steps.push_back(line);
    if (steps.size() <= kShown) shown += fmt::format("\n  {}: {}", number, scenario::shortened(line));
  });
  if (steps.empty()) return {};
  const std::optional<StepDuration> duration = step_duration(steps);
  std::string make =
      "printf 'step_s\\n0.52\\n0.45\\n0.44\\n0.43\\n0.42\\n' > steps.csv    # the seconds of your steps";
  if (duration) {
    const std::string command =
        "sed -nE " + shell_word(fmt::format("s/{}/\\{}/p", duration->pattern, duration->group));
    make = fmt::format("( echo {}; {} ) > steps.csv", duration->milliseconds ? "step_ms" : "step_s",
                       bars ? fmt::format("tr '\\r' '\\n' < {} | {}", shell_word(path), command)
                            : command + ' ' + shell_word(path));
  } else {
    shown +=
        "\nfomoe: none of their numbers is certain to be the time of one step (a rate, a total, a time since "
        "the "
        "start or a place in a source file is none), so write the seconds of each step into a file";
  }
  std::string columns = duration && duration->milliseconds ? " --column step_ms=step_ms" : "";
  constexpr std::size_t kWarmUp = 3;
  if (duration && duration->values <= kWarmUp && rest.find("--warmup") == std::string::npos)
    columns += " --warmup 0";
  return fmt::format(
      "\nfomoe: lines that look like steps:{}\nfomoe: any log can be imported as CSV; for example\n  {}\n  "
      "fomoe "
      "profile import steps.csv --from csv{}{}",
      shown, make, columns, rest);
}

}  // namespace fomoe::step_profiles
