// fomoe: plans cross-site mixture-of-experts training. Answers on stdout, messages on stderr;
// exit status 0, 2 where the input is wrong, 1 for anything else.
#include <fmt/format.h>

#include <exception>
#include <string>
#include <vector>

#include "experiments/commands/command.hpp"
#include "experiments/commands/options.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/suggest.hpp"
#include "experiments/scenario/xml_loader.hpp"
#include "platforms/input_error.hpp"
#include "sim/xml_platform.hpp"

namespace {

constexpr int kWrongInput = 2, kFailure = 1;

void print_help() {
  fmt::print(
      "fomoe: what cross-site mixture-of-experts training costs, before you rent the sites\n\n"
      "Usage: fomoe COMMAND [options]\n\nCommands:\n");
  for (const auto& command : fomoe::commands::kCommands)
    fmt::print("  {:<9} {}\n", command.name, command.sentence);
  fmt::print(
      "\nfomoe COMMAND --help explains a command.\n\nExamples:\n"
      "  fomoe simulate experiments/scenarios/two-sites.toml\n"
      "  fomoe list methods\n");
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw fomoe::commands::UsageError("expected a command; see fomoe --help");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") return print_help();
  std::vector<std::string> names;
  for (const auto& command : fomoe::commands::kCommands) {
    if (command.name == name) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  const std::string meant = fomoe::scenario::nearest(name, names);
  throw fomoe::commands::UsageError(
      fmt::format("{}: unknown command; expected one of {}; for example fomoe list methods{}", name,
                  fomoe::scenario::joined(names), meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    fomoe::scenario::use_xml_platform_loader(fomoe::sim::read_xml_platform);
    run({argv + 1, argv + argc});
    // A full disk or a closed pipe must not look like an answer.
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot be written");
    return 0;
  } catch (const fomoe::scenario::FileError& error) {
    fomoe::commands::message(error.what());  // begins with file:line, where editors look for it
    return kWrongInput;
  } catch (const fomoe::InputError& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kWrongInput;
  } catch (const fomoe::commands::UsageError& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kWrongInput;
  } catch (const std::exception& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kFailure;
  }
}
