#include <fmt/format.h>

#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/files/xml_loader.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/file_claims.hpp"
#include "sim/xml/xml_platform.hpp"

namespace fomoe::commands {

namespace {

void print_help() {
  fmt::print(
      "fomoe: predicts the time and cost of cross-site mixture-of-experts training\n\n"
      "Usage: fomoe COMMAND [options]\n\nCommands:\n");
  for (const auto& command : kCommands) fmt::print("  {:<9} {}\n", command.name, command.sentence);
  fmt::print(
      "\nfomoe COMMAND --help explains a command, and fomoe --version prints the version.\n\nExamples:\n"
      "  fomoe simulate experiments/scenarios/two-sites.toml\n"
      "  fomoe list keys\n"
      "  fomoe plan experiments/scenarios/four-regions.toml --within cost=4000USD\n"
      "With --output run.json an answer is written to a file, and `fomoe report run.json --output "
      "report.html` "
      "makes a page from it.\n"
      "The exit status is 0 for success, 2 for wrong input, 3 if nothing meets --within or --target, and 1 "
      "for\n"
      "any other failure.\n");
}

}  // namespace

void run(const Arguments& arguments) {
  const FileClaims claims;
  scenario::use_xml_platform_loader(sim::read_xml_platform);
  if (arguments.empty()) throw UsageError("expected a command; see fomoe --help");
  const std::string& name = arguments.front();
  if (name == "--version") return fmt::print("fomoe {}\n", FOMOE_VERSION);
  if (name == "--help" || name == "-h" || name == "help") return print_help();
  std::vector<std::string> names;
  for (const auto& command : kCommands) {
    if (command.name == name) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  std::string meant = scenario::nearest(name, names);
  for (const std::string& known : names) {
    if (name.size() >= 3 && known.starts_with(name)) meant = known;  // an abbreviation such as "sim"
  }
  throw UsageError(fmt::format("{}: unknown command; expected one of {}; for example fomoe list methods{}",
                               name, scenario::joined(names),
                               meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace fomoe::commands
