// Command-line parsing for all commands: --help, suggestions for mistyped options, and the scenario options.
#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/cli/command.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::commands {

struct Help {
  std::string command;                // "simulate"
  std::string usage;                  // "S.toml [options]"
  std::string text;                   // a summary of the command
  std::vector<std::string> examples;  // command lines that work in the repository's root
};

/// The number of positional arguments that a command takes.
enum class Positionals { none, one, several };

/// Parses options and positional arguments. Positional arguments are stored under the name `positional`.
/// Unless `count` is none, at least one is required. Returns nothing if --help was given; the help has then
/// been printed.
std::optional<boost::program_options::variables_map> parse(
    const Arguments& arguments, const Help& help, boost::program_options::options_description options,
    const std::string& positional, Positionals count = Positionals::one);

/// The overrides that --set, --unset and --seed give, as ReadOptions takes them.
std::vector<std::string> overrides_of(const boost::program_options::variables_map& values);

/// Adds --set, --unset and --seed.
void add_scenario_options(boost::program_options::options_description& options);
/// Reads the scenario file that the positional argument "scenario" names, and applies --set, --seed and then
/// the overrides in `more`.
costmodel::Scenario read_scenario(const boost::program_options::variables_map& values,
                                  const std::vector<std::string>& more = {});

/// Prints what a user must know before an answer about the scenario (costmodel/compose/warnings.hpp) on
/// stderr, each sentence once in a run of the program.
void warn_about(const costmodel::Scenario& scenario);

/// The destination of an answer: "" is text for people on stdout, "-" is JSON on stdout, anything else is a
/// file.
class Output {
 public:
  /// Throws UsageError for other extensions than `extensions`, for a folder that does not exist, and for a
  /// file that is also an input or another output of the command, before any work is done.
  Output(const std::string& option, const std::string& path, const std::vector<std::string>& extensions);
  [[nodiscard]] bool for_people() const { return path_.empty(); }
  [[nodiscard]] bool csv() const { return path_.ends_with(".csv"); }
  void write(const std::string& text) const;

 private:
  std::string path_;
};

/// Throws UsageError if `output` is a given --output -, because stdout cannot take JSON and --plot.
void refuse_plot_beside_json(const boost::program_options::variable_value& output);

/// Prints a line on stderr. Never throws, because a message that cannot be printed must not change the exit
/// status.
void message(const std::string& line) noexcept;

/// Returns `value` if it is in `known`; otherwise throws UsageError with a suggestion. `rest` follows the
/// name in the example, such as "=0.02".
std::string choice(const std::string& what, const std::string& value, const std::vector<std::string>& known,
                   const std::string& rest = "");

}  // namespace fomoe::commands
