#include "experiments/model_files/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "experiments/model_files/architecture.hpp"
#include "experiments/model_files/config_reader.hpp"
#include "experiments/model_files/rough_size.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::ModelShape;

bool is_set(const Flag& flag, const ConfigReader& config) {
  return flag.field != nullptr ? config.yes_no_or(flag.field, flag.fallback) : flag.fallback;
}

void read_heads(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  shape.heads = config.count("num_attention_heads");
  if (row.latent) {
    shape.latent = costmodel::LatentAttention{config.count_or("q_lora_rank", 0), config.count("kv_lora_rank"),
                                              config.count("qk_nope_head_dim"),
                                              config.count("qk_rope_head_dim"), config.count("v_head_dim")};
    if (config.yes_no_or("attention_bias", false))
      config.refuse("attention_bias", "false, with latent attention", "false");
    return;
  }
  // The library takes as many as heads where a config has null, or where its own default is null.
  const bool derived = !config.has(row.kv_heads) && (config.states(row.kv_heads) || config.knows_defaults());
  shape.kv_heads = derived ? shape.heads : config.count(row.kv_heads);
  if (shape.heads % shape.kv_heads != 0) {
    config.refuse(row.kv_heads, fmt::format("a divisor of num_attention_heads = {}", shape.heads),
                  std::to_string(shape.heads));
  }
  if (config.has("head_dim")) {
    shape.head_dim = config.count("head_dim");
  } else if (shape.d_model % shape.heads != 0) {
    config.refuse("head_dim", "head_dim, because hidden_size is not divisible by num_attention_heads", "128");
  }
}

// The unembedding has weights of its own unless the file or the architecture's default says that it shares
// those of the embedding.
ModelShape read_common(const ConfigReader& config, const Architecture& row) {
  ModelShape shape;
  shape.d_model = config.count("hidden_size");
  shape.layers = config.layers("num_hidden_layers");
  read_heads(shape, config, row);
  shape.vocabulary = config.count("vocab_size");
  shape.qkv_bias = is_set(row.qkv_bias, config);
  shape.output_bias = is_set(row.output_bias, config);
  shape.ffn_bias = is_set(row.ffn_bias, config);
  shape.router_bias = row.experts != nullptr && is_set(row.router_bias, config);
  shape.query_key_norm = row.query_key_norm;
  shape.attention_gate = row.attention_gate;
  shape.sinks = row.sinks;
  shape.norm_bias = row.norm_bias;
  shape.gated = row.gated;
  shape.norms_per_layer = row.norms_per_layer;
  shape.outer_norms = 1;
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", row.tied);
  shape.embedding_counts_as_active = row.embedding_counts_as_active;
  return shape;
}

// Newer versions of the library that writes the files use the same few names for all architectures.
const char* name_in(const ConfigReader& config, const char* name, std::initializer_list<const char*> others) {
  if (config.states(name)) return name;
  for (const char* other : others) {
    if (config.states(other)) return other;
  }
  return name;
}

void read_experts(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  const char* experts =
      name_in(config, row.experts, {"num_local_experts", "num_experts", "n_routed_experts"});
  const char* active = name_in(config, row.active, {"num_experts_per_tok"});
  const std::int64_t least = row.width_without_experts != nullptr ? 0 : 1;
  shape.experts = row.for_images ? config.first_count(experts) : config.count(experts, least);
  if (shape.experts <= row.experts_of_dense) {
    shape.experts = 0;
    shape.dense_layers = shape.layers;
    return;
  }
  shape.active_experts = config.count_of_all_layers(active);
  if (shape.active_experts > shape.experts)
    config.refuse(active, fmt::format("at most {} = {}", experts, shape.experts), "2");
  shape.d_expert =
      row.for_images ? config.first_count(row.d_expert) : config.count_of_all_layers(row.d_expert);
  shape.shared_gate = row.shared_gate;
  if (row.shared != nullptr) {
    shape.shared_experts =
        config.count(name_in(config, row.shared, {"n_shared_experts", "num_shared_experts"}), 0);
  }
  if (row.shared_width != nullptr) {
    shape.d_shared = config.count_or(row.shared_width, 0);
    shape.shared_experts = shape.d_shared > 0 ? 1 : 0;
  }
  if (const auto types = config.words("mlp_layer_types")) {
    std::vector<bool> chosen(types->size());
    std::transform(types->begin(), types->end(), chosen.begin(), [](const auto& t) { return t == "sparse"; });
    if (static_cast<std::int64_t>(chosen.size()) != shape.layers)
      config.refuse("mlp_layer_types", fmt::format("a list of {} kinds", shape.layers), "[\"sparse\", …]");
    set_moe_layers(shape, chosen);
  } else if (row.dense_first != nullptr) {
    shape.dense_layers = config.count(row.dense_first, 0);
    if (shape.dense_layers > shape.layers)
      config.refuse(row.dense_first, fmt::format("at most num_hidden_layers = {}", shape.layers), "1");
  }
}

// Layers that see sliding_window tokens: by the types of the layers, or by the architecture's pattern.
void read_window(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  const std::vector<std::string> types = layer_types(config, shape.layers);
  std::int64_t layers = std::count(types.begin(), types.end(), "sliding_attention");
  if (types.empty() && row.full_every > 0) {
    if (!config.states("sliding_window")) (void)config.count("sliding_window");
    std::int64_t every = row.full_every;
    for (const char* name : {"sliding_window_pattern", "global_attn_every_n_layers"}) {
      if (config.states(name) && config.json()[name].is_number_integer()) every = config.count(name);
    }
    layers = shape.layers - shape.layers / every;
  }
  if (types.empty() && row.full_every == kNoLayer) layers = shape.layers;
  if (row.window_rule != WindowRule::none)
    layers = layers_by_rule(row.window_rule, config, shape.layers, types);
  if (layers == 0 || !config.has("sliding_window")) return;
  shape.window_tokens = config.count("sliding_window");
  shape.window_layers = layers;
}

// DeepSeek-V3, section 2.2: a module is one more layer, like the last one.
void add_prediction_modules(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  if (row.prediction_modules == nullptr || row.read != nullptr) {
    config.refuse("model_type", "an architecture whose multi-token-prediction modules are known",
                  "\"deepseek_v3\"");
  }
  const std::int64_t modules = config.layers(row.prediction_modules);
  for (std::int64_t i = 0; i < modules; ++i) {
    if (!shape.moe_layer_list.empty()) shape.moe_layer_list.push_back(shape.layers);
    if (shape.experts == 0) ++shape.dense_layers;
    ++shape.layers;
  }
  shape.prediction_modules = modules;
}

ModelShape read_model(const ConfigReader& config, const Architecture& row, const HfOptions& options) {
  ModelShape shape = row.read != nullptr ? row.read(config) : read_common(config, row);
  if (row.read == nullptr) {
    shape.dense_layers = row.experts == nullptr ? shape.layers : 0;
    if (row.experts != nullptr) read_experts(shape, config, row);
    read_window(shape, config, row);
    if (row.adapt != nullptr) row.adapt(shape, config);
  }
  if (options.multi_token_prediction) add_prediction_modules(shape, config, row);
  const bool no_experts = row.width_without_experts != nullptr && shape.experts == 0;
  if (row.read == nullptr && costmodel::dense_ffn_layers(shape) > 0)
    shape.d_ffn = config.count(no_experts ? row.width_without_experts : row.d_ffn);
  // All parameters of a model without experts are active, hybrids included. The publishers' conventions
  // differ only for models with experts.
  if (shape.experts == 0) shape.embedding_counts_as_active = true;
  if (shape.active_experts > shape.experts)
    config.refuse(row.active, fmt::format("at most {} = {}", row.experts, shape.experts), "2");
  if (!(rough_parameters(shape) <= kMostModelParameters))
    config.refuse("hidden_size", "a model of at most 1e16 parameters", "4096");
  return shape;
}

const Architecture* row_of(const std::vector<Architecture>& rows, const std::string& model_type) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const Architecture& row) { return row.model_type == model_type; });
  return found == rows.end() ? nullptr : &*found;
}

// The value of a text field; empty if it has another kind.
std::string word(const Json& json, const char* field) {
  return json.contains(field) && json[field].is_string() ? json[field].get<std::string>() : "";
}

// Grok-2's config has the model_type of another model, "git", and is known by the name of its class.
std::string type_of(const ConfigReader& config, const std::string& expected) {
  const std::string type = config.text("model_type", expected, "\"mixtral\"");
  const Json& json = config.json();
  const Json names = json.contains("architectures") ? json["architectures"] : Json::array();
  const bool grok = std::find(names.begin(), names.end(), "Grok1ForCausalLM") != names.end();
  return type == "git" && grok ? "grok" : type;
}

/// The language model of a config, and the row that describes it.
struct LanguageModel {
  ConfigReader config;
  const Architecture* row = nullptr;  // nullptr: no row has this architecture
  std::string where;                  // the object of the config, if the model has more than a language model
  std::string unknown_type;           // of the language model in a known wrapper, if no row has it
};

LanguageModel language_model(const ConfigReader& config, const std::string& type,
                             const std::vector<Architecture>& rows) {
  if (const Architecture* row = row_of(rows, type)) {
    LanguageModel model{config, row, "", ""};
    model.config.take_defaults(type);
    return model;
  }
  const auto known = std::find_if(wrappers().begin(), wrappers().end(),
                                  [&](const Wrapper& wrapper) { return wrapper.model_type == type; });
  const bool wraps = known != wrappers().end();
  std::vector<const char*> objects = {"text_config", "llm_config", "language_config"};
  if (wraps) objects.insert(objects.begin(), known->inside);
  for (const char* object : objects) {
    if (!config.has(object)) continue;
    LanguageModel model{config.inside(object), nullptr, object, ""};
    std::string text_type = word(model.config.json(), "model_type");
    // Some files repeat the name of the whole model. Any other name is that of an architecture, which the
    // usual one of the wrapper need not resemble.
    if (wraps && (text_type.empty() || text_type == type)) text_type = known->text_type;
    model.row = row_of(rows, text_type);
    if (model.row == nullptr && wraps) {
      model.unknown_type = text_type;
      return model;
    }
    if (model.row == nullptr) continue;
    model.config.take_defaults(text_type);
    // The library shares the weights of the embedding in the whole model or not at all.
    if (config.has("tie_word_embeddings"))
      model.config.take("tie_word_embeddings", config.json()["tie_word_embeddings"]);
    return model;
  }
  if (!wraps) return {config, nullptr, "", ""};
  if (!config.states("hidden_size")) (void)config.inside(known->inside);  // refuses
  LanguageModel model{config, row_of(rows, known->text_type), "the config", ""};
  model.config.take_defaults(known->text_type);
  return model;
}

// What a config describes beside the language model.
std::vector<std::string> other_parts(const Json& config) {
  std::vector<std::string> parts;
  for (const auto& item : config.items()) {
    if (!item.value().is_object()) continue;
    for (const char* word : {"vision", "visual", "image", "audio", "talker", "wav", "speech", "vit_"}) {
      if (item.key().find(word) == std::string::npos) continue;
      parts.push_back(item.key());
      break;
    }
  }
  return parts;
}

std::vector<Provenance> notes_about(const ConfigReader& whole, const LanguageModel& model) {
  std::vector<Provenance> notes;
  const std::vector<std::string> others = other_parts(whole.json());
  if (!others.empty()) {
    notes.push_back(
        {"model", Origin::assumed,
         fmt::format("only the language model, which runs for tokens of text; left out: {}{}", joined(others),
                     model.row->for_images ? " and the experts for images" : "")});
  }
  const std::vector<std::string> defaults = model.config.used_defaults();
  if (!defaults.empty()) {
    const bool one = defaults.size() == 1;
    notes.push_back(
        {"model", Origin::assumed,
         fmt::format("{}, the default{} of {}, because the config does not state {}", joined(defaults),
                     one ? "" : "s", model.config.source_of_defaults(), one ? "it" : "them")});
  }
  return notes;
}

// Names the two ways that need no row, with commands for this file. No similar name is proposed: a program
// wrote the file, and a model of another architecture would be counted wrongly.
[[noreturn]] void refuse_type(const ConfigReader& config, const std::string& field, const std::string& type) {
  const std::string folder = std::filesystem::path(config.path()).parent_path().string();
  const std::string place = folder.empty() ? "." : folder;
  fail(config.place("model_type"), field, '"' + type + '"',
       fmt::format(
           "one of the {} names that `fomoe list models` lists, or one of the two other ways to describe "
           "a model: the folder of its *.safetensors files, which are enough for any architecture "
           "(model.safetensors), or a shape file (model.shape), which Python's "
           "fomoe.model_from_transformers(\"{}\", \"model.json\") writes if the library transformers knows "
           "the architecture",
           hf_model_types().size(), config.path()),
       fmt::format("fomoe model {}", place));
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names = hf_model_types(true);
  for (const std::string& name : hf_model_types(false)) names.push_back(name);
  return names;
}

std::vector<std::string> hf_model_types(bool with_experts) {
  const std::vector<Architecture> rows = architectures();
  std::vector<std::string> names;
  for (const Architecture& row : rows) {
    if ((row.experts != nullptr) == with_experts) names.emplace_back(row.model_type);
  }
  for (const Wrapper& wrapper : wrappers()) {
    if ((row_of(rows, wrapper.text_type)->experts != nullptr) == with_experts)
      names.emplace_back(wrapper.model_type);
  }
  return names;
}

bool knows_hf_config(const std::string& path) {
  const ConfigReader config(path);
  if (word(config.json(), "model_type").empty()) return false;
  const std::vector<Architecture> rows = architectures();
  return language_model(config, type_of(config, ""), rows).row != nullptr;
}

GuessedModel read_hf_model(const std::string& path, const HfOptions& options) {
  const ConfigReader config(path);
  const std::string type = type_of(
      config, fmt::format("one of the {} names that `fomoe list models` lists", hf_model_types().size()));
  const std::vector<Architecture> rows = architectures();
  const LanguageModel language = language_model(config, type, rows);
  if (!language.unknown_type.empty())
    refuse_type(language.config, language.where + ".model_type", language.unknown_type);
  if (language.row == nullptr) refuse_type(config, "model_type", type);
  GuessedModel model;
  model.shape = read_model(language.config, *language.row, options);
  model.shape.architecture = type;
  const std::filesystem::path file = std::filesystem::absolute(path);
  model.shape.name =
      file.filename() == "config.json" ? file.parent_path().filename().string() : file.stem().string();
  model.notes = notes_about(config, language);
  return model;
}

ModelShape read_hf_config(const std::string& path, const HfOptions& options) {
  return read_hf_model(path, options).shape;
}

}  // namespace fomoe::scenario
