#include "trainer/whole/exported_model.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiments/json/json.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"
#include "trainer/io/safetensors.hpp"
#include "trainer/whole/modeling_file.hpp"

namespace fomoe::trainer {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// A tensor of the file: a part of one of our parameters, perhaps transposed.
struct Entry {
  std::string name;
  std::int64_t row = -1;  // expert, or which of q, k and v; −1: the whole parameter
  bool transposed = false;
};

std::string layer_name(std::int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

/// The file's tensors of one parameter, in the order of its rows.
std::vector<Entry> entries_of(const ParameterSpec& spec, std::int64_t experts) {
  const std::string layer = spec.layer < 0 ? "" : layer_name(spec.layer);
  const auto by_expert = [&](const char* projection) {
    std::vector<Entry> out;
    for (std::int64_t e = 0; e < experts; ++e)
      out.push_back({layer + "mlp.experts." + std::to_string(e) + "." + projection + ".weight", e, true});
    return out;
  };
  switch (spec.role) {
    case Role::embedding:
      return {{"model.embed_tokens.weight"}};
    case Role::embedding_norm:
      return {{"model.embed_norm.weight"}};
    case Role::attention_norm_in:
      return {{layer + "input_layernorm.weight"}};
    case Role::qkv:
      return {{layer + "self_attn.q_proj.weight", 0},
              {layer + "self_attn.k_proj.weight", 1},
              {layer + "self_attn.v_proj.weight", 2}};
    case Role::attention_output:
      return {{layer + "self_attn.o_proj.weight"}};
    case Role::attention_norm_out:
      return {{layer + "post_attention_layernorm.weight"}};
    case Role::moe_norm_in:
      return {{layer + "pre_feedforward_layernorm.weight"}};
    case Role::router:
      return {{layer + "mlp.gate.weight", -1, true}};
    case Role::up:
      return by_expert("up_proj");
    case Role::down:
      return by_expert("down_proj");
    case Role::moe_norm_out:
      return {{layer + "post_feedforward_layernorm.weight"}};
    case Role::final_norm:
      return {{"model.norm.weight"}};
    case Role::ffn_up:
      return {{layer + "mlp.up_proj.weight", -1, true}};
    case Role::ffn_down:
      return {{layer + "mlp.down_proj.weight", -1, true}};
  }
  throw std::logic_error("a parameter without a name in exported models");
}

/// The part of our parameter, as a view in the orientation of the file.
at::Tensor view_of(const at::Tensor& parameter, const ParameterSpec& spec, const Entry& entry) {
  at::Tensor part = parameter;
  if (spec.role == Role::qkv) part = parameter.chunk(3, 0)[static_cast<std::size_t>(entry.row)];
  if (spec.role == Role::up || spec.role == Role::down) part = parameter.select(0, entry.row);
  return entry.transposed ? part.t() : part;
}

ordered_json config_json(const WholeModel& whole) {
  const costmodel::ModelShape& shape = whole.shape;
  const auto d = static_cast<double>(shape.d_model);
  ordered_json config = {{"architectures", {"FomoeForCausalLM"}},
                         {"model_type", "fomoe"},
                         {"auto_map",
                          {{"AutoConfig", "modeling_fomoe.FomoeConfig"},
                           {"AutoModelForCausalLM", "modeling_fomoe.FomoeForCausalLM"}}},
                         {"hidden_size", shape.d_model},
                         {"num_hidden_layers", shape.layers},
                         {"num_attention_heads", shape.heads},
                         {"num_key_value_heads", shape.heads},
                         {"head_dim", shape.d_model / shape.heads}};
  if (shape.experts > 0) {
    config["num_experts"] = shape.experts;
    config["num_experts_per_tok"] = shape.active_experts;
    config["moe_intermediate_size"] = shape.d_expert;
    config["scoring_func"] = "sigmoid";
    config["router_temperature"] = whole.constants.router_temperature;
    config["norm_topk_prob"] = false;
  } else {
    config["intermediate_size"] = shape.d_ffn;
  }
  config.update({{"vocab_size", shape.vocabulary},
                 {"max_position_embeddings", shape.sequence_length},
                 {"hidden_act", "silu"},
                 {"layer_norm_eps", 1e-5},
                 {"rope_theta", whole.constants.rope_theta},
                 {"attention_multiplier", static_cast<double>(shape.heads) / d},
                 {"residual_multiplier", kBaseDepth / static_cast<double>(shape.layers)},
                 {"logits_scaling", d / kBaseWidth},
                 {"attention_bias", false},
                 {"tie_word_embeddings", true},
                 {"torch_dtype", "float32"},
                 {"fomoe_rounds", whole.rounds},
                 {"fomoe_steps", whole.steps}});
  for (const auto& [name, value] : whole.trained_on) config["fomoe_trained_on"][name] = value;
  return config;
}

/// The shape and the constants that the configuration describes.
WholeModel described_by(const std::string& path) {
  const auto refuse = [&](const std::string& got) {
    throw FileError(path + ": got " + got +
                    "; expected the config.json of a model that `fomoe-train export` wrote; for example "
                    "model_type \"fomoe\"");
  };
  const std::optional<std::string> file = whole_file(path);
  if (!file) refuse("no file that can be read");
  const ordered_json config = ordered_json::parse(*file, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) refuse("a file that is not a JSON object");
  if (config.value("model_type", "") != "fomoe") refuse("another model_type");
  const auto integer = [&](const char* key, std::int64_t least) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_number_integer() || found->get<std::int64_t>() < least)
      refuse(std::string("no ") + key);
    return found->get<std::int64_t>();
  };
  const auto number = [&](const char* key) { return integer(key, 1); };
  const auto count = [&](const char* key) { return integer(key, 0); };  // 0: unknown
  // Models that earlier versions exported have no router_temperature.
  const auto constant = [&](const char* key, double fallback) {
    const auto found = config.find(key);
    if (found == config.end()) return fallback;
    if (!found->is_number() || !(found->get<double>() > 0))
      refuse(std::string("no positive number as ") + key);
    return found->get<double>();
  };
  WholeModel whole;
  costmodel::ModelShape& shape = whole.shape;
  shape.name = "custom";
  shape.d_model = number("hidden_size");
  shape.layers = number("num_hidden_layers");
  shape.heads = number("num_attention_heads");
  if (config.contains("num_experts")) {
    shape.experts = number("num_experts");
    shape.active_experts = number("num_experts_per_tok");
    shape.d_expert = number("moe_intermediate_size");
  } else {
    shape.dense_layers = shape.layers;
    shape.d_ffn = number("intermediate_size");
  }
  shape.vocabulary = number("vocab_size");
  shape.sequence_length = number("max_position_embeddings");
  const ModelConstants usual;
  whole.constants = {constant("rope_theta", usual.rope_theta),
                     constant("router_temperature", usual.router_temperature)};
  // Files that other programs wrote need not say how long the model was trained.
  if (config.contains("fomoe_rounds")) whole.rounds = count("fomoe_rounds");
  if (config.contains("fomoe_steps")) whole.steps = count("fomoe_steps");
  if (const auto found = config.find("fomoe_trained_on"); found != config.end() && found->is_object()) {
    for (const auto& [name, value] : found->items())
      whole.trained_on.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return whole;
}

}  // namespace

void write_exported(const WholeModel& whole, const std::string& folder) {
  NamedTensors out;
  for (const ParameterSpec& spec : parameter_specs(whole.shape, {{}, whole.skip_token})) {
    const at::Tensor parameter = whole.tensors.at(spec.name()).to(at::kFloat);
    for (const Entry& entry : entries_of(spec, whole.shape.experts))
      out.emplace_back(entry.name, view_of(parameter, spec, entry));
  }
  fs::create_directories(folder);
  write_safetensors(folder + "/model.safetensors", out, {{"format", "pt"}});
  write_file(folder + "/config.json", scenario::to_text(config_json(whole)));
  write_file(folder + "/modeling_fomoe.py", kModelingFile);
}

WholeModel read_exported(const std::string& folder) {
  WholeModel whole = described_by(folder + "/config.json");
  const std::string path = folder + "/model.safetensors";
  const SafetensorsFile file = read_safetensors(path);
  for (const ParameterSpec& spec : parameter_specs(whole.shape, {})) {
    at::Tensor parameter = at::empty(spec.sizes, at::kFloat);
    for (const Entry& entry : entries_of(spec, whole.shape.experts)) {
      at::Tensor part = view_of(parameter, spec, entry);
      const auto found = file.tensors.find(entry.name);
      if (found == file.tensors.end() || found->second.sizes() != part.sizes())
        throw FileError(path + ": got no tensor " + entry.name +
                        " of the shape in config.json; expected the tensors of an exported model; for "
                        "example one that `fomoe-train export` wrote");
      part.copy_(found->second);
    }
    whole.tensors.emplace(spec.name(), std::move(parameter));
  }
  return whole;
}

}  // namespace fomoe::trainer
