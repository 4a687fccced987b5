#include "experiments/model_files/tensor_names.hpp"

#include <algorithm>
#include <vector>

namespace fomoe::scenario {

namespace {

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

}  // namespace

bool has_part(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

TensorPlace place_of(const TensorHeader& tensor) {
  TensorPlace place;
  const std::vector<std::string> parts = components(tensor.name);
  std::size_t i = 0;
  for (; i < parts.size() && !number(parts[i]); ++i) place.stack += parts[i] + '.';
  if (i == parts.size()) return TensorPlace{};
  place.layer = *number(parts[i]);
  for (++i; i < parts.size(); ++i) {
    if (parts[i] != "experts") continue;
    place.routed = true;
    if (i + 1 < parts.size()) place.expert = number(parts[i + 1]);
  }
  // Some models keep all experts of a layer in one tensor, whose name may not have that word. Convolutions
  // and states have three dimensions as well.
  const auto& shape = tensor.shape;
  if (shape.size() == 3 && *std::min_element(shape.begin(), shape.end()) > 1 &&
      !has_part(tensor.name, "conv") && !mixing_of(tensor.name).state)
    place.routed = true;
  return place;
}

bool is_outside_language_model(const std::string& name) {
  const bool in_layer = [&] {
    const std::vector<std::string> parts = components(name);
    return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return number(part).has_value(); });
  }();
  for (const std::string& part : components(name)) {
    for (const char* word :
         {"vision", "visual", "image", "audio", "speech", "multi_modal", "multimodal", "mm_projector", "vit_",
          "talker", "token2wav", "code2wav", "resampler", "aligner"}) {
      if (has_part(part, word)) return true;
    }
    if (part == "vpm" || part == "apm" || part == "projector") return true;
    // Projectors whose names could also belong to a layer of the language model.
    if (!in_layer && (part == "connector" || part == "merger" || part == "patch_merger")) return true;
    if (part == "mlp1" && name.starts_with("mlp1.")) return true;
  }
  return false;
}

TensorMixing mixing_of(const std::string& name) {
  const std::vector<std::string> parts = components(name);
  TensorMixing mixing;
  std::size_t i = 0;
  while (i < parts.size() && !number(parts[i])) ++i;
  for (++i; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    for (const char* word : {"q_proj", "qkv_proj", "q_a_proj", "q_b_proj", "qkv", "query_key_value", "Wqkv",
                             "wqkv", "wq", "wq_a", "wq_b", "c_attn", "query", "q_lin", "to_q"})
      mixing.attention = mixing.attention || part == word;
    for (const char* word : {"A_log", "conv1d", "conv_1d", "dt_bias", "dt_proj", "in_proj_ba", "rg_lru",
                             "time_decay", "time_mix", "linear_attn", "mamba", "recurrent", "rwkv"})
      mixing.state = mixing.state || has_part(part, word);
    if (mixing.attention || mixing.state) return mixing;
    mixing.module += part + '.';
  }
  return {};
}

}  // namespace fomoe::scenario
