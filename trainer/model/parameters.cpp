#include "trainer/model/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace fomoe::trainer {

using costmodel::ModelShape;
using costmodel::TensorClass;

namespace {

// Standard deviation of every matrix at width 256; hidden matrices get this divided by sqrt(m_d).
constexpr double kBaseStd = 0.02;

const char* to_string(Role role) {
  switch (role) {
    case Role::embedding:
      return "embedding";
    case Role::embedding_norm:
      return "embedding_norm";
    case Role::attention_norm_in:
      return "attention_norm_in";
    case Role::qkv:
      return "qkv";
    case Role::attention_output:
      return "attention_output";
    case Role::attention_norm_out:
      return "attention_norm_out";
    case Role::moe_norm_in:
      return "moe_norm_in";
    case Role::router:
      return "router";
    case Role::up:
      return "up";
    case Role::down:
      return "down";
    case Role::moe_norm_out:
      return "moe_norm_out";
    case Role::final_norm:
      return "final_norm";
    case Role::ffn_up:
      return "ffn_up";
    case Role::ffn_down:
      return "ffn_down";
  }
  throw std::logic_error("unknown role");
}

void check_choice(const ModelShape& shape, const ExpertChoice& choice) {
  if (shape.heads < 1 || shape.d_model % (2 * shape.heads) != 0) {
    throw std::invalid_argument(
        "d_model must be a multiple of twice the number of heads, since rotary embeddings rotate pairs");
  }
  if (choice.local.empty()) return;
  if (static_cast<std::int64_t>(choice.local.size()) != shape.layers) {
    throw std::invalid_argument("local experts must be given for every layer");
  }
  for (const std::vector<int>& ids : choice.local) {
    const bool increasing = std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
    if (ids.empty() || !increasing || ids.front() < 0 || ids.back() >= shape.experts) {
      throw std::invalid_argument(
          "each layer needs at least one local expert, and expert ids must increase and be below N_e");
    }
  }
}

}  // namespace

std::vector<int> local_experts(const ModelShape& shape, const ExpertChoice& choice, std::int64_t layer) {
  if (!choice.local.empty()) return choice.local.at(static_cast<std::size_t>(layer));
  std::vector<int> all(static_cast<std::size_t>(shape.experts));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::int64_t ParameterSpec::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

TensorClass ParameterSpec::tensor_class() const {
  switch (role) {
    case Role::embedding:
      return TensorClass::embedding;
    case Role::qkv:
    case Role::attention_output:
    case Role::ffn_up:  // plans have no class of their own for dense feed-forward blocks
    case Role::ffn_down:
      return TensorClass::attention;
    case Role::router:
      return TensorClass::router;
    case Role::up:
    case Role::down:
      return TensorClass::expert;
    default:
      return TensorClass::norm;
  }
}

std::string ParameterSpec::name() const {
  return layer < 0 ? to_string(role) : "layers." + std::to_string(layer) + "." + to_string(role);
}

std::int64_t expert_dim(const ParameterSpec& spec, bool skip_token) {
  if (spec.role == Role::up || spec.role == Role::down) return 0;
  return spec.role == Role::router && !skip_token ? 1 : -1;
}

std::vector<ParameterSpec> parameter_specs(const ModelShape& shape, const ExpertChoice& choice) {
  check_choice(shape, choice);
  const std::int64_t d = shape.d_model;
  const double width = static_cast<double>(d) / kBaseWidth;             // m_d
  const double depth = static_cast<double>(shape.layers) / kBaseDepth;  // m_L

  std::vector<ParameterSpec> specs;
  auto add_norm = [&](Role role, std::int64_t layer) {
    specs.push_back({role, layer, {d}, 0, 1, 1 / (layer < 0 ? width : width * depth)});
  };
  auto add_hidden = [&](Role role, std::int64_t layer, std::vector<std::int64_t> sizes) {
    specs.push_back(
        {role, layer, std::move(sizes), kBaseStd / std::sqrt(width), 1 / width, 1 / (width * depth)});
  };

  // The fan-in of the down projection is d_ffn, which grows with the width, so it has a multiplier of its
  // own.
  auto add_ffn = [&](std::int64_t layer) {
    const double inner = static_cast<double>(shape.d_ffn) / kBaseWidth;
    add_hidden(Role::ffn_up, layer, {d, shape.d_ffn});
    specs.push_back({Role::ffn_down,
                     layer,
                     {shape.d_ffn, d},
                     kBaseStd / std::sqrt(inner),
                     1 / inner,
                     1 / (width * depth)});
  };

  specs.push_back({Role::embedding, -1, {shape.vocabulary, d}, kBaseStd, 1, 1 / width});
  add_norm(Role::embedding_norm, -1);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto held = static_cast<std::int64_t>(local_experts(shape, choice, layer).size());
    add_norm(Role::attention_norm_in, layer);
    add_hidden(Role::qkv, layer, {3 * d, d});
    add_hidden(Role::attention_output, layer, {d, d});
    add_norm(Role::attention_norm_out, layer);
    add_norm(Role::moe_norm_in, layer);
    if (shape.experts == 0) {
      add_ffn(layer);
      add_norm(Role::moe_norm_out, layer);
      continue;
    }
    add_hidden(Role::router, layer, {d, choice.skip_token ? shape.experts : held});
    add_hidden(Role::up, layer, {held, d, shape.d_expert});
    // The fan-in of the down projection is d_expert, which is the same in every preset, so its initial
    // standard deviation does not scale with width.
    specs.push_back({Role::down, layer, {held, shape.d_expert, d}, kBaseStd, 1, 1 / (width * depth)});
    add_norm(Role::moe_norm_out, layer);
  }
  add_norm(Role::final_norm, -1);
  return specs;
}

std::size_t parameter_index(std::int64_t layer, Role role, bool dense) {
  const auto first = static_cast<int>(Role::attention_norm_in);
  int place = static_cast<int>(role) - first;
  if (dense) {
    const int ffn = static_cast<int>(Role::router) - first;  // the feed-forward block is where the router was
    if (role == Role::ffn_up || role == Role::ffn_down) place = ffn + (role == Role::ffn_down ? 1 : 0);
    if (role == Role::moe_norm_out) place = ffn + 2;
  }
  return static_cast<std::size_t>(2 + layer * (dense ? kTensorsPerDenseLayer : kTensorsPerLayer) + place);
}

}  // namespace fomoe::trainer
