#include "experiments/step_profiles/logs/unknown_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/logs/log_text.hpp"

namespace fomoe::step_profiles {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool contains_any(const std::string& text, const std::vector<const char*>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

bool looks_like_a_step(const std::string& line) {
  const std::string text = lower(line);
  return std::any_of(text.begin(), text.end(), digit) && contains_any(text, {"step", "iter", "batch"}) &&
         contains_any(text, {"time", "sec", " ms", "ms ", "/s", "dt", "loss", "tok", "took"});
}

/// Where a line states the duration of a step: the label before the number, and its unit.
struct Duration {
  std::string label;
  bool milliseconds = false;
};

/// The letters after a number: "ms" in "338.65ms" and in "338.65 ms".
std::string unit_after(const std::string& line, std::size_t at) {
  while (at < line.size() && line[at] == ' ') ++at;
  std::string unit;
  while (at < line.size() && letter(line[at])) unit += line[at++];
  return unit;
}

/// The words between the previous separator and the number, with "=" or ":".
std::string label_before(const std::string& line, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && (line[begin - 1] == ' ' || line[begin - 1] == ':' || line[begin - 1] == '=')) --begin;
  // A unit in parentheses is part of the label: "iter time (s): 1.2".
  if (const std::size_t open = line.rfind('(', begin);
      begin > 0 && line[begin - 1] == ')' && open != std::string::npos)
    begin = open;
  while (begin > 0 && std::string_view("|,;\t()[]{}").find(line[begin - 1]) == std::string_view::npos &&
         !(line[begin - 1] == ' ' && begin > 1 &&
           (digit(line[begin - 2]) || line[begin - 2] == ' ' || line[begin - 2] == '%')))
    --begin;
  std::string label = line.substr(begin, at - begin);
  label.erase(0, std::min(label.find_first_not_of(' '), label.size()));
  return label;
}

std::optional<Duration> duration_in(const std::string& line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!digit(line[at]) || (at > 0 && (digit(line[at - 1]) || line[at - 1] == '.' || line[at - 1] == ',' ||
                                        letter(line[at - 1]))))
      continue;
    const std::size_t end = std::min(line.find_first_not_of("0123456789.", at), line.size());
    const std::string label = label_before(line, at), unit = lower(unit_after(line, end)),
                      said = lower(label);
    if (label.empty() || contains_any(said, {"tok", "samples", "flop", "/s", "loss", "lr", "eta", "per sec"}))
      continue;
    const bool ms = unit == "ms" || contains_any(said, {"(ms)", "_ms", "millisec"});
    const bool s = unit == "s" || unit == "sec" || unit == "secs" || unit == "seconds" ||
                   contains_any(said, {"time", "dt", "sec", "duration", "elapsed", "took", "(s)"});
    if (ms || s) return Duration{label, ms};
  }
  return std::nullopt;
}

/// The label as an extended regular expression of sed, with any blanks between its words and any numbers in
/// them.
std::string as_pattern(const std::string& label) {
  std::string pattern;
  for (const char c : label) {
    if (c == ' ') {
      if (!pattern.ends_with(" *")) pattern += " *";
    } else if (digit(c)) {
      if (!pattern.ends_with("[0-9]+")) pattern += "[0-9]+";
    } else if (c == '\\' || c == '^' || c == '/') {
      pattern += '.';
    } else if (std::string_view(".[]*$()+?{}|").find(c) != std::string_view::npos) {
      pattern += std::string("[") + c + ']';
    } else {
      pattern += c;
    }
  }
  return pattern;
}

}  // namespace

std::string how_to_import(const std::string& path, const std::string& text, const std::string& rest) {
  constexpr std::size_t kShown = 3;
  std::string lines;
  std::size_t steps = 0;
  std::optional<Duration> duration;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    if (!looks_like_a_step(line) || ++steps > kShown) return;
    lines += fmt::format("\n  {}: {}", number, scenario::shortened(line));
    if (!duration) duration = duration_in(line);
  });
  if (steps == 0) return {};
  std::string make =
      "printf 'step_s\\n0.52\\n0.45\\n0.44\\n0.43\\n0.42\\n' > steps.csv    # the seconds of your steps";
  if (duration) {
    make =
        fmt::format("( echo {}; sed -nE {} {} ) > steps.csv", duration->milliseconds ? "step_ms" : "step_s",
                    shell_word(fmt::format("s/.*{}([0-9]+[.]?[0-9]*).*/\\1/p", as_pattern(duration->label))),
                    shell_word(path));
  }
  std::string columns = duration && duration->milliseconds ? " --column step_ms=step_ms" : "";
  constexpr std::size_t kWarmUp = 3;
  if (duration && steps <= kWarmUp && rest.find("--warmup") == std::string::npos) columns += " --warmup 0";
  return fmt::format(
      "\nfomoe: lines that look like steps:{}\nfomoe: any log can be imported as CSV; for example\n  {}\n  "
      "fomoe "
      "profile import steps.csv --from csv{}{}",
      lines, make, columns, rest);
}

}  // namespace fomoe::step_profiles
