// Tests models without experts, and the numbers of the function that are not parameters: the base of the
// rotary positions and the router's temperature.
#include <cmath>

#include "tests/trainer/run/training_case.hpp"
#include "trainer/rope/rope.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

/// As wide as the two experts that a token of the tiny model uses.
costmodel::ModelShape dense_shape() {
  costmodel::ModelShape shape = tiny_shape();
  shape.experts = shape.active_experts = shape.d_expert = 0;
  shape.dense_layers = shape.layers;
  shape.d_ffn = 6;
  return shape;
}

Model model_in_fp64(const costmodel::ModelShape& shape, ModelConstants constants = {}) {
  ModelOptions options;
  options.dtype = at::kDouble;
  options.constants = constants;
  return {shape, options};
}

at::Tensor random_text() {
  at::manual_seed(11);
  return at::randint(17, {2, 6}, at::kLong);
}

/// The dense weights of `from` in a mixture with one expert, whose gate is 1/2 because its router is 0.
void copy_to_one_expert(const Model& from, const Model& to) {
  const at::NoGradGuard no_grad;
  for (const Parameter& into : to.parameters()) {
    const ParameterSpec& spec = into.spec;
    at::Tensor values = into.master.detach();
    if (spec.role == Role::router) {
      values.zero_();
      continue;
    }
    for (const Parameter& given : from.parameters()) {
      const bool same = given.spec.name() == spec.name();
      const bool up = spec.role == Role::up && given.spec.role == Role::ffn_up;
      const bool down = spec.role == Role::down && given.spec.role == Role::ffn_down;
      if (same) values.copy_(given.master);
      if ((up || down) && given.spec.layer == spec.layer) values[0].copy_(given.master * (down ? 2 : 1));
    }
  }
}

}  // namespace

TEST_CASE("a dense model has the parameters that the cost model counts, each where its index says") {
  const costmodel::ModelShape shape = dense_shape();
  const Model model(shape, {});
  const costmodel::ParameterCounts counts = costmodel::count_parameters(shape);
  CHECK(model.parameter_count() == counts.total());
  CHECK(counts.router + counts.expert == 0);
  CHECK(counts.dense_ffn == 2 * 2 * 8 * 6);  // layers · (up and down) · d · d_ffn
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.spec.layer < 0) continue;
    CAPTURE(parameter.spec.name());
    const std::size_t index = parameter_index(parameter.spec.layer, parameter.spec.role, /*dense=*/true);
    CHECK(model.parameters().at(index).spec.name() == parameter.spec.name());
  }
}

TEST_CASE("a dense model computes what one expert with a gate of 1/2 and twice the output does") {
  costmodel::ModelShape one = tiny_shape();
  one.experts = one.active_experts = 1;
  one.d_expert = 6;
  const Model dense = model_in_fp64(dense_shape()), expert = model_in_fp64(one);
  copy_to_one_expert(dense, expert);
  const at::Tensor tokens = random_text(), targets = tokens.roll(-1, 1);
  const at::Tensor loss = dense.loss(tokens, targets), expected = expert.loss(tokens, targets);
  CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(1e-12));
  loss.backward();
  expected.backward();
  const auto gradient = [](const Model& model, Role role) {
    return model.parameters()[parameter_index(1, role, model.shape().experts == 0)].compute.grad();
  };
  const at::Tensor up = gradient(dense, Role::ffn_up), down = gradient(dense, Role::ffn_down);
  CHECK(largest_difference(up, gradient(expert, Role::up)[0]) <= 1e-10 * up.abs().max().item<double>());
  // the expert's output matrix is twice the dense one, so its gradient is half
  CHECK(largest_difference(down, 2 * gradient(expert, Role::down)[0]) <=
        1e-10 * down.abs().max().item<double>());
  CHECK(up.abs().max().item<double>() > 0);
}

TEST_CASE("the rates of a dense model's block follow its fan-ins") {
  costmodel::ModelShape shape = dense_shape();
  shape.d_model = 512;
  shape.d_ffn = 1024;
  shape.layers = 8;
  const std::vector<ParameterSpec> specs = parameter_specs(shape, {});
  const ParameterSpec& up = specs[parameter_index(3, Role::ffn_up, true)];
  const ParameterSpec& down = specs[parameter_index(3, Role::ffn_down, true)];
  CHECK(up.rate_scale == 0.5);     // 256 ÷ d
  CHECK(down.rate_scale == 0.25);  // 256 ÷ d_ffn
  CHECK(up.initial_std == doctest::Approx(0.02 / std::sqrt(2)));
  CHECK(down.initial_std == doctest::Approx(0.02 / 2));
  CHECK(down.epsilon_scale == 0.25);  // 1 ÷ (m_d · m_L) with m_d = m_L = 2
}

TEST_CASE("every method with full replicas trains a dense model, with the plan's bytes") {
  for (const char* method : {"ddp", "diloco", "local_adamw", "des_loc"}) {
    CAPTURE(method);
    costmodel::Scenario scenario = training_scenario(method, 2);
    scenario.model = dense_shape();
    Training training(scenario, real_options());
    const at::Tensor before = training.weights(0).clone();
    training.run();
    CHECK(largest_difference(before, training.weights(0)) > 1e-3);
    const std::vector<Traffic> planned = planned_traffic(training.plan);
    for (const costmodel::NodeId node : training.executor.hosted())
      check_traffic(training.transport.traffic(node), planned[static_cast<std::size_t>(node)]);
  }
}

TEST_CASE("two sites train a dense model with ddp as one site does") {
  std::vector<at::Tensor> weights;
  for (const int sites : {1, 2}) {
    costmodel::Scenario scenario = training_scenario("ddp", sites);
    scenario.model = dense_shape();
    weights.push_back(Training(scenario, exact_options()).run().weights(0).clone());
  }
  CHECK(largest_difference(weights[0], weights[1]) < 1e-10);
}

TEST_CASE("rotary angles are position · theta^(−2i/h)") {
  const std::int64_t head = 8;
  for (const double theta : {10'000.0, 500.0}) {
    const RotaryTable table = rotary_table(5, head, at::kDouble, theta);
    for (std::int64_t pair = 0; pair < head / 2; ++pair) {
      const double angle = 3 * std::pow(theta, -2.0 * static_cast<double>(pair) / head);
      CHECK(table.cos[3][0][pair].item<double>() == doctest::Approx(std::cos(angle)).epsilon(1e-12));
    }
  }
  const at::Tensor tokens = random_text();
  const double usual = model_in_fp64(tiny_shape()).loss(tokens, tokens).item<double>();
  CHECK(model_in_fp64(tiny_shape(), {500, 1}).loss(tokens, tokens).item<double>() != usual);
}

TEST_CASE("the router's temperature divides its scores, and does not change which experts are chosen") {
  const double temperature = 2.5;
  const at::Tensor tokens = random_text();
  Routing routing, cold_routing;
  const Model model = model_in_fp64(tiny_shape(), {kRopeTheta, temperature});
  const Model cold = model_in_fp64(tiny_shape());
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < cold.parameters().size(); ++i) {
      if (cold.parameters()[i].spec.role == Role::router) {
        // scores of order 1, so that gates differ from 1/2
        model.parameters()[i].master.detach().mul_(200);
        cold.parameters()[i].master.detach().copy_(model.parameters()[i].master / temperature);
      }
    }
  }
  routing.wants_balance = cold_routing.wants_balance = true;
  const double loss = model.loss(tokens, tokens, &routing).item<double>();
  CHECK(loss == doctest::Approx(cold.loss(tokens, tokens, &cold_routing).item<double>()).epsilon(1e-12));
  CHECK(routing.balance.item<double>() ==
        doctest::Approx(cold_routing.balance.item<double>()).epsilon(1e-12));
  // the first layer's inputs are the same with and without the temperature
  Routing without;
  const Model plain = model_in_fp64(tiny_shape());
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < plain.parameters().size(); ++i)
      plain.parameters()[i].master.detach().copy_(model.parameters()[i].master);
  }
  CHECK(plain.loss(tokens, tokens, &without).item<double>() != doctest::Approx(loss).epsilon(1e-9));
  CHECK(at::equal(without.counts[0], routing.counts[0]));
}
