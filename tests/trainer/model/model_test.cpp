// Tests the whole model: its gradients, and the properties that its equations imply.
#include <cmath>

#include "tests/trainer/support.hpp"
#include "trainer/optimizer/adamw.hpp"
#include "trainer/rope/rope.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

at::Tensor random_tokens(std::int64_t sequences = 2) {
  at::manual_seed(11);
  return at::randint(tiny_shape().vocabulary, {sequences, tiny_shape().sequence_length}, at::kLong);
}

Model tiny_model(ExpertChoice experts = {}, Kernels kernels = Kernels::library) {
  ModelOptions options;
  options.dtype = at::kDouble;
  options.kernels = kernels;
  options.experts = std::move(experts);
  Model model(tiny_shape(), options);
  // Initial weights are so small that the epsilon of each LN dominates its branch. Weights are therefore set
  // to order 1, and the scales to different values.
  const at::NoGradGuard no_grad;
  at::manual_seed(12);
  for (const Parameter& parameter : model.parameters()) {
    const bool norm = parameter.spec.initial_std == 0;
    at::Tensor values = parameter.master.detach();
    values.copy_(at::randn(values.sizes(), values.options()) * (norm ? 0.2 : 0.6) + (norm ? 1.0 : 0.0));
  }
  model.refresh_compute_weights();
  return model;
}

void check_gradients(Model model) {
  const at::Tensor tokens = random_tokens(), targets = tokens.roll(-1, 1);
  {
    const PoisonedMemory poison;
    model.loss(tokens, targets).backward();
  }
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : model.parameters()) {
    CAPTURE(parameter.spec.name());
    const at::Tensor gradient = parameter.compute.grad().flatten();
    at::Tensor values = parameter.master.detach().flatten();  // a view
    const std::int64_t stride = std::max<std::int64_t>(1, values.numel() / 12);
    for (std::int64_t i = 0; i < values.numel(); i += stride) {
      const double kept = values[i].item<double>(), step = 1e-5;
      values[i] = kept + step;
      const double above = model.loss(tokens, targets).item<double>();
      values[i] = kept - step;
      const double below = model.loss(tokens, targets).item<double>();
      values[i] = kept;
      // Central differences: the truncation error is step² ≈ 1e-10, and the rounding error 1e-16/step ≈
      // 1e-11.
      CHECK(gradient[i].item<double>() ==
            doctest::Approx((above - below) / (2 * step)).epsilon(1e-6).scale(1e-2));
    }
  }
}

}  // namespace

TEST_CASE("gradients of the whole model by central differences") { check_gradients(tiny_model()); }
TEST_CASE("the same, with some experts and a router that scores those") {
  check_gradients(tiny_model({{{1, 3}, {2}}, false}));  // N_le = 1 < k = 2 in the second layer
}
TEST_CASE("the same, with skip-token") { check_gradients(tiny_model({{{1, 3}, {2}}, true})); }
TEST_CASE("the same, out of our own kernels, here as plain loops") {
  check_gradients(tiny_model({}, Kernels::own));
  check_gradients(tiny_model({{{1, 3}, {2}}, true}, Kernels::own));
}

TEST_CASE("our own kernels compute what LibTorch's operators do: loss and all gradients, in fp64 and fp32") {
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-11}, std::pair{at::kFloat, 1e-4}}) {
    CAPTURE(c10::toString(dtype));
    ModelOptions options;
    options.dtype = dtype;
    options.experts = {{{1, 3}, {2}}, true};
    options.kernels = Kernels::library;
    const Model library(tiny_shape(), options);
    options.kernels = Kernels::own;
    const Model own(tiny_shape(), options);
    const at::Tensor tokens = random_tokens(), targets = tokens.roll(-1, 1);
    const at::Tensor expected = library.loss(tokens, targets), loss = own.loss(tokens, targets);
    CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(tolerance));
    expected.backward();
    loss.backward();
    for (std::size_t i = 0; i < own.parameters().size(); ++i) {
      CAPTURE(own.parameters()[i].spec.name());
      const at::Tensor wanted = library.parameters()[i].compute.grad();
      CHECK(largest_difference(own.parameters()[i].compute.grad(), wanted) <=
            tolerance * wanted.abs().max().item<double>());
    }
  }
}

TEST_CASE("the model is its equations: one layer, written out") {
  costmodel::ModelShape shape = tiny_shape();
  shape.layers = 1;
  ModelOptions options;
  options.dtype = at::kDouble;
  const Model model(shape, options);
  const at::Tensor tokens = random_tokens();
  const std::int64_t batch = tokens.size(0), length = tokens.size(1), d = 8, heads = 2, head = 4;
  auto weight = [&](Role role) { return model.parameters()[parameter_index(0, role)].master; };
  auto norm = [](const at::Tensor& x) {  // all scales of an untrained model are 1
    const at::Tensor centred = x - x.mean(-1, true);
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  };
  const at::Tensor embedding = model.parameters().front().master;

  at::Tensor x = norm(embedding.index_select(0, tokens.flatten()));
  const at::Tensor qkv = at::mm(norm(x), weight(Role::qkv).t()).view({batch, length, 3, heads, head});
  const RotaryTable table = rotary_table(length, head, at::kDouble);
  const at::Tensor q = rope(qkv.select(2, 0), table).transpose(1, 2),
                   k = rope(qkv.select(2, 1), table).transpose(1, 2);
  const at::Tensor future = at::ones({length, length}, at::kBool).triu(1);
  const at::Tensor scores = (at::matmul(q, k.transpose(2, 3)) / head).masked_fill(future, -INFINITY);
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), qkv.select(2, 2).transpose(1, 2));
  const double s = 4.0;  // (L/L_base)^−1 with L = 1, L_base = 4
  x = x + s * norm(at::mm(mixed.transpose(1, 2).reshape({batch * length, d}),
                          weight(Role::attention_output).t()));

  const at::Tensor in = norm(x), gate = at::sigmoid(at::mm(in, weight(Role::router)));
  const at::Tensor chosen = gate >= std::get<0>(gate.topk(2, 1)).narrow(1, 1, 1);
  at::Tensor y = at::zeros_like(in);
  for (int e = 0; e < 4; ++e) {
    const at::Tensor out = at::mm(at::silu(at::mm(in, weight(Role::up)[e])), weight(Role::down)[e]);
    y = y + out * (gate * chosen).narrow(1, e, 1);
  }
  x = x + s * norm(y);

  const at::Tensor expected = norm(x) * (256.0 / 8.0);  // logits / (d/d_base)
  CHECK(largest_difference(model.hidden(tokens), expected) < 1e-9);
  const at::Tensor loss = at::cross_entropy_loss(at::mm(expected, embedding.t()), tokens.flatten());
  CHECK(model.loss(tokens, tokens).item<double>() == doctest::Approx(loss.item<double>()).epsilon(1e-10));
}

TEST_CASE("causal: a token changes no earlier position") {
  const Model model = tiny_model();
  const at::Tensor tokens = random_tokens(1);
  at::Tensor changed = tokens.clone();
  changed[0][4] = (tokens[0][4] + 1) % tiny_shape().vocabulary;
  const at::Tensor before = model.hidden(tokens), after = model.hidden(changed);
  CHECK(largest_difference(before.narrow(0, 0, 4), after.narrow(0, 0, 4)) < 1e-12);
  CHECK(largest_difference(before.narrow(0, 4, 2), after.narrow(0, 4, 2)) > 1e-3);
}

TEST_CASE("rotary positions: q·k depends on the distance only, lengths are kept, position 0 stays") {
  at::manual_seed(1);
  const std::int64_t length = 9, head = 8;
  const at::Tensor q = at::randn({head}, at::kDouble), k = at::randn({head}, at::kDouble);
  const RotaryTable table = rotary_table(length, head, at::kDouble);
  const at::Tensor turned_q = rope(q.expand({1, length, 1, head}), table).squeeze(2)[0];
  const at::Tensor turned_k = rope(k.expand({1, length, 1, head}), table).squeeze(2)[0];
  const at::Tensor products = at::mm(turned_q, turned_k.t());  // [position of q, position of k]
  for (std::int64_t distance = 0; distance < length; ++distance) {
    const at::Tensor diagonal = products.diagonal(distance);
    CHECK(largest_difference(diagonal, diagonal[0].expand_as(diagonal)) < 1e-12);
  }
  CHECK(largest_difference(products.diagonal(0)[0], products.diagonal(1)[0]) > 1e-3);
  CHECK(largest_difference(turned_q.norm(2, 1), q.norm().expand({length})) < 1e-12);
  CHECK(largest_difference(turned_q[0], q) == 0);
  // The pair (0, h/2) rotates by one radian per position.
  const double a = q[0].item<double>(), b = q[4].item<double>();
  CHECK(turned_q[1][0].item<double>() == doctest::Approx(a * std::cos(1.0) - b * std::sin(1.0)));
  CHECK(turned_q[1][4].item<double>() == doctest::Approx(b * std::cos(1.0) + a * std::sin(1.0)));
}

TEST_CASE(
    "AdamW: two steps against the equations, with each parameter's own rate, epsilon and decay, or one for "
    "all") {
  bool scaled = true;
  SUBCASE("scaled with width and depth") {}
  SUBCASE("not scaled") { scaled = false; }
  Model model = tiny_model();
  AdamWOptions settings;
  settings.complete_p = scaled;
  settings.learning_rate = 0.01;
  settings.epsilon = 1e-3;  // large, so that a wrong epsilon_scale shows
  settings.weight_decay = 0.5;
  AdamW optimizer(model, settings);
  const at::Tensor tokens = random_tokens();
  std::vector<at::Tensor> expected, m, v;
  for (const Parameter& parameter : model.parameters()) {
    expected.push_back(parameter.master.detach().clone());
    m.push_back(at::zeros_like(expected.back()));
    v.push_back(at::zeros_like(expected.back()));
  }
  for (int t = 1; t <= 2; ++t) {
    model.loss(tokens, tokens.roll(-1, 1)).backward();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const at::Tensor g = model.parameters()[i].compute.grad().clone();
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const at::Tensor m_hat = m[i] / (1 - std::pow(0.9, t)), v_hat = v[i] / (1 - std::pow(0.95, t));
      const ParameterSpec& spec = model.parameters()[i].spec;
      const bool norm = spec.sizes.size() == 1, in_layer = spec.layer >= 0;
      const double width = 8.0 / 256, depth = 2.0 / 4;  // m_d and m_L of the tiny model
      const double slower = scaled && !norm && in_layer && spec.role != Role::down ? width : 1;
      const double epsilon = 1e-3 / (scaled ? width * (in_layer ? depth : 1) : 1);
      const double decay = norm ? 0 : 0.01 * 0.5;  // a matrix loses the same share at every width
      expected[i] = (1 - decay) * expected[i] - 0.01 / slower * m_hat / (v_hat.sqrt() + epsilon);
    }
    optimizer.step();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(model.parameters()[i].spec.name());
      CHECK(largest_difference(model.parameters()[i].master, expected[i]) < 1e-7);  // step counts are fp32
      // Relative, since second moments are squares of gradients of order 100.
      CHECK(largest_difference(optimizer.moment1()[i], m[i]) <= 1e-13 * m[i].abs().max().item<double>());
      CHECK(largest_difference(optimizer.moment2()[i], v[i]) <= 1e-13 * v[i].abs().max().item<double>());
      CHECK(!model.parameters()[i].compute.grad().defined());
    }
  }
}

TEST_CASE("training learns a repeated batch, in every dtype and with skip-token") {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const bool skip_token : {false, true}) {
      CAPTURE(c10::toString(dtype));
      ModelOptions options;
      options.dtype = dtype;
      if (skip_token) options.experts = {{{0, 1}, {2, 3}}, true};
      Model model(tiny_shape(), options);
      AdamW optimizer(model, {});
      const at::Tensor tokens = random_tokens(), targets = tokens.roll(-1, 1);
      double first = 0, last = 0;
      for (int step = 0; step < 30; ++step) {
        const at::Tensor loss = model.loss(tokens, targets);
        last = loss.item<double>();
        if (step == 0) first = last;
        loss.backward();
        optimizer.step();
      }
      CHECK(last < first - 0.5);
    }
  }
}
