#include "trainer/commands/export_command.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/whole/checkpointed_model.hpp"
#include "trainer/whole/exported_model.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kExportExamples = R"(
Examples
  fomoe-train export checkpoints --output exported
  fomoe-train export checkpoints --round 12 --output exported

The folder then has model.safetensors and config.json, with the names of Hugging Face's transformers, and
modeling_fomoe.py, so that AutoModelForCausalLM.from_pretrained("exported", trust_remote_code=True) loads it. To
train on from it, set trainer.initial_weights to the folder.
)";

namespace fs = std::filesystem;

/// The files of the tokenizer that `given` names: a tokenizer.json, or a folder with one and what else
/// transformers keep beside it.
std::vector<fs::path> tokenizer_files(const std::string& given) {
  const fs::path path(given);
  if (fs::is_regular_file(path) && path.extension() == ".json") return {path};
  std::vector<fs::path> files;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    if (fs::is_regular_file(path / name)) files.push_back(path / name);
  }
  if (files.empty() || files.front().filename() != "tokenizer.json")
    throw UsageError("--tokenizer: got \"" + given +
                     "\"; expected a file tokenizer.json or a folder with one; for example --tokenizer "
                     "corpus/tokenizer.json");
  return files;
}

void copy_tokenizer(const std::vector<fs::path>& files, const std::string& folder) {
  bool configured = false;
  for (const fs::path& file : files) {
    const std::string name = files.size() == 1 ? "tokenizer.json" : file.filename().string();
    configured = configured || name == "tokenizer_config.json";
    write_file(folder + "/" + name, whole_file(file.string()).value());
  }
  // Without this file, AutoTokenizer looks for a tokenizer that belongs to the model's type.
  if (!configured && !files.empty())
    write_file(folder + "/tokenizer_config.json", "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n");
}

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
    ("tokenizer", po::value<std::string>()->value_name("FILE|FOLDER"), "tokenizer.json with which the data were made, or a folder with it; it is copied beside the weights")
    ("output", po::value<std::string>()->value_name("FOLDER"), "the folder to write; it is made if it does not exist");
  // clang-format on
  const auto parsed = parse_command("export", options, "checkpoints", arguments, kExportExamples);
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
  const std::vector<fs::path> tokenizer = given.count("tokenizer")
                                              ? tokenizer_files(given["tokenizer"].as<std::string>())
                                              : std::vector<fs::path>();
  const WholeModel whole = read_checkpointed(given["checkpoints"].as<std::string>(), round);
  write_exported(whole, output);
  copy_tokenizer(tokenizer, output);
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
