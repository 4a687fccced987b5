// Tests the moves of tokens to the rows of their experts and back. The plain loops that serve as reference
// for the CUDA kernels are compared with results by hand and with LibTorch's own derivatives.
#include "trainer/kernels/expert_rows/expert_rows.hpp"

#include <limits>

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

/// Fills the rows of ghosts with NaN, so that reading one shows in the result.
at::Tensor with_nan_ghosts(const at::Tensor& rows, const Route& route) {
  at::Tensor out = rows.clone();
  const std::int64_t here = route.ends[-1].item<std::int64_t>();
  out.narrow(0, here, out.size(0) - here).fill_(std::numeric_limits<double>::quiet_NaN());
  return out;
}

at::Tensor here_only(const at::Tensor& rows, const Route& route) {
  return rows.narrow(0, 0, route.ends[-1].item<std::int64_t>());
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return a.numel() == 0 ? 0 : largest_difference(a, b);
}

}  // namespace

TEST_CASE("two tokens with two choices each, one of which is a ghost") {
  // Token 0 chose experts 1 and 0, token 1 expert 0 and a ghost (2). The rows are t0 and t1 of expert 0, then
  // t0 of expert 1.
  const Route sorted = route(at::tensor({1, 0, 0, 2}, at::kLong), 2);
  const at::Tensor x = at::tensor({1.0, 2.0, 10.0, 20.0}).view({2, 2});
  const at::Tensor rows = rows_of_experts(x, sorted, 2);
  CHECK(at::equal(here_only(rows, sorted), at::tensor({1.0, 2.0, 10.0, 20.0, 1.0, 2.0}).view({3, 2})));

  // Row 0 is token 0's second choice, row 1 token 1's first choice, and row 2 token 0's first choice.
  const at::Tensor gates = at::tensor({0.5, 0.25, 0.125, 9.0}).view({2, 2});
  const at::Tensor out = weighted_sum_of_rows(with_nan_ghosts(rows, sorted), gates, sorted);
  CHECK(at::equal(out, at::tensor({0.75, 1.5, 1.25, 2.5}).view({2, 2})));
}

TEST_CASE("values and gradients are LibTorch's, for every share of ghosts, empty experts included") {
  at::manual_seed(8);
  const std::int64_t tokens = 13, chosen = 3, d = 5, experts = 4;
  for (const std::int64_t here : {0, 1, 2, 4}) {  // number of local experts; 0: all experts are ghosts
    CAPTURE(here);
    const at::Tensor drawn = at::randint(experts, {tokens * chosen}, at::kLong);
    const Route sorted = route(at::where(drawn < here, drawn, at::full_like(drawn, experts)), experts);
    const at::TensorOptions fp64 = at::kDouble;
    const at::Tensor x = at::randn({tokens, d}, fp64), gates = at::rand({tokens, chosen}, fp64);

    // rows_of_experts is an index_select; only its first rows belong to local experts.
    const at::Tensor tokens_of_rows = sorted.permutation.floor_divide(chosen);
    CHECK(at::equal(here_only(rows_of_experts(x, sorted, chosen), sorted),
                    here_only(x.index_select(0, tokens_of_rows), sorted)));
    const at::Tensor d_rows = at::randn({tokens * chosen, d}, fp64);
    at::Tensor d_x = at::zeros({tokens, d}, fp64);
    d_x.index_add_(0, here_only(tokens_of_rows, sorted), here_only(d_rows, sorted));
    CHECK(difference(rows_of_experts_backward(with_nan_ghosts(d_rows, sorted), sorted, chosen), d_x) < 1e-12);

    // SiLU.
    const at::Tensor h = at::randn({tokens * chosen, d}, fp64), plain = with_nan_ghosts(h, sorted);
    CHECK(difference(here_only(silu_of_rows(plain, sorted.ends), sorted), here_only(at::silu(h), sorted)) <
          1e-12);

    // The weighted sum, compared with autograd on rows of ghosts set to zero.
    const auto zero_ghosts = [&](const at::Tensor& rows) {
      return at::nan_to_num(with_nan_ghosts(rows, sorted));
    };
    const auto summed = [&](const at::Tensor& rows, const at::Tensor& weights) {
      return (rows.index_select(0, sorted.position).view({tokens, chosen, -1}) * weights.unsqueeze(2)).sum(1);
    };
    const at::Tensor y = at::randn({tokens * chosen, d}, fp64);
    CHECK(difference(weighted_sum_of_rows(with_nan_ghosts(y, sorted), gates, sorted),
                     summed(zero_ghosts(y), gates)) < 1e-12);

    // The gradients of gates and h through the sum, the product with one matrix for all, and SiLU.
    const at::Tensor down = at::randn({d, d + 2}, fp64), leaf = h.clone().requires_grad_(),
                     weights = gates.clone().requires_grad_();
    const at::Tensor a = at::silu(leaf), d_out = at::randn({tokens, d + 2}, fp64);
    const at::Tensor mask = zero_ghosts(at::ones({tokens * chosen, 1}, fp64));
    summed(at::mm(a, down) * mask, weights).backward(d_out);
    const at::Tensor u = at::mm(d_out.index_select(0, tokens_of_rows), down.t());
    const GatedSiluGradients got = gated_silu_backward(with_nan_ghosts(u, sorted), plain, gates, sorted);
    CHECK(difference(here_only(got.d_h, sorted), here_only(leaf.grad(), sorted)) < 1e-12);
    CHECK(difference(got.d_gates, weights.grad()) < 1e-12);
    const at::Tensor gate_of_row = gates.flatten().index_select(0, sorted.permutation).unsqueeze(1);
    CHECK(difference(here_only(got.gated, sorted), here_only(gate_of_row * at::silu(h), sorted)) < 1e-12);
  }
}

TEST_CASE("bf16 sums in fp32: 512 ones make 512, where a sum in bf16 would stay at 256") {
  const std::int64_t chosen = 512;
  const Route sorted = route(at::zeros({chosen}, at::kLong), 1);
  const at::Tensor y = at::ones({chosen, 1}, at::kBFloat16);
  const at::Tensor gates = at::full({1, chosen}, 1.0 / 256, at::kBFloat16);
  CHECK(weighted_sum_of_rows(y, gates, sorted).item<double>() == 2.0);
  CHECK(weighted_sum_of_rows(y, at::ones({1, chosen}, at::kBFloat16), sorted).item<double>() == 512.0);
}

TEST_CASE("matrices that are not contiguous, or no matrices, are refused by name") {
  const Route sorted = route(at::tensor({1, 0, 0, 2}, at::kLong), 2);
  const at::Tensor good = at::ones({2, 2}, at::kDouble), rows = at::ones({4, 2}, at::kDouble);
  const auto refused = [](const std::string& name, const auto& call) {
    try {
      (void)call();
      FAIL("accepted: " << name);
    } catch (const c10::Error& error) {
      const std::string said = error.what_without_backtrace();
      CHECK_MESSAGE(said.find(name + " must be a contiguous matrix") != std::string::npos, said);
    }
  };
  for (const at::Tensor& bad :
       {at::ones({2, 4}, at::kDouble).slice(1, 0, 4, 2), at::ones({2}, at::kDouble)}) {
    refused("the tokens", [&] { return rows_of_experts(bad, sorted, 2); });
    refused("the gates", [&] { return weighted_sum_of_rows(rows, bad, sorted); });
    refused("the rows of the experts", [&] { return weighted_sum_of_rows(bad, good, sorted); });
    refused("the gradient of SiLU's output", [&] { return gated_silu_backward(bad, rows, good, sorted); });
    refused("the input of SiLU", [&] { return gated_silu_backward(rows, bad, good, sorted); });
    refused("the input of SiLU", [&] { return silu_of_rows(bad, sorted.ends); });
    refused("the gates", [&] { return gated_silu_backward(rows, rows, bad, sorted); });
  }
}
