#include "experiments/cli/options.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>

#include "costmodel/compose/warnings.hpp"
#include "experiments/cli/answer.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

void print_help(const Help& help, const po::options_description& options) {
  std::ostringstream table;
  table << options;
  fmt::print("Usage: fomoe {} {}\nFor example: {}\n\n{}\n\n{}\nExamples:\n", help.command, help.usage,
             help.examples.front(), help.text, table.str());
  for (const std::string& example : help.examples) fmt::print("  {}\n", example);
}

std::string mean(const std::string& typed, const po::options_description& options) {
  std::vector<std::string> known;
  for (const auto& option : options.options()) known.push_back("--" + option->long_name());
  const std::string meant = scenario::nearest(typed, known);
  return meant.empty() ? "known: " + scenario::joined(known) : "did you mean " + meant + "?";
}

}  // namespace

std::optional<po::variables_map> parse(const Arguments& arguments, const Help& help,
                                       po::options_description options, const std::string& positional,
                                       Positionals count) {
  options.add_options()("help,h", "print this help and exit");
  for (const std::string& argument : arguments) {
    // This runs before parsing, so that `fomoe simulate --help` does not complain about the missing scenario.
    if (argument == "--help" || argument == "-h") {
      print_help(help, options);
      return std::nullopt;
    }
  }
  po::options_description all = options;
  all.add_options()(positional.c_str(), po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add(positional.c_str(), -1);
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  const std::string see = fmt::format("; see fomoe {} --help", help.command);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(positions).style(style).run(),
              values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    throw UsageError(fmt::format("{}: unknown option; {}{}", error.get_option_name(),
                                 mean(error.get_option_name(), options), see));
  } catch (const po::error& error) {
    throw UsageError(error.what() + see);
  }
  const std::size_t given =
      values.count(positional) ? values[positional].as<std::vector<std::string>>().size() : 0;
  if (count == Positionals::none) {
    if (given == 0) return values;
    throw UsageError(fmt::format("got \"{}\"; expected only options{}",
                                 values[positional].as<std::vector<std::string>>().front(), see));
  }
  if (given == 0 || (given > 1 && count == Positionals::one)) {
    throw UsageError(fmt::format("expected {} {}, got {}; for example {}",
                                 count == Positionals::one ? "one" : "at least one", positional, given,
                                 help.examples.front()));
  }
  return values;
}

void add_scenario_options(po::options_description& options) {
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
                        "override a key of the scenario; may be given several times; a word without quotes "
                        "is a string (`fomoe list keys` prints all keys)")(
      "unset", po::value<std::vector<std::string>>()->value_name("KEY"),
      "ignore a key of the scenario file; may be given several times")(
      "seed", po::value<std::string>()->value_name("N"),
      "override the scenario's seed (default: the scenario's seed, or 42)");
}

std::vector<std::string> overrides_of(const po::variables_map& values) {
  std::vector<std::string> overrides;
  if (values.count("unset")) {
    for (const std::string& key : values["unset"].as<std::vector<std::string>>())
      overrides.push_back('!' + key);
  }
  if (values.count("set")) {
    const auto& set = values["set"].as<std::vector<std::string>>();
    overrides.insert(overrides.end(), set.begin(), set.end());
  }
  // --seed N sets the key `seed`, so that it is checked and reported like every other key.
  if (values.count("seed")) overrides.push_back("seed=" + values["seed"].as<std::string>());
  return overrides;
}

costmodel::Scenario read_scenario(const po::variables_map& values, const std::vector<std::string>& more) {
  scenario::ReadOptions options;
  options.overrides = overrides_of(values);
  options.overrides.insert(options.overrides.end(), more.begin(), more.end());
  costmodel::Scenario read =
      scenario::read_scenario(values["scenario"].as<std::vector<std::string>>().front(), options);
  warn_about(read);
  return read;
}

void warn_about(const costmodel::Scenario& scenario) {
  static std::set<std::string> said;  // `solve`, `compare` and others read a scenario many times
  for (const std::string& line : costmodel::warnings_about(scenario)) {
    if (said.insert(line).second) message("warning: " + line);
  }
}

Output::Output(const std::string& option, const std::string& path, const std::vector<std::string>& extensions)
    : path_(path) {
  if (path_.empty() || path_ == "-") return;
  const std::filesystem::path file(path_);
  bool known = false;
  for (const std::string& extension : extensions) known = known || file.extension() == extension;
  if (!known) {
    throw UsageError(
        fmt::format("{}: got \"{}\"; expected - or a file that ends in {}; for example {} result{}", option,
                    path_, scenario::joined(extensions, " or "), option, extensions.front()));
  }
  const std::filesystem::path folder = file.parent_path();
  if (!folder.empty() && !is_folder(folder.string())) {
    throw UsageError(fmt::format(
        "{}: got \"{}\", in a folder that does not exist; expected an existing folder; for example "
        "mkdir -p {}",
        option, path_, folder.string()));
  }
  claim_output(option, path_);
}

void Output::write(const std::string& text) const {
  if (path_.empty() || path_ == "-") {
    scenario::write_answer(text);
    return;
  }
  write_file(path_, text);
  message("wrote " + path_);
}

void refuse_plot_beside_json(const po::variable_value& output) {
  if (output.defaulted() || output.as<std::string>() != "-") return;
  throw UsageError(
      "--plot: got this option with --output -, which writes JSON to stdout; expected one of them on stdout; "
      "for example --plot --output result.json");
}

void message(const std::string& line) noexcept {
  std::fprintf(stderr, "%s\n", line.c_str());  // one write, so that lines of several processes stay whole
}

std::string choice(const std::string& what, const std::string& value, const std::vector<std::string>& known,
                   const std::string& rest) {
  for (const std::string& name : known) {
    if (name == value) return value;
  }
  const std::string meant = scenario::nearest(value, known);
  throw UsageError(fmt::format("{}: got \"{}\"; expected one of {}; for example {} {}{}{}", what, value,
                               scenario::joined(known), what, known.front(), rest,
                               meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace fomoe::commands
