// Compares the MoE layer with plain loops, in fp64.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "tests/trainer/moe_case.hpp"
#include "trainer/model/grouped_product.hpp"
#include "trainer/model/moe_rows.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

constexpr double kTolerance = 1e-9;  // sums of tens of products of order 1, in fp64

/// Counts the bytes that tensors of this thread hold, beyond those from before the object existed.
class HeldMemory {
 public:
  [[nodiscard]] std::int64_t bytes() const { return count_->bytes; }

 private:
  struct Count : c10::MemoryReportingInfoBase {
    std::int64_t bytes = 0;
    void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
      bytes += size;  // negative for memory that is freed
    }
    [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  };
  std::shared_ptr<Count> count_ = std::make_shared<Count>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, count_};
};

// Checks the forward pass and all four gradients. Memory is poisoned, so that a read of a ghost's row shows
// as NaN.
void check_against_loops(MoeCase& test, bool own_kernels) {
  CAPTURE(own_kernels);
  test.layer.own_kernels = own_kernels;
  for (at::Tensor* tensor : {&test.x, &test.layer.router, &test.layer.up, &test.layer.down})
    tensor->mutable_grad().reset();
  const PoisonedMemory poison;
  const at::Tensor y = moe_forward(test.x, test.layer);
  y.backward(test.d_y);
  std::vector<double> expected = moe_reference_forward(test.reference);
  MoeGradients gradients = moe_reference_backward(test.reference, test.upstream());
  CHECK(largest_difference(y, as_tensor(expected, y.sizes())) < kTolerance);
  CHECK(largest_difference(test.x.grad(), as_tensor(gradients.x, test.x.sizes())) < kTolerance);
  CHECK(largest_difference(test.layer.router.grad(), as_tensor(gradients.router, test.layer.router.sizes())) <
        kTolerance);
  CHECK(largest_difference(test.layer.up.grad(), as_tensor(gradients.up, test.layer.up.sizes())) <
        kTolerance);
  CHECK(largest_difference(test.layer.down.grad(), as_tensor(gradients.down, test.layer.down.sizes())) <
        kTolerance);
}

// Checks with LibTorch's operators, and as on CUDA with the CPU loops in place of the kernels.
void check_against_loops(MoeCase& test) {
  check_against_loops(test, false);
  check_against_loops(test, true);
}

}  // namespace

TEST_CASE("the hand-derived backward of the reference is the slope of its forward") {
  MoeCase test(3, 4, 3, 2, {0, -1, 1}, 2);
  const std::vector<double> d_y = test.upstream();
  const MoeGradients gradients = moe_reference_backward(test.reference, d_y);
  auto objective = [&] {
    const std::vector<double> y = moe_reference_forward(test.reference);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += d_y[i] * y[i];
    return sum;
  };
  auto check = [&](std::vector<double>& values, const std::vector<double>& slope) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double kept = values[i], step = 1e-5;
      values[i] = kept + step;
      const double above = objective();
      values[i] = kept - step;
      const double below = objective();
      values[i] = kept;
      CHECK((above - below) / (2 * step) == doctest::Approx(slope[i]).epsilon(1e-6).scale(1));
    }
  };
  check(test.reference.x, gradients.x);
  check(test.reference.router, gradients.router);
  check(test.reference.up, gradients.up);
  check(test.reference.down, gradients.down);
}

TEST_CASE("all experts local") {
  MoeCase test(13, 6, 5, 2, {0, 1, 2, 3}, 4);
  check_against_loops(test);
}

TEST_CASE("one token, one expert") {
  MoeCase test(1, 4, 3, 1, {0}, 1);
  check_against_loops(test);
}

TEST_CASE("experts that no token chooses get zero gradients") {
  MoeCase test(2, 6, 5, 1, {0, 1, 2, 3, 4, 5}, 6);  // 2 slots for 6 experts
  check_against_loops(test);
  CHECK(test.layer.up.grad().abs().amax({1, 2}).eq(0).sum().item<int>() >= 4);
}

TEST_CASE("skip-token: ghosts are dropped") {
  MoeCase test(11, 6, 5, 3, {-1, 0, -1, 1, 2, -1}, 3);
  check_against_loops(test);
}

TEST_CASE("skip-token with fewer local experts than choices") {
  MoeCase test(9, 6, 5, 4, {-1, -1, 0, -1, -1, -1}, 1);  // N_le = 1 < k = 4
  check_against_loops(test);
}

TEST_CASE("tokens that choose ghosts only: output and all gradients are exactly zero") {
  MoeCase test(7, 6, 5, 1, {0, -1, -1}, 1);
  {
    const at::NoGradGuard no_grad;  // x > 0 and a large negative column: expert 0 is never chosen
    test.x.abs_();
    test.layer.router.select(1, 0).fill_(-100);
  }
  test.copy_to_reference();
  check_against_loops(test);
  CHECK(moe_forward(test.x, test.layer).abs().max().item<double>() == 0);
  for (const at::Tensor& tensor : {test.x, test.layer.router, test.layer.up, test.layer.down}) {
    CHECK(tensor.grad().abs().max().item<double>() == 0);
  }
}

TEST_CASE(
    "skip-token: a ghost's router column has gradient zero, and its value changes nothing but who is "
    "chosen") {
  MoeCase test(11, 6, 5, 3, {-1, 0, -1, 1, 2, -1}, 3);
  moe_forward(test.x, test.layer).backward(test.d_y);
  for (const int ghost : {0, 2, 5}) {
    CHECK(test.layer.router.grad().select(1, ghost).abs().max().item<double>() == 0);
  }
  for (const int local : {1, 3, 4}) {
    CHECK(test.layer.router.grad().select(1, local).abs().max().item<double>() > 0);
  }
}

TEST_CASE("our kernels keep one tensor of rows for the backward pass, of the experts' width") {
  constexpr std::int64_t kTokens = 16, kWidth = 32, kExpertWidth = 4, kChosen = 3, kExperts = 4;
  at::manual_seed(12);
  const auto leaf = [](at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).requires_grad_(); };
  const at::Tensor x = leaf({kTokens, kWidth}), gates = leaf({kTokens, kChosen}),
                   up = leaf({kExperts, kWidth, kExpertWidth}), down = leaf({kExperts, kExpertWidth, kWidth});
  const Route sorted = route(at::randint(kExperts, {kTokens * kChosen}, at::kLong), kExperts);
  const HeldMemory held;
  const at::Tensor out = experts_by_rows(x, gates, up, down, sorted);
  const std::int64_t h = kTokens * kChosen * kExpertWidth;
  CHECK(held.bytes() == 8 * (out.numel() + h));
}

TEST_CASE("grouped products: LibTorch's in fp32 and bf16 agree with the loop in fp64, ghosts' rows apart") {
  const PoisonedMemory poison;
  at::manual_seed(9);
  const at::Tensor rows = at::randn({24, 16}), weights = at::randn({3, 16, 8}), right = at::randn({24, 8});
  const at::Tensor ends = at::tensor({5, 5, 20}, at::kInt);  // group 1 is empty, rows 20 to 23 are ghosts
  auto check = [&](at::ScalarType type, double tolerance) {
    CAPTURE(c10::toString(type));
    const at::Tensor a = rows.to(type), w = weights.to(type), b = right.to(type);
    const at::Tensor a64 = a.to(at::kDouble), w64 = w.to(at::kDouble), b64 = b.to(at::kDouble);
    auto used = [](const at::Tensor& out) { return out.narrow(0, 0, 20); };
    CHECK(largest_difference(used(grouped_rows(a, w, ends)), used(grouped_rows(a64, w64, ends))) < tolerance);
    CHECK(largest_difference(used(grouped_rows(b, w.transpose(1, 2), ends)),
                             used(grouped_rows(b64, w64.transpose(1, 2), ends))) < tolerance);
    CHECK(largest_difference(grouped_outer(a, b, ends), grouped_outer(a64, b64, ends)) < tolerance);
    CHECK(grouped_outer(a, b, ends)[1].abs().max().item<double>() == 0);
  };
  check(at::kFloat, 1e-5);
  check(at::kBFloat16, 0.1);  // results of order 8, rounded to 8 bits
}

TEST_CASE("the sparse layer in fp32, whose products are LibTorch's, against the loops") {
  MoeCase test(40, 16, 8, 3, {-1, 0, -1, 1, 2, -1}, 3);
  MoeLayer single = test.layer;
  const at::Tensor x = test.x.detach().to(at::kFloat).requires_grad_();
  for (at::Tensor* tensor : {&single.router, &single.up, &single.down}) {
    *tensor = tensor->detach().to(at::kFloat).requires_grad_();
  }
  const PoisonedMemory poison;
  const at::Tensor y = moe_forward(x, single);
  y.backward(test.d_y.to(at::kFloat));
  std::vector<double> expected = moe_reference_forward(test.reference);
  MoeGradients gradients = moe_reference_backward(test.reference, test.upstream());
  auto close = [](const at::Tensor& got, std::vector<double>& values) {
    const at::Tensor wanted = as_tensor(values, got.sizes());
    return largest_difference(got, wanted) < 1e-5 * wanted.abs().max().item<double>();
  };
  CHECK(close(y, expected));
  CHECK(close(x.grad(), gradients.x));
  CHECK(close(single.router.grad(), gradients.router));
  CHECK(close(single.up.grad(), gradients.up));
  CHECK(close(single.down.grad(), gradients.down));
}
