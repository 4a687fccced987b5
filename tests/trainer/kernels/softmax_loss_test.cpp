// Tests the cross-entropy of rows of logits and its gradient: the row function that CPU and GPU share, and
// LibTorch's operators beside it.
#include "trainer/kernels/softmax_loss/softmax_loss.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/thread_team.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/kernels/softmax_loss/softmax_loss_row.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

using Losses = decltype(&softmax_losses);

struct Expected {
  at::Tensor losses, gradients;
};

/// By autograd, from the first `vocabulary` columns; the gradient of the others is 0.
Expected by_autograd(const at::Tensor& logits, const at::Tensor& targets, std::int64_t vocabulary) {
  const at::Tensor leaf = logits.clone().requires_grad_();
  const at::Tensor losses =
      -at::log_softmax(leaf.narrow(1, 0, vocabulary), 1).gather(1, targets.unsqueeze(1)).squeeze(1);
  return {losses.detach(), torch::autograd::grad({losses.sum()}, {leaf})[0]};
}

}  // namespace

TEST_CASE("losses and gradients are LibTorch's; padding does not count, whatever it contains") {
  at::manual_seed(3);
  for (const Losses losses_of : {softmax_losses, softmax_losses_of_operators}) {
    for (const double scale : {1.0, 300.0}) {  // 300: the probability of many targets underflows
      for (const auto& [vocabulary, stride] : {std::pair{1, 1}, {50, 50}, {50, 64}, {61, 64}}) {
        CAPTURE(scale);
        CAPTURE(vocabulary);
        CAPTURE(stride);
        at::Tensor logits = at::randn({7, stride}, at::kDouble) * scale;
        logits.narrow(1, vocabulary, stride - vocabulary).fill_(1e4);
        const at::Tensor targets = at::randint(vocabulary, {7}, at::kLong);
        const Expected expected = by_autograd(logits, targets, vocabulary);
        const at::Tensor losses = losses_of(logits, targets, vocabulary, /*gradients=*/true);
        CHECK(largest_difference(losses, expected.losses) < 1e-12 * scale);
        CHECK(largest_difference(logits, expected.gradients) < 1e-12);
      }
    }
  }
}

TEST_CASE("without gradients the losses are the same and the logits stay") {
  at::manual_seed(4);
  const at::Tensor before = at::randn({5, 64}, at::kDouble), targets = at::randint(60, {5}, at::kLong);
  at::Tensor logits = before.clone(), overwritten = before.clone();
  const at::Tensor losses = softmax_losses(logits, targets, 60, /*gradients=*/false);
  CHECK(at::equal(logits, before));
  CHECK(at::equal(losses, softmax_losses(overwritten, targets, 60, /*gradients=*/true)));
}

TEST_CASE("in bf16 the gradient of a target that is nearly certain is not rounded away") {
  // softmax = 1/(1 + e^−8) = 1 − 3.4e-4, which is 1 in bf16. It has an error of about 2^−24 in fp32, and its
  // difference from 1 is rounded to bf16.
  const at::Tensor before = at::tensor({8.0, 0.0}).to(at::kBFloat16).view({1, 2}),
                   target = at::zeros({1}, at::kLong);
  const double exact = 1 / (1 + std::exp(-8.0)) - 1;
  at::Tensor own = before.clone(), library = before.clone();
  softmax_losses(own, target, 2, /*gradients=*/true);
  softmax_losses_of_operators(library, target, 2, /*gradients=*/true);
  CHECK(std::abs(own[0][0].item<double>() - exact) <= 0x1p-9 * std::abs(exact) + 0x1p-23);
  CHECK(library[0][0].item<double>() == 0);
}

TEST_CASE("logits of minus infinity have probability 0; a NaN is not hidden") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor target = at::tensor({3}, at::kLong);
  at::Tensor logits = at::tensor({-kInfinity, -kInfinity, 1.0, 1.0}, at::kDouble).view({1, 4});
  CHECK(softmax_losses(logits, target, 4, true).item<double>() == doctest::Approx(std::log(2.0)));
  CHECK(at::equal(logits.flatten(), at::tensor({0.0, 0.0, 0.5, -0.5}, at::kDouble)));
  for (const std::int64_t place : {0, 1, 3}) {
    CAPTURE(place);
    at::Tensor bad = at::ones({1, 4}, at::kDouble);
    bad[0][place] = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isnan(softmax_losses(bad, target, 4, true).item<double>()));
    CHECK(bad.isnan().all().item<bool>());
  }
}

TEST_CASE("a target outside of the vocabulary reads nothing and has no loss") {
  for (const std::int64_t target : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40}) {
    at::Tensor logits = at::zeros({1, 4}, at::kDouble);
    CHECK(std::isnan(softmax_losses(logits, at::tensor({target}, at::kLong), 3, true).item<double>()));
  }
}

TEST_CASE("members of a team share a row of packs, and read the target before they overwrite it") {
  at::manual_seed(6);
  for (const int members : {2, 5}) {
    for (const auto& [vocabulary, stride] : {std::pair{3, 4}, {64, 64}, {101, 104}}) {
      CAPTURE(members);
      CAPTURE(vocabulary);
      const at::Tensor logits = at::randn({2, stride}, at::kDouble),
                       targets = at::randint(vocabulary, {2}, at::kLong),
                       losses = at::empty({2}, at::kDouble);
      const Expected expected = by_autograd(logits, targets, vocabulary);
      const SoftmaxLoss arguments{logits.mutable_data_ptr(),
                                  targets.const_data_ptr<std::int64_t>(),
                                  losses.mutable_data_ptr(),
                                  2,
                                  vocabulary,
                                  stride,
                                  /*gradients=*/true};
      ThreadTeam team(members);
      team.run([&](const ThreadTeam::Member& member) {
        for (std::int64_t row = 0; row < 2; ++row) softmax_loss_row<double, 4>(member, arguments, row);
      });
      CHECK(largest_difference(losses, expected.losses) < 1e-12);
      CHECK(largest_difference(logits, expected.gradients) < 1e-12);
    }
  }
}

TEST_CASE("logits and targets that do not fit are refused") {
  at::Tensor logits = at::zeros({2, 4}), columns = at::zeros({4, 2}).t();
  const at::Tensor targets = at::zeros({2}, at::kLong);
  for (const Losses losses_of : {softmax_losses, softmax_losses_of_operators}) {
    CHECK_THROWS_AS(losses_of(columns, targets, 4, true), c10::Error);
    CHECK_THROWS_AS(losses_of(logits, targets, 5, true), c10::Error);
    CHECK_THROWS_AS(losses_of(logits, targets, 0, true), c10::Error);
    CHECK_THROWS_AS(losses_of(logits, at::zeros({3}, at::kLong), 4, true), c10::Error);
    CHECK_THROWS_AS(losses_of(logits, targets.to(at::kInt), 4, true), c10::Error);
  }
}
