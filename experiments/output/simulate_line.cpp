#include "experiments/output/simulate_line.hpp"

#include <algorithm>

namespace fomoe::commands {

std::string shell_word(const std::string& assignment) {
  std::string text = assignment;
  // Axes contain words with the quotes of TOML. On the command line, --set reads a word without quotes as a
  // string, so the quotes are left out.
  const std::size_t equals = text.find('=');
  if (text.size() > equals + 2 && text[equals + 1] == '\'' && text.back() == '\'')
    text = text.substr(0, equals + 1) + text.substr(equals + 2, text.size() - equals - 3);
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "_-+=.,:/@%") == std::string::npos;
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string simulate_line(const planner::Question& question, const planner::Finalist& finalist) {
  std::string line = "fomoe simulate " + shell_word(question.scenario_path);
  for (const std::string& assignment : question.overrides) {
    // The candidate's settings override those of the question. "!KEY" takes a key or a table out.
    const bool unset = assignment.starts_with('!');
    const std::string key = unset ? assignment.substr(1) : assignment.substr(0, assignment.find('='));
    const bool again =
        std::any_of(finalist.settings.begin(), finalist.settings.end(),
                    [&](const std::string& setting) { return setting.starts_with(key + '='); });
    if (!again) line += unset ? " --unset " + shell_word(key) : " --set " + shell_word(assignment);
  }
  for (const std::string& setting : finalist.settings) line += " --set " + shell_word(setting);
  return line;
}

}  // namespace fomoe::commands
