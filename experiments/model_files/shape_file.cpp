#include "experiments/model_files/shape_file.hpp"

#include <fmt/format.h>

#include "experiments/files/model_shape_json.hpp"
#include "experiments/json/json_object.hpp"
#include "experiments/model_files/config_reader.hpp"
#include "experiments/model_files/rough_size.hpp"

namespace fomoe::scenario {

namespace {

using costmodel::ModelShape;

constexpr JsonKind kModel = {"fomoe.model/1", "model", "a model's shape",
                             "a file that `fomoe model … --output` or fomoe.model_from_transformers wrote"};

// The paper's family is described by nine numbers. The trainer trains only that family, so that no other
// model may bear its name.
bool only_named_as_family(const ModelShape& shape) {
  const ModelShape family = {shape.name,     shape.d_model,    shape.layers,
                             shape.heads,    shape.experts,    shape.active_experts,
                             shape.d_expert, shape.vocabulary, shape.sequence_length};
  return shape.architecture == family.architecture && !(shape == family);
}

void check(const JsonObject& reader, const ModelShape& shape) {
  const auto require = [&](bool holds, const char* key, std::int64_t got, const std::string& expected) {
    if (!holds) reader.refuse(key, std::to_string(got), expected);
  };
  if (only_named_as_family(shape)) {
    reader.refuse(
        "architecture", '"' + shape.architecture + '"',
        "the name of another architecture, because the model differs from the FoMoE paper's in more than "
        "its nine numbers");
  }
  require(shape.layers <= kMaxLayers, "layers", shape.layers, fmt::format("at most {}", kMaxLayers));
  require(shape.active_experts <= shape.experts, "active_experts", shape.active_experts,
          fmt::format("at most experts = {}", shape.experts));
  require(shape.dense_layers <= shape.layers, "dense_layers", shape.dense_layers,
          fmt::format("at most layers = {}", shape.layers));
  require(shape.experts == 0 || shape.active_experts > 0, "active_experts", shape.active_experts,
          "at least 1");
  require(shape.window_layers <= shape.layers, "window_layers", shape.window_layers,
          fmt::format("at most layers = {}", shape.layers));
  require(!shape.opaque || shape.opaque->dense_parameters + shape.opaque->expert_parameters > 0, "opaque", 0,
          "at least one parameter");
  if (!shape.opaque) {
    require(shape.d_model > 0, "d_model", shape.d_model,
            "at least 1, without parameter counts in \"opaque\"");
    require(shape.heads > 0, "heads", shape.heads, "at least 1, without parameter counts in \"opaque\"");
    require(shape.vocabulary > 0, "vocabulary", shape.vocabulary,
            "at least 1, without parameter counts in \"opaque\"");
    require(shape.kv_heads == 0 || shape.heads % shape.kv_heads == 0, "kv_heads", shape.kv_heads,
            fmt::format("a divisor of heads = {}", shape.heads));
    require(costmodel::attention_layers(shape) >= 0, "layers", shape.layers,
            "at least as many layers as linear attention and layers_without_attention have");
    require(costmodel::dense_ffn_layers(shape) >= 0, "layers_without_ffn", shape.layers_without_ffn,
            "at most the layers without experts");
    const std::int64_t rank = shape.latent ? shape.latent->query_rank : shape.query_rank;
    require(!shape.indexer || ((shape.latent || shape.compressed) && rank > 0), "indexer", 0,
            "no indexer without \"latent\" or \"compressed\" with a query rank, which it reads");
    require(!shape.latent || (shape.query_rank == 0 && !shape.compressed), "latent", 1,
            "no \"latent\" beside \"query_rank\" or \"compressed\"");
    if (shape.compressed) {
      const std::int64_t layers = shape.compressed->sparse_layers + shape.compressed->heavy_layers;
      require(layers <= costmodel::attention_layers(shape), "compressed", layers,
              "at most as many layers as have attention");
      require(shape.query_rank > 0, "query_rank", shape.query_rank, "at least 1 with \"compressed\"");
    }
  } else if (shape.experts > 0) {
    require(costmodel::moe_layers(shape) > 0, "dense_layers", shape.dense_layers, "a layer with experts");
    require(shape.opaque->expert_parameters >= costmodel::moe_layers(shape) * shape.experts, "experts",
            shape.experts, "at most as many experts in all layers as they have parameters");
  }
  const double parameters = rough_parameters(shape);
  if (!(parameters <= kMostModelParameters))
    reader.refuse("d_model", fmt::format("a model of about {:.3g} parameters", parameters),
                  "at most 1e16 parameters");
}

// A large value could overflow a product before check() sees it.
void refuse_large_numbers(const JsonObject& reader, const Json& json) {
  constexpr std::int64_t kMost = 100'000'000;
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    if (key == "opaque" || key == "other_parameters") continue;
    const auto refuse_in = [&](const Json& number) {
      if (number.is_number() && number.get<double>() > static_cast<double>(kMost))
        reader.refuse(key, number.dump(), fmt::format("at most {}", kMost));
    };
    if (value.is_structured()) {
      for (const auto& [inner, number] : value.items()) refuse_in(number);
    } else {
      refuse_in(value);
    }
  }
}

}  // namespace

Json shape_file_json(const GuessedModel& model) {
  Json guessed = Json::array();
  for (const Provenance& note : model.notes) {
    if (note.origin == Origin::assumed) guessed.push_back(note.what + ": " + note.detail);
  }
  return {{"schema", kModel.schema}, {"model", exact_shape_json(model.shape)}, {"guessed", guessed}};
}

GuessedModel read_shape_file(const std::string& path) {
  const Json json = read_json_file(path, kModel);
  const JsonObject reader(path, kModel, "", json, {"schema", "model", "guessed"});
  const Json& shape = reader.at("model", "an object");
  const JsonObject inner = open_object(path, kModel, "model", shape);
  refuse_large_numbers(inner, shape);
  GuessedModel model;
  model.shape = read_exact_shape(path, kModel, shape, 0);
  check(inner, model.shape);
  if (!reader.has("guessed")) return model;
  for (const Json& guess : reader.array("guessed")) {
    if (!guess.is_string()) reader.refuse_value("guessed", guess, "a list of sentences");
    const std::string text = guess.get<std::string>();
    const std::string about_model = "model: ";
    model.notes.push_back(
        {"model", Origin::assumed, text.starts_with(about_model) ? text.substr(about_model.size()) : text});
  }
  return model;
}

}  // namespace fomoe::scenario
