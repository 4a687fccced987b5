#include "experiments/model_files/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "experiments/model_files/config_reader.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "experiments/model_files/safetensors_headers.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {

namespace {

using costmodel::ModelShape;

constexpr std::int64_t kMostParameters = 10'000'000'000'000'000;

[[noreturn]] void refuse(const std::string& place, const std::string& got, const std::string& expected,
                         const std::string& example) {
  fail(place + ":1", "model.safetensors", got, expected, example);
}

std::vector<std::string> components(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<std::int64_t> number(const std::string& part) {
  const bool digits = !part.empty() && part.size() < 7 &&
                      std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::optional(std::stoll(part)) : std::nullopt;
}

bool has_part(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

/// Where a tensor belongs, by its name.
struct Place {
  std::string stack;  // the name before the layer's number; empty outside of layers
  std::int64_t layer = -1;
  bool routed = false;                 // a tensor of routed experts
  std::optional<std::int64_t> expert;  // its number, if each expert has tensors of its own
};

Place place_of(const TensorHeader& tensor) {
  Place place;
  const std::vector<std::string> parts = components(tensor.name);
  std::size_t i = 0;
  for (; i < parts.size() && !number(parts[i]); ++i) place.stack += parts[i] + '.';
  if (i == parts.size()) return Place{};
  place.layer = *number(parts[i]);
  for (++i; i < parts.size(); ++i) {
    if (parts[i] != "experts") continue;
    place.routed = true;
    if (i + 1 < parts.size()) place.expert = number(parts[i + 1]);
  }
  // Some models keep all experts of a layer in one tensor, whose name may not have that word. Convolutions
  // have three dimensions as well.
  const auto& shape = tensor.shape;
  if (shape.size() == 3 && *std::min_element(shape.begin(), shape.end()) > 1 &&
      !has_part(tensor.name, "conv"))
    place.routed = true;
  return place;
}

/// The tensors of one layer's experts.
struct LayerExperts {
  std::int64_t elements = 0, experts = 0;
  std::string example;
};

struct Counted {
  std::int64_t total = 0, dense = 0;
  std::map<std::string, std::set<std::int64_t>> layers;                         // by stack
  std::map<std::pair<std::string, std::int64_t>, LayerExperts> experts;         // by stack and layer
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> router_columns;  // for fused matrices
  std::int64_t vocabulary = 0, d_model = 0;
  bool untied = false;
  std::vector<std::string> left_out;
  std::size_t tensors = 0, files = 0;
};

bool is_float(const std::string& dtype) { return dtype.starts_with("F") || dtype.starts_with("BF"); }

// Scales of quantised weights and tables of angles are computed from the weights, or are no parameters.
bool is_left_out(const TensorHeader& tensor) {
  for (const char* ending : {"_scale_inv", "_scale", "_scales", ".scales", "_zero_point", "inv_freq"}) {
    if (tensor.name.ends_with(ending)) return true;
  }
  return !is_float(tensor.dtype) && tensor.shape.size() < 2;
}

void note_tables(const TensorHeader& tensor, Counted& counted) {
  if (tensor.shape.size() != 2) return;
  for (const char* table : {"embed_tokens.weight", "wte.weight", "word_embeddings.weight",
                            "embeddings.weight", "tok_embeddings.weight", "embed_in.weight"}) {
    if (!tensor.name.ends_with(table) ||
        tensor.shape[0] * tensor.shape[1] < counted.vocabulary * counted.d_model)
      continue;
    counted.vocabulary = tensor.shape[0];
    counted.d_model = tensor.shape[1];
  }
  for (const char* head : {"lm_head.weight", "embed_out.weight"})
    counted.untied = counted.untied || tensor.name.ends_with(head);
  counted.untied = counted.untied || tensor.name == "output.weight";
}

void count_expert(const TensorHeader& tensor, const Place& place, Counted& counted) {
  LayerExperts& layer = counted.experts[{place.stack, place.layer}];
  layer.elements += tensor.elements();
  if (layer.example.empty()) layer.example = tensor.name;
  if (place.expert) layer.experts = std::max(layer.experts, *place.expert + 1);
  // All experts in one tensor: the first dimension is their number.
  if (!place.expert && tensor.shape.size() == 3) layer.experts = std::max(layer.experts, tensor.shape[0]);
}

Counted count(const std::vector<TensorHeader>& tensors) {
  Counted counted;
  std::set<std::string> files;
  for (const TensorHeader& tensor : tensors) {
    files.insert(tensor.file);
    if (is_left_out(tensor)) {
      counted.left_out.push_back(tensor.name);
      continue;
    }
    if (!is_float(tensor.dtype)) {
      refuse(tensor.file,
             fmt::format("the tensor {} of type {}, which holds packed numbers of unknown count", tensor.name,
                         tensor.dtype),
             "weights that are floating-point numbers", "the model's repository without quantisation");
    }
    const Place place = place_of(tensor);
    counted.total += tensor.elements();
    if (counted.total > kMostParameters)
      refuse(tensor.file, "more than 1e16 parameters", "at most 1e16 parameters", "one model in the folder");
    ++counted.tensors;
    if (place.layer >= 0) counted.layers[place.stack].insert(place.layer);
    note_tables(tensor, counted);
    if (place.routed) {
      count_expert(tensor, place, counted);
    } else {
      counted.dense += tensor.elements();
      if (tensor.shape.size() == 2 &&
          (has_part(tensor.name, "router") || has_part(tensor.name, "gate.weight")))
        counted.router_columns[{place.stack, place.layer}] = tensor.shape[0];
    }
  }
  counted.files = files.size();
  // Experts that are the rows of one matrix: the router has a column for each.
  for (auto& [where, layer] : counted.experts) {
    const auto router = counted.router_columns.find(where);
    if (layer.experts == 0 && router != counted.router_columns.end()) layer.experts = router->second;
  }
  return counted;
}

// The stack of layers that contains the experts, or the longest one.
std::string main_stack(const Counted& counted) {
  std::map<std::string, std::int64_t> elements;
  for (const auto& [where, layer] : counted.experts) elements[where.first] += layer.elements;
  std::string best;
  for (const auto& [stack, layers] : counted.layers) {
    const auto rank = [&](const std::string& s) {
      return std::pair(elements[s], s.empty() ? std::size_t{0} : counted.layers.at(s).size());
    };
    if (best.empty() || rank(stack) > rank(best)) best = stack;
  }
  return best;
}

// The config's object for the language model, and the usual names of a field in it.
class UsualNames {
 public:
  explicit UsualNames(const std::string& folder) {
    const std::string path = (std::filesystem::path(folder) / "config.json").string();
    if (!path_exists(path)) return;
    config_.emplace(path);
    for (const char* inner : {"text_config", "llm_config", "language_config"}) {
      if (config_->has(inner)) config_ = config_->inside(inner);
    }
  }
  /// The first of the names that the config has, with its value.
  [[nodiscard]] std::optional<std::pair<std::string, std::int64_t>> find(
      std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (!config_ || !config_->has(name)) continue;
      try {
        return std::pair(std::string(name), config_->count_of_all_layers(name));
      } catch (const FileError&) {  // a value of another kind under this name, such as one for each layer
        continue;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<ConfigReader> config_;
};

std::int64_t value_or(const std::optional<std::pair<std::string, std::int64_t>>& found,
                      std::int64_t fallback) {
  return found ? found->second : fallback;
}

void read_heads(ModelShape& shape, const UsualNames& config, std::vector<Provenance>& notes) {
  const auto heads = config.find({"num_attention_heads", "n_heads", "n_head", "num_heads"});
  if (!heads || shape.d_model == 0) {
    notes.push_back(
        {"FLOPs of attention", Origin::assumed,
         "0: the headers do not tell the number of heads, and there is no config.json that does"});
    return;
  }
  shape.heads = heads->second;
  shape.kv_heads = value_or(config.find({"num_key_value_heads", "num_kv_heads", "n_head_kv"}), shape.heads);
  shape.head_dim = value_or(config.find({"head_dim", "attention_head_dim"}), shape.d_model / shape.heads);
  const auto nope = config.find({"qk_nope_head_dim"}), value = config.find({"v_head_dim"});
  const auto rope = config.find({"qk_rope_head_dim"});
  if (nope && rope && value)
    shape.latent = costmodel::LatentAttention{0, 1,  // the ranks do not matter for scores
                                              nope->second, rope->second, value->second};
  notes.push_back({"FLOPs of attention", Origin::assumed,
                   fmt::format("full attention with {} heads in every layer; {} is from config.json",
                               shape.heads, heads->first)});
}

void read_experts(ModelShape& shape, const Counted& counted, const UsualNames& config,
                  const std::string& folder, std::vector<Provenance>& notes) {
  const std::string stack = main_stack(counted);
  const auto found = counted.experts.lower_bound({stack, 0});
  const LayerExperts& first = found->second;
  if (first.experts == 0) {
    refuse(folder, first.example + ", whose shape does not tell the number of experts",
           "a router with a row for each expert, or a dimension for the experts",
           "model.dense_parameters and model.expert_parameters");
  }
  for (const auto& [where, layer] : counted.experts) {
    if (where.first == stack && layer.experts == first.experts) {
      shape.moe_layer_list.push_back(where.second);
      shape.opaque->expert_parameters += layer.elements;
      continue;
    }
    if (where.first != stack) {  // for example a module for multi-token prediction
      shape.opaque->dense_parameters += layer.elements;
      notes.push_back({"experts of the model", Origin::assumed,
                       fmt::format("{} and its like count as dense, because they are outside of the stack {}",
                                   layer.example, stack)});
      continue;
    }
    refuse(folder,
           fmt::format("{} experts in layer {} ({}) and {} in layer {} ({})", first.experts,
                       found->first.second, first.example, layer.experts, where.second, layer.example),
           "the same number of experts in each layer that has experts",
           "model.dense_parameters and model.expert_parameters");
  }
  shape.experts = first.experts;
  if (costmodel::moe_layers(shape) * shape.experts > shape.opaque->expert_parameters)
    refuse(folder,
           fmt::format("{} experts with {} parameters", shape.experts, shape.opaque->expert_parameters),
           "at least one parameter for each expert", "model.dense_parameters and model.expert_parameters");
  const auto layers = static_cast<std::int64_t>(shape.moe_layer_list.size());
  notes.push_back({"experts of the model", Origin::assumed,
                   fmt::format("the tensors named like {}: {} experts in each of {} layers, {} parameters; "
                               "please confirm",
                               first.example, shape.experts, layers, shape.opaque->expert_parameters)});
  if (shape.moe_layer_list.front() + layers == shape.layers) {
    shape.dense_layers = shape.moe_layer_list.front();
    shape.moe_layer_list.clear();
  }
  const auto active = config.find({"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k",
                                   "moe_top_k", "experts_per_token", "top_k_experts"});
  shape.active_experts = active ? std::min(active->second, shape.experts) : shape.experts;
  notes.push_back({"active experts", Origin::assumed,
                   active ? fmt::format("{}: {} of config.json", shape.active_experts, active->first)
                          : fmt::format("all {}: neither the headers nor a config.json tell how many a token "
                                        "uses; set model.active_experts",
                                        shape.experts)});
}

ModelShape guess(const Counted& counted, const std::string& folder, std::vector<Provenance>& notes) {
  ModelShape shape;
  shape.name = std::filesystem::weakly_canonical(folder).filename().string();
  shape.architecture = "opaque";
  shape.opaque = costmodel::OpaqueCounts{counted.dense, 0};
  const UsualNames config(folder);
  const std::string stack = main_stack(counted);
  shape.layers = stack.empty() ? 1 : *counted.layers.at(stack).rbegin() + 1;
  if (shape.layers > kMaxLayers)
    refuse(folder, fmt::format("layer {}", shape.layers - 1), fmt::format("at most {} layers", kMaxLayers),
           "model.layers.47.mlp.down_proj.weight");
  shape.d_model = counted.d_model;
  shape.vocabulary = counted.vocabulary;
  shape.tied_embeddings = !counted.untied;
  shape.dense_layers = shape.layers;
  if (!counted.experts.empty()) {
    shape.dense_layers = 0;
    read_experts(shape, counted, config, folder, notes);
  } else {
    notes.push_back({"experts of the model", Origin::assumed, "none: no tensor has \"experts\" in its name"});
  }
  read_heads(shape, config, notes);
  return shape;
}

// The shape by the rules of a known architecture, if its counts are those of the tensors.
std::optional<ModelShape> exact(const Counted& counted, const std::string& folder,
                                std::vector<Provenance>& notes) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  if (!path_exists(path)) return std::nullopt;
  const ConfigReader config(path);
  const Json type = config.has("model_type") ? config.json()["model_type"] : Json();
  const std::vector<std::string> known = hf_model_types();
  std::string why = "config.json has an architecture that is not in the table of `fomoe list models`";
  if (type.is_string() && std::find(known.begin(), known.end(), type.get<std::string>()) != known.end()) {
    try {
      const ModelShape shape = read_hf_config(path);
      const std::int64_t total = count_parameters(shape).total();
      if (total == counted.total) return shape;
      why = fmt::format("by its config.json, a {} would have {} parameters, and the tensors have {}",
                        shape.architecture, total, counted.total);
    } catch (const FileError& error) {
      const std::string reason = std::string(error.what()).substr(path.size());  // without the path
      why = "config.json" + reason.substr(0, reason.find("; expected"));
    }
  }
  notes.push_back({"model", Origin::assumed, "described by its tensors alone: " + why});
  return std::nullopt;
}

}  // namespace

GuessedModel read_weights(const std::string& folder) {
  const Counted counted = count(read_safetensors_headers(folder));
  GuessedModel model;
  const std::string read =
      fmt::format("{} parameters in {} tensors of {} files; names and shapes are read, not weights",
                  counted.total, counted.tensors, counted.files);
  if (const auto known = exact(counted, folder, model.notes)) {
    model.shape = *known;
    model.notes.push_back(
        {"model", Origin::computed, read + "; exactly as many as the config's architecture has"});
    return model;
  }
  model.notes.push_back({"parameters", Origin::computed, read});
  model.shape = guess(counted, folder, model.notes);
  if (!counted.left_out.empty()) {
    model.notes.push_back({"parameters", Origin::assumed,
                           fmt::format("{} tensors are no parameters, such as {}", counted.left_out.size(),
                                       counted.left_out.front())});
  }
  return model;
}

}  // namespace fomoe::scenario
