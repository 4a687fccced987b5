#include "experiments/step_profiles/logs/step_durations.hpp"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace fomoe::step_profiles {
namespace {

/// How sure it is that a number is the time of one step.
enum class Sureness { unit_per_step, named, duration };

struct Candidate {
  StepDuration duration;
  Sureness sureness = Sureness::duration;
  std::string number;  // as the first line has it
};

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool holds_any(const std::string& text, const std::vector<const char*>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

/// The letters after a number, "ms" in "338.65ms" and in "338.65 ms", with those after a slash: "s/it".
std::string unit_after(const std::string& line, std::size_t at) {
  while (at < line.size() && line[at] == ' ') ++at;
  std::string unit;
  while (at < line.size() &&
         (is_letter(line[at]) || (line[at] == '/' && !unit.empty() && unit.find('/') == std::string::npos)))
    unit += line[at++];
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
           (is_digit(line[begin - 2]) || line[begin - 2] == ' ' || line[begin - 2] == '%')))
    --begin;
  std::string label = line.substr(begin, at - begin);
  label.erase(0, std::min(label.find_first_not_of(' '), label.size()));
  return label;
}

/// The text as an extended regular expression of sed, with any blanks between its words and any numbers in
/// them.
std::string as_pattern(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    if (c == ' ') {
      if (!pattern.ends_with(" *")) pattern += " *";
    } else if (is_digit(c)) {
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

constexpr const char* kNumber = "([0-9]+[.]?[0-9]*)";

/// "s/it", "ms/step", "sec/iter": whether in milliseconds; empty for any other unit.
std::optional<bool> milliseconds_per_step(const std::string& unit) {
  const std::size_t slash = unit.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string time = unit.substr(0, slash), per = unit.substr(slash + 1);
  const bool step = holds_any(per, {"it", "step", "batch"});
  if (step && time == "ms") return true;
  if (step && (time == "s" || time == "sec" || time == "secs" || time == "seconds")) return false;
  return std::nullopt;
}

std::optional<Candidate> candidate_at(const std::string& line, std::size_t at, std::size_t end) {
  // A part of a date, a clock time, a fraction, a percentage, or a number with commas between thousands.
  const char next = end < line.size() ? line[end] : ' ';
  if (next == '/' || next == ':' || next == '-' || next == '%' || next == '_' ||
      (next == ',' && end + 1 < line.size() && is_digit(line[end + 1])))
    return std::nullopt;
  Candidate found;
  found.number = line.substr(at, end - at);
  const std::string written = unit_after(line, end), unit = lower_case(written);
  if (const std::optional<bool> ms = milliseconds_per_step(unit)) {
    found.sureness = Sureness::unit_per_step;
    found.duration = {fmt::format("(^|.*[^0-9.]){} *{}.*", kNumber, as_pattern(written)), 2, *ms, 0};
    return found;
  }
  const std::string label = label_before(line, at), said = lower_case(label);
  if (label.empty() ||
      holds_any(said, {"tok", "samples", "flop", "/s", "loss", "lr", "eta", "per sec", ".py", "time/",
                       "timestamp", "total", "remain", "left", "run time", "runtime", "per_sec"}))
    return std::nullopt;
  // "elapsed time per iteration" is the time of one step, "elapsed" alone that of the run.
  const bool per_step =
      holds_any(said, {"per it", "per step", "per batch", "per_it", "per_step", "per_batch"});
  if (!per_step && holds_any(said, {"elapsed", "since"})) return std::nullopt;
  const bool ms = unit == "ms" || holds_any(said, {"(ms)", "_ms", "millisec"});
  const bool s = unit == "s" || unit == "sec" || unit == "secs" || unit == "seconds" ||
                 holds_any(said, {"time", "dt", "sec", "duration", "elapsed", "took", "(s)"});
  if (!ms && !s) return std::nullopt;
  const bool of_step = holds_any(said, {"step", "iter", "batch"}) &&
                       holds_any(said, {"time", "avg", "dt", "dur", "sec", "(s)", "ms", "took"});
  found.sureness = per_step || of_step ? Sureness::named : Sureness::duration;
  found.duration = {fmt::format(".*{}{}.*", as_pattern(label), kNumber), 1, ms, 0};
  return found;
}

std::vector<Candidate> candidates_in(const std::string& line) {
  std::vector<Candidate> found;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!is_digit(line[at]) || (at > 0 && (is_digit(line[at - 1]) || line[at - 1] == '.' ||
                                           line[at - 1] == ',' || is_letter(line[at - 1]))))
      continue;
    const std::size_t end = std::min(line.find_first_not_of("0123456789.", at), line.size());
    if (const std::optional<Candidate> one = candidate_at(line, at, end)) found.push_back(*one);
  }
  return found;
}

/// The numbers that sed prints.
std::vector<std::string> printed(const StepDuration& duration, const std::vector<std::string>& lines) {
  std::vector<std::string> numbers;
  regex_t compiled;
  if (regcomp(&compiled, duration.pattern.c_str(), REG_EXTENDED) != 0) return numbers;
  regmatch_t groups[3];
  for (const std::string& line : lines) {
    if (regexec(&compiled, line.c_str(), 3, groups, 0) != 0) continue;
    const regmatch_t& group = groups[duration.group];
    numbers.push_back(line.substr(static_cast<std::size_t>(group.rm_so),
                                  static_cast<std::size_t>(group.rm_eo - group.rm_so)));
  }
  regfree(&compiled);
  return numbers;
}

/// Whether the numbers grow from each line to the next. Two or three times of steps do so by chance, but not
/// to more than the double.
bool counts_from_the_start(const std::vector<double>& values) {
  if (values.size() < 2) return false;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= values[i - 1]) return false;
  }
  constexpr std::size_t kChance = 5;  // of 120 orders, one grows
  return values.size() >= kChance || values.back() >= 1.5 * values.front();
}

}  // namespace

std::optional<StepDuration> step_duration(const std::vector<std::string>& lines) {
  constexpr std::size_t kTried = 50;  // a log states the times of its first steps
  std::vector<Candidate> tried;
  for (std::size_t i = 0; i < std::min(lines.size(), kTried); ++i) {
    for (Candidate& one : candidates_in(lines[i])) {
      const bool known = std::any_of(tried.begin(), tried.end(), [&](const Candidate& other) {
        return other.duration.pattern == one.duration.pattern;
      });
      if (known) continue;
      const std::vector<std::string> numbers = printed(one.duration, lines);
      // Another number of the line may have the same label; sed prints the last one.
      if (numbers.empty() || printed(one.duration, {lines[i]}) != std::vector<std::string>{one.number})
        continue;
      std::vector<double> values;
      for (const std::string& number : numbers) values.push_back(std::strtod(number.c_str(), nullptr));
      if (*std::min_element(values.begin(), values.end()) <= 0 || counts_from_the_start(values)) continue;
      one.duration.values = values.size();
      tried.push_back(std::move(one));
    }
  }
  const auto better = [](const Candidate& a, const Candidate& b) { return a.sureness < b.sureness; };
  const auto best = std::min_element(tried.begin(), tried.end(), better);  // the first of equally sure ones
  if (best == tried.end()) return std::nullopt;
  return best->duration;
}

}  // namespace fomoe::step_profiles
