#include "trainer/commands/export_command.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>

#include "platforms/support/input_error.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/whole/checkpointed_model.hpp"
#include "trainer/whole/exported_model.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kExamples = R"(
Examples
  fomoe-train export checkpoints --output exported
  fomoe-train export checkpoints --round 12 --output exported

The folder then has model.safetensors and config.json, with the names of Hugging Face's transformers. To train
on from it, set trainer.initial_weights to the folder.
)";

}  // namespace

int export_command(const std::vector<std::string>& arguments) {
  po::options_description options(
      "fomoe-train export CHECKPOINTS [options]: puts the experts of all sites together and writes the whole "
      "model for other programs. CHECKPOINTS is the directory of `fomoe-train run --checkpoints`, with "
      "the files of all sites");
  // clang-format off
  options.add_options()
    ("help", "print this help")
    ("round", po::value<std::int64_t>()->value_name("N"), "the state after this round (default: the newest one that has the files of all sites)")
    ("output", po::value<std::string>()->value_name("FOLDER"), "the folder to write; it is made if it does not exist");
  // clang-format on
  const auto parsed = parse_command("export", options, "checkpoints", arguments, kExamples);
  if (!parsed) return 0;
  const po::variables_map& given = *parsed;
  for (const char* needed : {"checkpoints", "output"}) {
    if (!given.count(needed))
      throw UsageError(std::string(needed) == "output"
                           ? "--output: got nothing; expected a folder; for example --output exported"
                           : "CHECKPOINTS: got nothing; expected the directory of `fomoe-train run "
                             "--checkpoints`; for example fomoe-train export checkpoints --output exported");
  }
  std::optional<std::int64_t> round;
  if (given.count("round")) round = given["round"].as<std::int64_t>();
  const std::string output = given["output"].as<std::string>();
  if (std::filesystem::exists(output) && !std::filesystem::is_directory(output))
    throw UsageError("--output: got \"" + output +
                     "\", a file; expected a folder; for example --output exported");
  const WholeModel whole = read_checkpointed(given["checkpoints"].as<std::string>(), round);
  write_exported(whole, output);
  std::int64_t parameters = 0, averaged = 0;
  for (const ParameterSpec& spec : parameter_specs(whole.shape, {{}, whole.skip_token})) {
    parameters += spec.elements();
    averaged += std::count(whole.averaged.begin(), whole.averaged.end(), spec.name()) > 0 ? 1 : 0;
  }
  std::cerr << "wrote " << parameters << " parameters after " << whole.rounds << " rounds and " << whole.steps
            << " steps to " << output << '\n';
  if (averaged > 0)
    std::cerr << averaged << " tensors are means over sites that hold different values of them\n";
  return 0;
}

}  // namespace fomoe::trainer
