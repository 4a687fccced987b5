#include <fmt/format.h>

#include "experiments/cli/options.hpp"
#include "experiments/commands/profile_command.hpp"
#include "experiments/files/step_profile_io.hpp"
#include "experiments/step_profiles/scale.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

const scenario::Accelerator& accelerator(const char* option, const std::string& name) {
  if (const scenario::Accelerator* found = scenario::find_accelerator(name)) return *found;
  const std::string near = scenario::near_accelerators(name);
  throw UsageError(fmt::format("{}: got \"{}\"; expected {}; for example {} H100-SXM{}", option, name,
                               scenario::known_accelerators(), option,
                               near.empty() ? "" : "; did you mean " + near + "?"));
}

const scenario::Accelerator& source_device(const po::variables_map& values, const std::string& device_name) {
  if (values.count("from")) return accelerator("--from", values["from"].as<std::string>());
  if (const scenario::Accelerator* found = scenario::accelerator_of_device(device_name)) return *found;
  throw UsageError(
      fmt::format("--from: got nothing, and the profile's device \"{}\" is not in the catalogue; expected "
                  "{}; for example --from H100-SXM",
                  device_name, scenario::known_accelerators()));
}

}  // namespace

void run_profile_scale(const Arguments& arguments) {
  po::options_description options("Options");
  // clang-format off
  options.add_options()
    ("to", po::value<std::string>()->value_name("NAME"), "device to scale to (`fomoe list accelerators`); required")
    ("from", po::value<std::string>()->value_name("NAME"), "device that was measured (default: the catalogue's entry for the profile's device name)")
    ("output", po::value<std::string>()->value_name("-|FILE.json"), "file for the scaled profile, or - for stdout; required");
  // clang-format on
  const Help help = {"profile scale",
                     "P.json --to NAME --output Q.json",
                     "Estimates a profile's step times on another device. Forward and backward scale with "
                     "the ratio of the peaks\nin the profile's number format, the optimiser with the ratio "
                     "of the memory bandwidths. Reports mark these\ntimes as assumed.",
                     {"fomoe profile scale titan.json --to H200-SXM --output titan-h200.json"}};
  const auto values = parse(arguments, help, options, "profile");
  if (!values) return;
  if (!values->count("to")) {
    throw UsageError(fmt::format("--to: got nothing; expected {}; for example --to H200-SXM",
                                 scenario::known_accelerators()));
  }
  if (!values->count("output"))
    throw UsageError(
        "--output: got nothing; expected - or a file that ends in .json; for example --output q.json");
  const Output output("--output", (*values)["output"].as<std::string>(), {".json"});
  const scenario::Accelerator& to = accelerator("--to", (*values)["to"].as<std::string>());
  const std::string path = (*values)["profile"].as<std::vector<std::string>>().front();
  const costmodel::StepProfile profile = scenario::read_step_profile(path);
  if (const std::string text = superseded_text(profile); !text.empty()) message("warning: " + text);
  costmodel::StepProfile scaled =
      step_profiles::scaled_profile(profile, source_device(*values, profile.device_name), to);
  scaled.source = "fomoe profile scale";
  for (const std::string& argument : arguments) scaled.source += ' ' + argument;
  output.write(scenario::step_profile_json(scaled));
}

}  // namespace fomoe::commands
