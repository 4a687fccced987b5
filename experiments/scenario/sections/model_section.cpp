#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "experiments/model_files/hf_config.hpp"
#include "experiments/model_files/shape_file.hpp"
#include "experiments/model_files/weights.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::ModelShape;

struct ShapeKey {
  const char* name;
  std::int64_t ModelShape::*member;
  bool also_opaque;  // whether the key also applies to models of which only parameter counts are known
};
constexpr ShapeKey kShapeKeys[] = {
    {"d_model", &ModelShape::d_model, false},
    {"layers", &ModelShape::layers, true},
    {"heads", &ModelShape::heads, false},
    {"experts", &ModelShape::experts, true},
    {"active_experts", &ModelShape::active_experts, true},
    {"d_expert", &ModelShape::d_expert, false},
    {"vocabulary", &ModelShape::vocabulary, false},
};
constexpr double kMaxParameters = 1e16;

void check_active_experts(const TableReader& table, const ModelShape& shape) {
  if (shape.active_experts <= shape.experts) return;
  table.refuse(table.has("active_experts") || !table.has("experts") ? "active_experts" : "experts",
               fmt::format("active_experts = {} with experts = {}", shape.active_experts, shape.experts),
               "active_experts of at most experts");
}

void check_shape(const TableReader& table, const ModelShape& shape) {
  if (shape.d_model % shape.heads != 0 || (shape.d_model / shape.heads) % 2 != 0) {
    table.refuse(
        table.has("heads") || !table.has("d_model") ? "heads" : "d_model",
        fmt::format("heads = {} with d_model = {}", shape.heads, shape.d_model),
        "d_model divisible by heads, with an even quotient (rotary embeddings rotate pairs of values)");
  }
  check_active_experts(table, shape);
  // Counted in floating point first, since the exact count has only 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double parameters =
      real(shape.vocabulary) * real(shape.d_model) +
      real(shape.layers) * real(shape.d_model) *
          (4 * real(shape.d_model) + real(shape.experts) * (1 + 2 * real(shape.d_expert)) +
           2 * real(shape.d_ffn) + 4);
  if (parameters > kMaxParameters) {
    table.refuse("d_model", fmt::format("a model of {:.3g} parameters", parameters),
                 "at most 1e16 parameters");
  }
}

void refuse_beside(const TableReader& table, const std::string& chosen, bool opaque) {
  for (const ShapeKey& key : kShapeKeys) {
    // Headers of weights do not tell how many experts a token uses.
    const bool missing = chosen == "safetensors" && std::string_view(key.name) == "active_experts";
    if (table.has(key.name) && !(opaque && key.also_opaque) && !missing)
      table.refuse(key.name, fmt::format("{} together with {}", key.name, chosen),
                   fmt::format("{} only without {}", key.name, chosen));
  }
  for (const char* other :
       {"d_ffn", "preset", "hf_config", "safetensors", "shape", "dense_parameters", "expert_parameters"}) {
    const bool allowed = opaque && std::string_view(other).ends_with("_parameters");
    if (table.has(other) && other != chosen && !allowed)
      table.refuse(other, fmt::format("both {} and {}", other, chosen), "only one description of the model");
  }
}

ModelShape read_opaque(const TableReader& table) {
  refuse_beside(table, "dense_parameters", true);
  ModelShape shape;
  shape.name = shape.architecture = "opaque";
  shape.opaque = costmodel::OpaqueCounts{table.count("dense_parameters"), 0};
  shape.layers = table.has("layers") ? table.count("layers") : 1;
  if (!table.has("expert_parameters")) {
    for (const char* name : {"experts", "active_experts"}) table.only_together(name, "expert_parameters");
    shape.dense_layers = shape.layers;
    return shape;
  }
  shape.opaque->expert_parameters = table.count("expert_parameters");
  shape.experts = table.has("experts") ? table.count("experts") : 1;
  if (shape.experts == 0)
    table.refuse("experts", "0 together with expert_parameters",
                 "at least 1, or no expert_parameters for a dense model");
  shape.active_experts = table.has("active_experts") ? table.count("active_experts") : shape.experts;
  check_active_experts(table, shape);
  const double in_all_layers = static_cast<double>(shape.layers) * static_cast<double>(shape.experts);
  if (in_all_layers > static_cast<double>(shape.opaque->expert_parameters)) {
    table.refuse("expert_parameters", fmt::format("fewer parameters than the {:.3g} experts", in_all_layers),
                 "the parameters of all experts of all layers together");
  }
  if (static_cast<double>(shape.opaque->dense_parameters) +
          static_cast<double>(shape.opaque->expert_parameters) >
      kMaxParameters) {
    table.refuse("dense_parameters", "too many parameters", "at most 1e16 parameters");
  }
  return shape;
}

// A dense model has a feed-forward block in place of the experts, by default as wide as those that a token
// would use, so that it has about as many active parameters.
void make_dense(const TableReader& table, ModelShape& shape) {
  shape.d_ffn = table.has("d_ffn") ? table.count("d_ffn") : shape.active_experts * shape.d_expert;
  if (shape.d_ffn == 0)
    table.refuse("experts", "0 without d_ffn",
                 "d_ffn as well, or active_experts and d_expert, whose product is then d_ffn");
  shape.experts = shape.active_experts = shape.d_expert = 0;
  shape.dense_layers = shape.layers;
}

ModelShape read_own_shape(const TableReader& table) {
  ModelShape shape;
  shape.name = "custom";
  const bool from_preset = table.has("preset");
  const bool any_shape_key = std::any_of(std::begin(kShapeKeys), std::end(kShapeKeys),
                                         [&](const ShapeKey& key) { return table.has(key.name); });
  table.only_together("expert_parameters", "dense_parameters");
  if (from_preset) {
    shape = *costmodel::find_preset(table.text("preset"));
    if (any_shape_key) shape.name += "-modified";
  } else if (!any_shape_key) {
    table.refuse("preset", "neither a preset nor shape keys",
                 "a preset, or all of d_model, layers, heads, experts, active_experts, d_expert, vocabulary, "
                 "or hf_config, safetensors, shape or dense_parameters");
  }
  const bool dense = table.has("experts") && table.count("experts") == 0;
  for (const ShapeKey& key : kShapeKeys) {
    const bool of_experts = key.member == &ModelShape::active_experts || key.member == &ModelShape::d_expert;
    const bool optional = from_preset || (dense && of_experts);
    if (!optional || table.has(key.name)) shape.*key.member = table.count(key.name);
  }
  if (dense) make_dense(table, shape);
  if (!dense && table.has("d_ffn"))
    table.refuse("d_ffn", "d_ffn for a model with experts", "d_ffn only together with experts = 0");
  check_shape(table, shape);
  return shape;
}

// The path that a key gives. `expected` is what the path must name, a file or a folder.
std::string existing(const Document& document, const TableReader& table, const char* key,
                     const std::string& expected) {
  const std::string written = table.text(key);
  std::string path = document.beside(written);
  if (path_exists(path)) return path;
  const std::string near = nearby_file(path, written);
  // A value such as "Qwen/Qwen3-30B-A3B" is a model's name, but nothing is downloaded.
  const bool is_name = std::filesystem::path(path).extension() != ".json";
  table.refuse(key,
               fmt::format("\"{}\" (no such {}: {}{})", written,
                           std::string_view(key) == "safetensors" ? "folder" : "file", path,
                           is_name ? "; models are not downloaded by name" : ""),
               expected, near.empty() ? "" : '"' + near + '"');
}

ModelShape read_headers(const Document& document, const TableReader& table, std::vector<Provenance>& notes) {
  refuse_beside(table, "safetensors", false);
  GuessedModel model = read_weights(existing(
      document, table, "safetensors", "a folder of *.safetensors files, relative to the scenario file"));
  if (table.has("active_experts")) {
    if (model.shape.experts == 0)
      table.refuse("active_experts", "active_experts with weights in which no tensor was taken as an expert",
                   "active_experts only for weights with experts");
    model.shape.active_experts = table.count("active_experts");
    check_active_experts(table, model.shape);
    std::erase_if(model.notes, [](const Provenance& note) { return note.what == "active experts"; });
  }
  notes.insert(notes.end(), model.notes.begin(), model.notes.end());
  return model.shape;
}

ModelShape read_shape(const Document& document, const TableReader& table, std::vector<Provenance>& notes) {
  refuse_beside(table, "shape", false);
  const GuessedModel model = read_shape_file(
      existing(document, table, "shape", "a file with a model's shape, relative to the scenario file"));
  notes.insert(notes.end(), model.notes.begin(), model.notes.end());
  return model.shape;
}

}  // namespace

void read_model(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "model", find_table(document, "model"));
  ModelShape shape;
  std::vector<Provenance>& notes = scenario.catalogue;
  table.only_together("multi_token_prediction", "hf_config");
  if (table.has("hf_config")) {
    refuse_beside(table, "hf_config", false);
    const GuessedModel model = read_hf_model(
        existing(document, table, "hf_config", "a model's config.json, relative to the scenario file"),
        {.multi_token_prediction = table.boolean("multi_token_prediction")});
    notes.insert(notes.end(), model.notes.begin(), model.notes.end());
    shape = model.shape;
  } else if (table.has("safetensors")) {
    shape = read_headers(document, table, notes);
  } else if (table.has("shape")) {
    shape = read_shape(document, table, notes);
  } else if (table.has("dense_parameters")) {
    shape = read_opaque(table);
  } else {
    shape = read_own_shape(table);
  }
  // If only the parameter counts of a model are known, and the batch is given in tokens, nothing depends on
  // the sequence length. A sequence is then one token.
  const toml::table* workload = find_table(document, "workload");
  const bool in_tokens = shape.opaque && workload != nullptr && workload->contains("global_batch_tokens");
  if (table.has("sequence_length") || shape.sequence_length == 0) {
    const bool of_tokens = in_tokens && !table.has("sequence_length");
    shape.sequence_length = of_tokens ? 1 : table.count("sequence_length");
    if (!of_tokens && !table.has("sequence_length"))
      notes.push_back(
          {"sequence length", Origin::assumed,
           fmt::format("{} tokens, because model.sequence_length is not given", shape.sequence_length)});
  }
  scenario.model = shape;
  table.set_members(scenario);
}

void read_workload(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "workload", find_table(document, "workload"));
  table.set_members(scenario);
  costmodel::Workload& workload = scenario.workload;
  const std::int64_t sequence_length = scenario.model.sequence_length;
  if (table.has("global_batch_tokens")) {
    const std::int64_t tokens = table.count("global_batch_tokens");
    table.only_one_of("global_batch_tokens", "global_batch_sequences");
    if (tokens % sequence_length != 0) {
      const std::int64_t below = tokens / sequence_length * sequence_length;
      table.refuse("global_batch_tokens", std::to_string(tokens),
                   fmt::format("a multiple of the sequence length {}, such as {}", sequence_length,
                               below > 0 ? below : sequence_length));
    }
    workload.global_batch_sequences = tokens / sequence_length;
    workload.batch_in_tokens = true;
  } else {
    workload.global_batch_sequences = table.count("global_batch_sequences");
  }
  // The number of tokens per step must be a whole number that a double represents exactly.
  const double step_tokens =
      static_cast<double>(workload.global_batch_sequences) * static_cast<double>(sequence_length);
  if (step_tokens > 9e15) {
    table.refuse("global_batch_sequences", fmt::format("{:.3g} tokens in one step", step_tokens),
                 "at most 9e15 tokens in one step");
  }
}

}  // namespace fomoe::scenario
