// Checks that the outer step in one pass equals that of OuterOptimizer, which uses LibTorch's operators on
// the CPU.
#include "trainer/kernels/outer_step/outer_step.hpp"

#include "tests/trainer/support.hpp"
#include "trainer/kernels/outer_step/outer_step_row.hpp"
#include "trainer/optimizer/outer_optimizer.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE("one element by hand: θ = 1, b = 2, d = 0.5, η = 0.7, μ = 0.9") {
  at::Tensor theta = at::tensor({1.0}), b = at::tensor({2.0});
  nesterov_step(theta, b, at::tensor({0.5}), 0.7, 0.9);
  CHECK(b.item<double>() == doctest::Approx(0.9 * 2 + 0.5).epsilon(1e-15));  // 2.3
  CHECK(theta.item<double>() == doctest::Approx(1 - 0.7 * (0.5 + 0.9 * 2.3)).epsilon(1e-15));
}

TEST_CASE("three steps in one pass and by operators: the same values and momentum") {
  at::manual_seed(51);
  const at::Tensor start = at::randn({3, 5}, at::kDouble);
  at::Tensor anchor = start.clone(), momentum = at::zeros_like(start), expected = start.clone();
  OuterOptions options;
  OuterOptimizer optimizer(options, {start});
  for (int step = 0; step < 3; ++step) {
    const at::Tensor difference = at::randn_like(start);
    nesterov_step(anchor, momentum, difference, options.learning_rate, options.momentum);
    optimizer.step(
        0, [](const at::Tensor& state) { return state; }, expected, difference);
    CHECK(largest_difference(anchor, expected) < 1e-14);
    CHECK(largest_difference(momentum, optimizer.first()[0]) < 1e-14);
  }
}

TEST_CASE(
    "packs of 4 elements write what single ones do; other sizes are refused, and the CPU needs no kernel") {
  at::manual_seed(52);
  const at::Tensor d = at::randn({8});
  at::Tensor theta = at::randn({8}), b = at::randn({8}), theta4 = theta.clone(), b4 = b.clone();
  nesterov_step(theta, b, d, 0.7, 0.9);
  const NesterovStep<float> step{theta4.mutable_data_ptr<float>(),
                                 b4.mutable_data_ptr<float>(),
                                 d.const_data_ptr<float>(),
                                 8,
                                 0.7f,
                                 0.9f};
  for (const std::int64_t i : {4, 0}) nesterov_elements<4>(step, i);
  CHECK(at::equal(theta4, theta));
  CHECK(at::equal(b4, b));
  CHECK(!fits_nesterov_kernel(theta, b, d));
  CHECK_THROWS_AS(nesterov_step(theta, b, at::zeros({7}), 0.7, 0.9), c10::Error);
  CHECK_THROWS_AS(nesterov_step(theta, b, d.to(at::kDouble), 0.7, 0.9), c10::Error);
}
