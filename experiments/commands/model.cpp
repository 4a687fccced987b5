#include <fmt/format.h>

#include <filesystem>

#include "costmodel/inputs/model_shape.hpp"
#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/json/json.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "experiments/model_files/shape_file.hpp"
#include "experiments/model_files/weights.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/nesting.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

bool is_shape_file(const std::string& path) {
  const std::string content = whole_file(path).value_or("");
  if (!scenario::excess_in_json(content).empty()) return false;  // the reader of configs says what is wrong
  const scenario::Json json = scenario::Json::parse(content, nullptr, false);
  return json.is_object() && json.contains("schema");
}

scenario::GuessedModel read(const std::string& path, bool multi_token_prediction) {
  const bool folder = is_folder(path);
  if (!path_exists(path)) {
    throw UsageError(
        fmt::format("fomoe model: got \"{}\", which does not exist; expected a config.json, a folder of "
                    "*.safetensors files or a shape file; for example experiments/models/deepseek-v3.json",
                    path));
  }
  if (!folder && !is_shape_file(path))
    return scenario::read_hf_model(path, {.multi_token_prediction = multi_token_prediction});
  if (multi_token_prediction)
    throw UsageError(
        "--multi-token-prediction: got it for a model that is not described by a config.json; expected a "
        "config.json; for example fomoe model experiments/models/deepseek-v3.json --multi-token-prediction");
  return folder ? scenario::read_weights(path) : scenario::read_shape_file(path);
}

std::string text_of(const scenario::GuessedModel& model) {
  const costmodel::ModelShape& shape = model.shape;
  const costmodel::ParameterCounts counts = count_parameters(shape);
  const auto row = [](const char* name, std::int64_t count) {
    return Row{name, count == 0 ? "0" : human_count(static_cast<double>(count)), std::to_string(count)};
  };
  std::vector<Row> rows = {row("parameters", counts.total())};
  if (!shape.opaque) {
    rows.push_back(row("  embedding", counts.embedding));
    rows.push_back(row("  attention", counts.attention));
  }
  rows.push_back(row(shape.opaque ? "  dense" : "  dense FFN", counts.dense_ffn));
  if (!shape.opaque) rows.push_back(row("  router", counts.router));
  rows.push_back(row("  expert", counts.expert));
  if (!shape.opaque) rows.push_back(row("  norm", counts.norm));
  rows.push_back(row("active parameters", active_parameters(shape)));
  std::string text =
      fmt::format("model {} ({})\n{}{} layers", shape.name, shape.architecture, aligned(rows), shape.layers);
  if (shape.experts > 0) {
    text += fmt::format("; {} of them have {} experts, of which a token uses {}",
                        costmodel::moe_layers(shape), shape.experts, shape.active_experts);
  }
  if (shape.linear)
    text +=
        fmt::format("; {} have linear attention ({})", shape.linear->layers, to_string(shape.linear->kind));
  text += '\n';
  if (!model.notes.empty()) text += '\n' + human_provenance(model.notes);
  return text;
}

}  // namespace

void run_model(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("output", po::value<std::string>()->default_value("")->value_name("FILE"),
                        "writes the shape to this file, for model.shape; - for stdout")(
      "multi-token-prediction", po::bool_switch(),
      "counts the config's multi-token-prediction modules as well");
  const Help help = {
      "model",
      "PATH [options]",
      "Counts the parameters of a model: a config.json, a folder of *.safetensors files (only their headers "
      "are read), or a shape file. Says what was guessed, such as which tensors were taken as experts.",
      {"fomoe model experiments/models/deepseek-v3.json",
       "fomoe model experiments/models/deepseek-v3.json --output -"}};
  const auto values = parse(arguments, help, options, "path");
  if (!values) return;
  const Output output("--output", (*values)["output"].as<std::string>(), {".json"});
  const scenario::GuessedModel model = read((*values)["path"].as<std::vector<std::string>>().front(),
                                            (*values)["multi-token-prediction"].as<bool>());
  output.write(output.for_people() ? text_of(model) : scenario::to_text(scenario::shape_file_json(model)));
}

}  // namespace fomoe::commands
