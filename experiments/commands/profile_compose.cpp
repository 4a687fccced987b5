#include <fmt/format.h>

#include "experiments/cli/options.hpp"
#include "experiments/commands/profile_command.hpp"
#include "experiments/files/step_profile_io.hpp"
#include "experiments/step_profiles/compose.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

std::int64_t layers_of(const po::variables_map& values) {
  const std::string text = values.count("layers") ? values["layers"].as<std::string>() : "";
  if (const auto layers = parse_number<std::int64_t>(text); layers && *layers >= 1 && *layers <= 100'000)
    return *layers;
  throw UsageError(
      fmt::format("--layers: got {}; expected a whole number from 1 to 100000; for example --layers 128",
                  text.empty() ? "nothing" : '"' + text + '"'));
}

}  // namespace

void run_profile_compose(const Arguments& arguments) {
  po::options_description options("Options");
  // clang-format off
  options.add_options()
    ("layers", po::value<std::string>()->value_name("N"), "number of layers of the deep model; required")
    ("output", po::value<std::string>()->value_name("-|FILE.json"), "file for the composed profile, or - for stdout; required");
  // clang-format on
  const Help help = {"profile compose",
                     "SHALLOW.json DEEP.json --layers N --output P.json",
                     "Computes the step times of a deep model from those of two shallow models that differ "
                     "only in their number\nof layers. The difference of the two gives the time of one "
                     "layer; embedding and head count once. Reports\nmark these times as computed.",
                     {"fomoe profile compose large-2.json large-4.json --layers 128 --output large.json"}};
  const auto values = parse(arguments, help, options, "profile", Positionals::several);
  if (!values) return;
  const auto& paths = (*values)["profile"].as<std::vector<std::string>>();
  if (paths.size() != 2)
    throw UsageError(
        fmt::format("expected two profiles, got {}; for example {}", paths.size(), help.examples.front()));
  const std::int64_t layers = layers_of(*values);
  if (!values->count("output"))
    throw UsageError(
        "--output: got nothing; expected - or a file that ends in .json; for example --output large.json");
  const Output output("--output", (*values)["output"].as<std::string>(), {".json"});
  costmodel::StepProfile composed = step_profiles::composed_profile(
      scenario::read_step_profile(paths[0]), scenario::read_step_profile(paths[1]), layers);
  if (const std::string text = superseded_text(composed); !text.empty()) message("warning: " + text);
  composed.source = "fomoe profile compose";
  for (const std::string& argument : arguments) composed.source += ' ' + argument;
  output.write(scenario::step_profile_json(composed));
}

}  // namespace fomoe::commands
