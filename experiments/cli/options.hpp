// Command-line parsing that all commands share: --help, did-you-mean, the scenario's own options.
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
  std::string text;                   // what the command answers
  std::vector<std::string> examples;  // lines that work when pasted in the repository's root
};

/// How many arguments without a dash there are.
enum class Positionals { none, one, several };

/// Arguments without a dash are the positional of that name, and required unless there are none.
/// Nothing where --help was asked for; it has then been printed.
std::optional<boost::program_options::variables_map> parse(
    const Arguments& arguments, const Help& help, boost::program_options::options_description options,
    const std::string& positional, Positionals count = Positionals::one);

/// Adds --set and --seed.
void add_scenario_options(boost::program_options::options_description& options);
/// Reads the positional "scenario" with --set and --seed, and `more` overrides after those of --set.
costmodel::Scenario read_scenario(const boost::program_options::variables_map& values,
                                  const std::vector<std::string>& more = {});

/// Where an answer goes: "" for people on stdout, "-" JSON on stdout, else a file.
class Output {
 public:
  /// Refuses extensions other than `extensions` and folders that do not exist, before any work is done.
  Output(const std::string& option, const std::string& path, const std::vector<std::string>& extensions);
  [[nodiscard]] bool for_people() const { return path_.empty(); }
  [[nodiscard]] bool csv() const { return path_.ends_with(".csv"); }
  void write(const std::string& text) const;

 private:
  std::string path_;
};

/// A line on stderr. Never throws: that nobody can read a message must not change the exit status.
void message(const std::string& line) noexcept;

/// One of `known`, or a UsageError with did-you-mean.
std::string choice(const std::string& what, const std::string& value, const std::vector<std::string>& known);

}  // namespace fomoe::commands
