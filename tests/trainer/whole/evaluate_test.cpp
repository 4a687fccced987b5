// Tests that numbers which JSON cannot hold are refused with a sentence, and never written as null.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/trainer/support.hpp"
#include "trainer/commands/evaluate_command.hpp"
#include "trainer/model/parameters.hpp"
#include "trainer/record/last_norms.hpp"
#include "trainer/whole/exported_model.hpp"

using namespace fomoe::trainer;
namespace fs = std::filesystem;

namespace {

const std::string kScenario = FOMOE_SOURCE_DIR "/experiments/scenarios/tiny-training.toml";

/// A model of the scenario's shape, each of whose parameters has the same value everywhere.
WholeModel constant_model(double value) {
  WholeModel whole;
  fomoe::costmodel::ModelShape& shape = whole.shape;
  shape.name = "custom";
  shape.d_model = shape.sequence_length = 64;
  shape.layers = shape.heads = shape.active_experts = 2;
  shape.experts = 8;
  shape.d_expert = 32;
  shape.vocabulary = 256;
  for (const ParameterSpec& spec : parameter_specs(shape, {}))
    whole.tensors.emplace(spec.name(), at::full(spec.sizes, value));
  return whole;
}

}  // namespace

TEST_CASE("evaluate refuses a loss that is not a number, and writes no file") {
  const fs::path folder = fs::temp_directory_path() / ("fomoe-evaluate-" + std::to_string(::getpid()));
  const auto evaluate = [&](double value) {
    write_exported(constant_model(value), (folder / "model").string());
    return evaluate_command(
        {(folder / "model").string(), "--scenario", kScenario, "--output", (folder / "loss.json").string()});
  };
  std::string said;
  try {
    evaluate(std::numeric_limits<double>::infinity());
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said.find("/model: its loss on the validation sequences, ") != std::string::npos);
  CHECK(said.find("or its perplexity is not a finite number") != std::string::npos);
  CHECK(!fs::exists(folder / "loss.json"));
  CHECK(evaluate(0.5) == 0);
  CHECK(fs::exists(folder / "loss.json"));
  // Not std::filesystem::remove_all: it crashes in programs that link LibTorch, which brings its own.
  (void)!std::system(("rm -r " + folder.string()).c_str());
}

TEST_CASE("evaluate names the data that it read, with and without trainer.data") {
  const fs::path folder = fs::temp_directory_path() / ("fomoe-evaluated-" + std::to_string(::getpid()));
  const std::string model = (folder / "model").string(), answer = (folder / "loss.json").string();
  write_exported(constant_model(0.5), model);
  const auto data = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> command = {model, "--scenario", kScenario, "--output", answer};
    for (const std::string& setting : settings) {
      command.emplace_back("--set");
      command.push_back(setting);
    }
    REQUIRE(evaluate_command(command) == 0);
    std::ifstream file(answer);
    return nlohmann::json::parse(file)["data"].get<std::string>();
  };
  for (const char* name : {"text.bin", "held-out.bin"}) {
    const std::vector<std::uint16_t> ids(name[0] == 't' ? 50'000 : 20'000, 7);
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(2 * ids.size()));
  }
  const std::string text = "trainer.data=" + (folder / "text.bin").string(),
                    held_out = "trainer.validation_data=" + (folder / "held-out.bin").string(),
                    name = "/held-out.bin, 20,000 tokens";
  CHECK(data({}).starts_with("synthetic: a Markov chain"));
  CHECK(data({text}).ends_with("/text.bin, 50,000 tokens"));
  CHECK(data({held_out}).ends_with(name));
  CHECK(data({text, held_out}).ends_with(name));
  (void)!std::system(("rm -r " + folder.string()).c_str());
}

TEST_CASE("a norm that is not a number is named, and one that was not measured is none") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(not_finite({}) == nullptr);
  CHECK(not_finite({1, 2, 3, 4}) == nullptr);
  CHECK(std::string(not_finite({1, kInfinity, 3, 4})) == "the norm of its updates");
  CHECK(std::string(not_finite({{}, {}, {}, -kInfinity})) == "the norm of its outer update");
}
