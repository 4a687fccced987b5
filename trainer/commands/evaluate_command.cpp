#include "trainer/commands/evaluate_command.hpp"

#include <boost/program_options.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "costmodel/compose/make_plan.hpp"
#include "experiments/json/json.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/run_data.hpp"
#include "trainer/run/starting_point.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/whole/checkpointed_model.hpp"
#include "trainer/whole/evaluation.hpp"
#include "trainer/whole/exported_model.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kEvaluateExamples = R"(
Examples
  fomoe-train evaluate checkpoints --scenario experiments/scenarios/tiny-training.toml
  fomoe-train evaluate exported --scenario S.toml --set trainer.validation_data=held-out.bin --output -
)";

WholeModel read_model(const std::string& folder) {
  return std::filesystem::exists(folder + "/config.json") ? read_exported(folder) : read_checkpointed(folder);
}

}  // namespace

int evaluate_command(const std::vector<std::string>& arguments) {
  po::options_description options(
      "fomoe-train evaluate MODEL --scenario SCENARIO.toml [options]: the loss of a whole model on the "
      "scenario's validation sequences, on which it must not have been trained. MODEL is a folder that "
      "`fomoe-train export` wrote, or a directory of "
      "`fomoe-train run --checkpoints` with the files of all sites");
  // clang-format off
  options.add_options()
    ("help", "print this help")
    ("scenario", po::value<std::string>()->value_name("SCENARIO.toml"), "the scenario whose [trainer] table gives the data")
    ("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"), "override a key of the scenario; may be repeated")
    ("output", po::value<std::string>()->value_name("-|FILE.json"), "write JSON with loss (nats per token), perplexity and sequences (default: print a line)");
  // clang-format on
  const auto parsed = parse_command("evaluate", options, "model", arguments, kEvaluateExamples);
  if (!parsed) return 0;
  const po::variables_map& given = *parsed;
  for (const char* needed : {"model", "scenario"}) {
    if (!given.count(needed))
      throw UsageError(
          std::string(needed == std::string("model") ? "MODEL" : "--scenario") +
          ": got nothing; expected a folder with a model and a scenario; for example fomoe-train "
          "evaluate checkpoints --scenario experiments/scenarios/tiny-training.toml");
  }
  const std::string output = given.count("output") ? given["output"].as<std::string>() : "";
  require_writable("output", output);
  scenario::ReadOptions how;
  how.compute_required = false;
  if (given.count("set")) how.overrides = given["set"].as<std::vector<std::string>>();
  RunRequest request;
  request.scenario = scenario::read_scenario(given["scenario"].as<std::string>(), how);
  request.settings =
      scenario::read_trainer_settings(given["scenario"].as<std::string>(), how, request.scenario);
  require_validation(request.settings);
  const WholeModel whole = read_model(given["model"].as<std::string>());
  check_same_model(whole.shape, request.scenario.model);
  request.settings.data_split = "shared";  // nothing is dealt, and the validation sequences are the same
  const RunData data(request.scenario, request.settings, costmodel::make_plan(request.scenario));
  check_unseen(whole, data, request.settings.validation_sequences, std::cerr);
  const TrainingOptions training = training_options(request);
  check_same_constants(whole.constants, training.constants);
  const EvaluationLoss losses =
      evaluation_loss(model_of(whole, training.device, training.dtype), *data.batches,
                      std::max<std::int64_t>(1, training.micro_batch_sequences));
  const double loss = losses.mean;
  if (!std::isfinite(std::exp(loss)))
    throw std::runtime_error(given["model"].as<std::string>() + ": its loss on the validation sequences, " +
                             std::to_string(loss) + ", or its perplexity is not a finite number");
  const scenario::Json out = {{"schema", "fomoe.evaluation/1"},
                              {"data", data.validation_description()},
                              {"loss", loss},
                              {"loss_standard_deviation", losses.standard_deviation},
                              {"perplexity", std::exp(loss)},
                              {"sequences", data.batches->validation_sequences()},
                              {"rounds", whole.rounds},
                              {"steps", whole.steps}};
  if (!output.empty()) {
    write_answer(output, scenario::to_text(out));
  } else {
    std::printf(
        "loss %.4f nats per token, perplexity %.4g, on %lld validation sequences, whose losses have a "
        "standard "
        "deviation of %.2g nats\n",
        loss, std::exp(loss), static_cast<long long>(data.batches->validation_sequences()),
        losses.standard_deviation);
    if (is_synthetic(data.validation_description()))
      std::printf("%s\n", data.validation_description().c_str());
  }
  return 0;
}

}  // namespace fomoe::trainer
