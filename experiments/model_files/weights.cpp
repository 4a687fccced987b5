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
#include "experiments/model_files/tensor_names.hpp"
#include "experiments/model_files/usual_names.hpp"
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
  bool has_head = false;                                  // a tensor that is an unembedding by its name
  std::set<std::pair<std::int64_t, std::int64_t>> heads;  // shapes of matrices that may be unembeddings
  [[nodiscard]] bool untied() const { return has_head || heads.contains({vocabulary, d_model}); }
  std::vector<std::string> left_out;
  std::size_t tensors = 0, files = 0;
  /// By stack and layer: the parts that project queries, and those that have a state of fixed size.
  std::map<std::pair<std::string, std::int64_t>, std::set<std::string>> attention, states;
  /// Tensors that do not run for tokens of text.
  std::int64_t other_elements = 0;
  std::size_t other_tensors = 0;
  std::string other_example;
};

bool is_float(const std::string& dtype) { return dtype.starts_with("F") || dtype.starts_with("BF"); }

bool is_any_ending(const std::string& name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* end) { return name.ends_with(end); });
}

// Scales of quantised weights and tables of angles are computed from the weights, or are no parameters. Other
// scales are trained: that of "x_scale" where no tensor has the name "x".
bool is_left_out(const TensorHeader& tensor, const std::set<std::string>& names) {
  const std::string& name = tensor.name;
  if (tensor.dtype == "F8_E8M0") return true;  // powers of two, which only scales are
  if (is_any_ending(name, {"weight_scale", "weight_scale_inv", "weight_scale_2", "input_scale", ".k_scale",
                           ".v_scale", ".q_scale", "_scales", ".scales", "_zero_point", "inv_freq"}))
    return true;
  for (const std::string ending : {"_scale_inv", "_scale"}) {
    if (name.ends_with(ending) && names.contains(name.substr(0, name.size() - ending.size()))) return true;
  }
  return !is_float(tensor.dtype) && tensor.shape.size() < 2;
}

void note_tables(const TensorHeader& tensor, Counted& counted) {
  if (tensor.shape.size() != 2) return;
  for (const char* table :
       {"embed_tokens.weight", "token_embedding.weight", "wte.weight", "word_embeddings.weight",
        "embeddings.weight", "tok_embeddings.weight", "embed_in.weight"}) {
    if (!tensor.name.ends_with(table) ||
        tensor.shape[0] * tensor.shape[1] < counted.vocabulary * counted.d_model)
      continue;
    counted.vocabulary = tensor.shape[0];
    counted.d_model = tensor.shape[1];
  }
  counted.has_head = counted.has_head || tensor.name == "output.weight" ||
                     tensor.name.ends_with("lm_head.weight") || tensor.name.ends_with("embed_out.weight");
  for (const char* head :
       {"output.weight", "output_layer.weight", "unembed.weight", "head.weight", "ff_out.weight"})
    if (tensor.name.ends_with(head)) counted.heads.insert({tensor.shape[0], tensor.shape[1]});
}

void count_expert(const TensorHeader& tensor, const TensorPlace& place, Counted& counted) {
  LayerExperts& layer = counted.experts[{place.stack, place.layer}];
  layer.elements += tensor.elements();
  if (layer.example.empty()) layer.example = tensor.name;
  if (place.expert) layer.experts = std::max(layer.experts, *place.expert + 1);
  // All experts in one tensor: the first dimension is their number.
  if (!place.expert && tensor.shape.size() == 3) layer.experts = std::max(layer.experts, tensor.shape[0]);
}

void note_mixing(const TensorHeader& tensor, const TensorPlace& place, Counted& counted) {
  const TensorMixing mixing = mixing_of(tensor.name);
  if (mixing.attention) counted.attention[{place.stack, place.layer}].insert(mixing.module);
  if (mixing.state) counted.states[{place.stack, place.layer}].insert(mixing.module);
}

/// Experts from the number `text_experts` on are for images, and so is the second router.
Counted count(const std::vector<TensorHeader>& tensors, std::optional<std::int64_t> text_experts,
              bool whole = false) {
  Counted counted;
  std::set<std::string> files, names;
  for (const TensorHeader& tensor : tensors) names.insert(tensor.name);
  for (const TensorHeader& tensor : tensors) {
    files.insert(tensor.file);
    if (is_left_out(tensor, names)) {
      counted.left_out.push_back(tensor.name);
      continue;
    }
    if (!is_float(tensor.dtype)) {
      refuse(tensor.file,
             fmt::format("the tensor {} of type {}, which holds packed numbers of unknown count", tensor.name,
                         tensor.dtype),
             "weights that are floating-point numbers", "the model's repository without quantisation");
    }
    const TensorPlace place = place_of(tensor);
    const bool for_images = text_experts && ((place.expert && *place.expert >= *text_experts) ||
                                             tensor.name.ends_with("gate.weight_1"));
    if (!whole && (for_images || is_outside_language_model(tensor.name))) {
      counted.other_elements += tensor.elements();
      if (counted.other_tensors++ == 0) counted.other_example = tensor.name;
      continue;
    }
    counted.total += tensor.elements();
    if (counted.total > kMostParameters)
      refuse(tensor.file, "more than 1e16 parameters", "at most 1e16 parameters", "one model in the folder");
    ++counted.tensors;
    if (place.layer >= 0) counted.layers[place.stack].insert(place.layer);
    note_tables(tensor, counted);
    note_mixing(tensor, place, counted);
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
  // A folder with an encoder alone.
  if (counted.tensors == 0 && counted.other_tensors > 0) return count(tensors, text_experts, true);
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

bool has_attention(const std::string& kind) {
  for (const char* word : {"linear", "mamba", "conv", "recurrent", "rwkv", "mlp", "moe"}) {
    if (has_part(kind, word)) return false;
  }
  return kind != "0";  // of attn_type_list
}

/// Which layers have attention, and how this is known. The config's list of kinds tells, or the names of the
/// tensors. If neither does, all layers have it.
std::string find_attention(ModelShape& shape, const Counted& counted, const std::string& stack,
                           const UsualNames& config) {
  const std::vector<std::string> kinds = config.kinds(shape.layers);
  std::int64_t layers = 0;
  std::string why = "as the kinds of the layers in config.json say";
  if (!kinds.empty()) {
    layers = std::count_if(kinds.begin(), kinds.end(), has_attention);
    const auto window = config.find({"sliding_window"});
    shape.window_layers = window ? std::count(kinds.begin(), kinds.end(), "sliding_attention") : 0;
    shape.window_tokens = shape.window_layers > 0 ? window->second : 0;
  } else {
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      const auto queries = counted.attention.find({stack, layer});
      if (queries == counted.attention.end()) continue;
      const auto states = counted.states.find({stack, layer});
      layers += std::any_of(queries->second.begin(), queries->second.end(), [&](const std::string& module) {
        return states == counted.states.end() || !states->second.contains(module);
      });
    }
    why = "by the names of the tensors that project queries";
    if (layers == 0 && counted.states.empty()) {
      layers = shape.layers;
      why = "as no name tells otherwise";
    }
  }
  shape.layers_without_attention = shape.layers - layers;
  return fmt::format("{} of {} layers, {}{}", layers, shape.layers, why,
                     counted.states.empty() ? "" : "; products of states of fixed size are not counted");
}

std::int64_t value_or(const std::optional<std::pair<std::string, std::int64_t>>& found,
                      std::int64_t fallback) {
  return found ? found->second : fallback;
}

void read_heads(ModelShape& shape, const Counted& counted, const std::string& stack, const UsualNames& config,
                std::vector<Provenance>& notes) {
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
  const std::string layers = find_attention(shape, counted, stack, config);
  const std::string window = shape.window_layers > 0 ? fmt::format(", of which {} see {} tokens",
                                                                   shape.window_layers, shape.window_tokens)
                                                     : "";
  notes.push_back({"FLOPs of attention", Origin::assumed,
                   fmt::format("attention with {} heads in {}{}; {} is from config.json", shape.heads, layers,
                               window, heads->first)});
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
  shape.tied_embeddings = !counted.untied();
  notes.push_back({"unembedding of the model", Origin::assumed,
                   counted.untied()
                       ? "a matrix of its own, by the name of a tensor"
                       : "tied to the embedding: no tensor has the name and the shape of an unembedding"});
  shape.dense_layers = shape.layers;
  if (!counted.experts.empty()) {
    shape.dense_layers = 0;
    read_experts(shape, counted, config, folder, notes);
  } else {
    notes.push_back({"experts of the model", Origin::assumed, "none: no tensor has \"experts\" in its name"});
  }
  read_heads(shape, counted, stack, config, notes);
  return shape;
}

// The shape by the rules of a known architecture, if its counts are those of the tensors.
std::optional<ModelShape> exact(const Counted& counted, const std::string& folder,
                                std::vector<Provenance>& notes) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  if (!path_exists(path)) return std::nullopt;
  std::string why = "config.json has an architecture that is not in the table of `fomoe list models`";
  if (knows_hf_config(path)) {
    try {
      const GuessedModel model = read_hf_model(path);
      const std::int64_t total = count_parameters(model.shape).total();
      if (total == counted.total) {
        notes.insert(notes.end(), model.notes.begin(), model.notes.end());
        return model.shape;
      }
      why = fmt::format("by its config.json, a {} would have {} parameters, and the tensors have {}",
                        model.shape.architecture, total, counted.total);
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
  const Counted counted =
      count(read_safetensors_headers(folder), UsualNames(folder).first_of_list("moe_num_experts"));
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
  if (counted.other_tensors > 0) {
    model.notes.push_back(
        {"model", Origin::assumed,
         fmt::format("only the language model, which runs for tokens of text; left out: {} "
                     "parameters in {} tensors, such as {}",
                     counted.other_elements, counted.other_tensors, counted.other_example)});
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
