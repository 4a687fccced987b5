#include "trainer/model/model.hpp"

#include <algorithm>
#include <stdexcept>

#include "trainer/device/cuda_device.hpp"
#include "trainer/kernels/rotary/rotary.hpp"
#include "trainer/model/cross_entropy.hpp"
#include "trainer/model/normal.hpp"
#include "trainer/model/recomputed.hpp"

namespace fomoe::trainer {

using costmodel::ModelShape;

namespace {

constexpr double kNormEpsilon = 1e-5;

bool uses_own(Kernels kernels, at::Device device, at::ScalarType type) {
  if (kernels != Kernels::by_device) return kernels == Kernels::own;
  return device.is_cuda() && type != at::kDouble;
}

}  // namespace

Model::Model(const ModelShape& shape, ModelOptions options)
    : shape_(shape),
      options_(std::move(options)),
      own_kernels_(uses_own(options_.kernels, options_.device, options_.dtype)) {
  if (options_.device.is_cuda()) prefer_cudnn_attention(options_.device);
  const at::ScalarType master = options_.dtype == at::kDouble ? at::kDouble : at::kFloat;
  for (ParameterSpec& spec : parameter_specs(shape_, options_.experts)) {
    Parameter parameter;
    parameter.master = at::empty(spec.sizes, at::TensorOptions().dtype(master).device(options_.device));
    parameter.spec = std::move(spec);
    initialise(parameter);
    parameter.compute = master == options_.dtype ? parameter.master : compute_copy(parameter);
    parameter.compute.requires_grad_();
    parameters_.push_back(std::move(parameter));
  }
  index_local_experts();
}

at::Tensor Model::compute_copy(const Parameter& parameter) {
  if (parameter.spec.role != Role::embedding) return parameter.master.to(options_.dtype);
  padded_embedding_ = at::zeros({padded_vocabulary(shape_.vocabulary), shape_.d_model},
                                parameter.master.options().dtype(options_.dtype));
  return padded_embedding_.narrow(0, 0, shape_.vocabulary).copy_(parameter.master);
}

// Overwrites an existing index in place, since recorded steps (device_graph.hpp) read it at its address.
void Model::index_local_experts() {
  local_index_.resize(static_cast<std::size_t>(shape_.layers));
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const std::vector<int> local = local_experts(shape_, options_.experts, layer);
    // otherwise it stays undefined: the router's columns are the local experts
    if (options_.experts.skip_token && !dense()) {
      at::Tensor index = at::full({shape_.experts}, static_cast<std::int64_t>(local.size()), at::kLong);
      for (std::size_t i = 0; i < local.size(); ++i) index[local[i]] = static_cast<std::int64_t>(i);
      at::Tensor& kept = local_index_[static_cast<std::size_t>(layer)];
      if (kept.defined()) {
        kept.copy_(index);
      } else {
        kept = index.to(options_.device);
      }
    }
  }
}

// Values depend only on (seed, layer, role, expert), so that sites that hold different experts, or train on
// different devices, start from the same model.
void Model::initialise(const Parameter& parameter) const {
  if (options_.device.is_meta()) return;
  const ParameterSpec& spec = parameter.spec;
  at::Tensor values = parameter.master;
  if (spec.initial_std == 0) {
    values.fill_(1);
    return;
  }
  const std::uint64_t seed =
      random_bits(random_bits(options_.seed, static_cast<std::uint64_t>(spec.layer + 1)),
                  static_cast<std::uint64_t>(spec.role));
  const bool per_expert = spec.role == Role::router || spec.role == Role::up || spec.role == Role::down;
  if (!per_expert) {
    fill_normal(values, spec.initial_std, seed);
    return;
  }
  const std::vector<int> local = local_experts(shape_, options_.experts, spec.layer);
  const std::int64_t dim = spec.role == Role::router ? 1 : 0;
  const bool all_columns = spec.role == Role::router && options_.experts.skip_token;
  for (std::int64_t i = 0; i < values.size(dim); ++i) {
    const std::uint64_t expert =
        static_cast<std::uint64_t>(all_columns ? i : local[static_cast<std::size_t>(i)]);
    fill_normal(values.select(dim, i), spec.initial_std, random_bits(seed, expert));
  }
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.master.numel();
  return count;
}

const at::Tensor& Model::weight(std::int64_t layer, Role role) const {
  return parameters_[parameter_index(layer, role, dense())].compute;
}

at::Tensor Model::norm(const at::Tensor& x, const at::Tensor& scale) const {
  return at::layer_norm(x, {shape_.d_model}, scale, /*bias=*/{}, kNormEpsilon);
}

PeriNormed Model::add_branch(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                             const at::Tensor& in_scale) const {
  const double branch = kBaseDepth / static_cast<double>(shape_.layers);  // s = (L/L_base)^−1
  return own_kernels_ ? peri_norm(x, y.contiguous(), out_scale, in_scale, branch, kNormEpsilon)
                      : peri_norm_of_operators(x, y, out_scale, in_scale, branch, kNormEpsilon);
}

at::Tensor Model::attention(std::int64_t layer, const at::Tensor& x, std::int64_t batch,
                            const RotaryTable& table) const {
  const std::int64_t d = shape_.d_model, heads = shape_.heads, head = d / heads, length = x.size(0) / batch;
  const at::Tensor qkv = at::linear(x, weight(layer, Role::qkv)).view({batch, length, 3, heads, head});
  const Heads part = own_kernels_ ? rotated_heads(qkv, table) : rotated_heads_of_operators(qkv, table);
  const at::Tensor mixed =
      at::scaled_dot_product_attention(part.q.transpose(1, 2), part.k.transpose(1, 2), part.v.transpose(1, 2),
                                       /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                       /*is_causal=*/true, /*scale=*/1.0 / static_cast<double>(head));
  return at::linear(mixed.transpose(1, 2).reshape({batch * length, d}),
                    weight(layer, Role::attention_output));
}

MoeLayer Model::moe_layer(std::int64_t layer) const {
  const at::Tensor& router = weight(layer, Role::router);
  return {router,
          weight(layer, Role::up),
          weight(layer, Role::down),
          local_index_[static_cast<std::size_t>(layer)],
          std::min(shape_.active_experts, router.size(1)),
          own_kernels_,
          options_.constants.router_temperature};
}

at::Tensor Model::feed_forward(std::int64_t layer, const at::Tensor& x) const {
  return at::mm(at::silu(at::mm(x, weight(layer, Role::ffn_up))), weight(layer, Role::ffn_down));
}

PeriNormed Model::through_layer(std::int64_t layer, const PeriNormed& x, std::int64_t batch,
                                const RotaryTable& table, RouterUse* use) const {
  const at::Tensor mixed = attention(layer, x.normed, batch, table);
  const PeriNormed middle =
      add_branch(x.sum, mixed, weight(layer, Role::attention_norm_out), weight(layer, Role::moe_norm_in));
  const at::Tensor y =
      dense() ? feed_forward(layer, middle.normed) : moe_forward(middle.normed, moe_layer(layer), use);
  const bool last = layer + 1 == shape_.layers;
  return add_branch(middle.sum, y, weight(layer, Role::moe_norm_out),
                    last ? parameters_.back().compute : weight(layer + 1, Role::attention_norm_in));
}

at::Tensor Model::hidden(const at::Tensor& tokens) const {
  return hidden(tokens, c10::make_intrusive<TiedGradient>(), nullptr, {});
}

at::Tensor Model::hidden(const at::Tensor& tokens, const TiedGradientHandle& tied, Routing* routing,
                         const AtLayer& at_layer) const {
  if (dense()) routing = nullptr;  // it has no routers
  const at::Tensor first =
      norm(tied_lookup(parameters_.front().compute, tokens.flatten(), tied), parameters_[1].compute);
  PeriNormed x{first, norm(first, weight(0, Role::attention_norm_in))};
  const RotaryTable table = rotary_table(tokens.size(1), shape_.d_model / shape_.heads, first.options(),
                                         options_.constants.rope_theta);
  const bool recomputes = options_.activation_checkpointing && first.requires_grad();
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    if (at_layer) {
      // The graph starts anew at this layer's input, so the layer's input norm must be computed from the new
      // leaf.
      const at::Tensor input = at_layer(layer, x.sum);
      if (!input.is_same(x.sum)) x = {input, norm(input, weight(layer, Role::attention_norm_in))};
    }
    RouterUse use;
    if (routing != nullptr) {
      use.wants_balance = routing->wants_balance;
      if (routing->counts.size() <= static_cast<std::size_t>(layer))
        routing->counts.push_back(at::zeros({weight(layer, Role::router).size(1)}, tokens.options()));
      use.counts = routing->counts[static_cast<std::size_t>(layer)];
    }
    RouterUse* const used = routing == nullptr ? nullptr : &use;
    if (recomputes) {
      const LayerOutput out = recomputed(
          x.sum, [this, layer, batch = tokens.size(0), table, use](const at::Tensor& input, bool again) {
            RouterUse seen = use;
            if (again) seen.counts = at::Tensor();  // the tokens were counted the first time
            const PeriNormed from{input, norm(input, weight(layer, Role::attention_norm_in))};
            const bool noted = seen.counts.defined() || seen.wants_balance;
            const at::Tensor sum = through_layer(layer, from, batch, table, noted ? &seen : nullptr).sum;
            return LayerOutput{sum, seen.balance};
          });
      const bool last = layer + 1 == shape_.layers;
      x = {out.output, last ? norm(out.output, parameters_.back().compute) : at::Tensor()};
      use.balance = out.scalar;
    } else {
      x = through_layer(layer, x, tokens.size(0), table, used);
    }
    if (use.balance.defined()) {
      const at::Tensor share = use.balance / static_cast<double>(shape_.layers);
      routing->balance = routing->balance.defined() ? routing->balance + share : share;
    }
  }
  return x.normed * (kBaseWidth / static_cast<double>(shape_.d_model));
}

at::Tensor Model::loss(const at::Tensor& tokens, const at::Tensor& targets, Routing* routing,
                       const AtLayer& at_layer, double weight) const {
  const auto tied = c10::make_intrusive<TiedGradient>();
  return linear_cross_entropy(hidden(tokens, tied, routing, at_layer), parameters_.front().compute,
                              targets.flatten(),
                              /*chunk_tokens=*/0, tied, weight, padded_embedding_, own_kernels_);
}

at::Tensor Model::sequence_losses(const at::Tensor& tokens, const at::Tensor& targets) const {
  const at::NoGradGuard no_grad;
  const auto tied = c10::make_intrusive<TiedGradient>();
  const std::int64_t length = tokens.size(1);
  const at::Tensor all = hidden(tokens, tied, nullptr, {});
  std::vector<at::Tensor> losses;
  for (std::int64_t sequence = 0; sequence < tokens.size(0); ++sequence) {
    losses.push_back(linear_cross_entropy(all.narrow(0, sequence * length, length),
                                          parameters_.front().compute, targets[sequence],
                                          /*chunk_tokens=*/0, tied, 1, padded_embedding_, own_kernels_));
  }
  return at::stack(losses).to(at::kCPU, at::kDouble);
}

void Model::relabel_experts(ExpertChoice experts) {
  const std::vector<ParameterSpec> specs = parameter_specs(shape_, experts);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].sizes != parameters_[i].spec.sizes)
      throw std::invalid_argument("relabel_experts: the number of experts in a layer must not change");
  }
  options_.experts = std::move(experts);
  index_local_experts();
}

void Model::clear_gradients() {
  for (Parameter& parameter : parameters_) parameter.compute.mutable_grad().reset();
}

void Model::refresh_compute_weights() {
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : parameters_) {
    if (!parameter.compute.is_same(parameter.master)) parameter.compute.copy_(parameter.master);
  }
}

}  // namespace fomoe::trainer
