// Tests x' = x + s·LN(y)·h and LN(x')·g in one pass, forward and backward, against LibTorch's operators and
// their derivatives. It also runs the row functions with a team of several members, as in a GPU's block.
#include "trainer/kernels/peri_norm/peri_norm.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "tests/trainer/kernels/thread_team.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/kernels/peri_norm/peri_norm_row.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

constexpr double kBranch = 0.3, kNormEpsilon = 1e-5;

struct Inputs {
  at::Tensor x, y, out_scale, in_scale, d_sum, d_normed;

  Inputs(std::int64_t rows, std::int64_t d, at::ScalarType type) {
    at::manual_seed(21);
    const auto random = [&](at::IntArrayRef sizes, double mean) {
      return (at::randn(sizes, at::kDouble) + mean).to(type);
    };
    x = random({rows, d}, 0.5);
    y = random({rows, d}, -2);  // a mean that LN must remove
    out_scale = random({d}, 1);
    in_scale = random({d}, 1);
    d_sum = random({rows, d}, 0);
    d_normed = random({rows, d}, 0);
  }
  [[nodiscard]] std::vector<at::Tensor> leaves() const {
    std::vector<at::Tensor> out;
    for (const at::Tensor& t : {x, y, out_scale, in_scale})
      out.push_back(t.detach().clone().requires_grad_());
    return out;
  }
};

/// The two results, then the gradients of x, y, out_scale and in_scale.
template <class F>
std::vector<at::Tensor> values_and_gradients(const F& f, const Inputs& in) {
  const std::vector<at::Tensor> leaf = in.leaves();
  const PeriNormed out = f(leaf[0], leaf[1], leaf[2], leaf[3], kBranch, kNormEpsilon);
  torch::autograd::backward({out.sum, out.normed}, {in.d_sum, in.d_normed});
  return {out.sum, out.normed, leaf[0].grad(), leaf[1].grad(), leaf[2].grad(), leaf[3].grad()};
}

double relative(const at::Tensor& got, const at::Tensor& wanted) {
  return largest_difference(got, wanted) / std::max(1e-9, wanted.abs().max().item<double>());
}

}  // namespace

TEST_CASE("one row by hand: [1, 3] has mean 2 and variance 1") {
  const at::Tensor x = at::tensor({10.0, 20.0}).view({1, 2}), y = at::tensor({1.0, 3.0}).view({1, 2});
  const PeriNormed out =
      peri_norm(x, y, at::tensor({1.0, 2.0}), at::tensor({1.0, 5.0}), /*branch=*/0.5, /*epsilon=*/0);
  // LN(y) = [−1, 1], multiplied by h = [−1, 2]; x' = [10 − 0.5, 20 + 1]; LN(x') is [−1, 1] again, multiplied
  // by g.
  CHECK(largest_difference(out.sum, at::tensor({9.5, 21.0}).view({1, 2})) < 1e-14);
  CHECK(largest_difference(out.normed, at::tensor({-1.0, 5.0}).view({1, 2})) < 1e-14);
}

TEST_CASE("values and gradients are those of LibTorch's operators, in fp64") {
  for (const std::int64_t rows : {1, 3, 700}) {  // 700: more rows than there are teams
    for (const std::int64_t d : {2, 7, 64}) {
      CAPTURE(rows);
      CAPTURE(d);
      const Inputs in(rows, d, at::kDouble);
      const PoisonedMemory poison;
      const auto got = values_and_gradients(peri_norm, in);
      const auto wanted = values_and_gradients(peri_norm_of_operators, in);
      // The two elements of a row of 2 may differ by only 1e-3; the gradient is then a difference of large
      // numbers.
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(relative(got[i], wanted[i]) < (d == 2 ? 1e-8 : 1e-12));
    }
  }
}

TEST_CASE("no rows: empty results, and zero gradients of the scales") {
  const Inputs in(0, 8, at::kFloat);
  const auto got = values_and_gradients(peri_norm, in);
  CHECK(got[0].numel() == 0);
  CHECK(got[2].numel() == 0);
  CHECK(at::equal(got[4], at::zeros({8})));
  CHECK(at::equal(got[5], at::zeros({8})));
}

TEST_CASE(
    "bf16 has fp32 statistics: as close to fp64 as rounding each result once, and closer than operators") {
  const Inputs in(64, 512, at::kBFloat16);
  Inputs exact = in;
  for (at::Tensor* t : {&exact.x, &exact.y, &exact.out_scale, &exact.in_scale, &exact.d_sum, &exact.d_normed})
    *t = t->to(at::kDouble);
  const auto wanted = values_and_gradients(peri_norm_of_operators, exact);
  const auto got = values_and_gradients(peri_norm, in);
  const auto operators = values_and_gradients(peri_norm_of_operators, in);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    const auto error = [&](const at::Tensor& t) {
      return (t.to(at::kDouble) - wanted[i]).norm() / wanted[i].norm();
    };
    // Rounding to 8 bits has an error of at most 2^−9. x' is rounded before it is normalised, so there are
    // two such errors.
    CHECK(error(got[i]).item<double>() < 2.0 / 512);
    CHECK(error(got[i]).item<double>() < 1.05 * error(operators[i]).item<double>());
  }
}

TEST_CASE("a mean of 1000 times the spread does not cancel") {
  Inputs in(4, 64, at::kFloat);
  in.y = in.y + 1000;
  const at::Tensor y64 = in.y.to(at::kDouble);
  const PeriNormed got = peri_norm(at::zeros({4, 64}), in.y, at::ones({64}), at::ones({64}), 1, kNormEpsilon);
  // Each value has an fp32 rounding error of 1000·2^−24 = 6e-5; computing E[y²] − mean² would have an error
  // of 0.06.
  CHECK(largest_difference(got.sum, at::layer_norm(y64, {64}, {}, {}, kNormEpsilon)) < 2e-4);
}

TEST_CASE("any size of team, reading single elements or packs of 4, gives what one member gives") {
  const std::int64_t rows = 5, d = 24, teams = 2;
  const Inputs in(rows, d, at::kFloat);
  struct Outputs {
    at::Tensor sum, normed, stats, d_x, d_y, partial;
  };
  const auto empty = [&] {
    const at::Tensor nan = at::full({rows, d}, NAN);
    return Outputs{nan.clone(), nan.clone(), at::full({rows, 4}, NAN),
                   nan.clone(), nan.clone(), at::full({teams, 2, d}, NAN)};
  };
  const auto run = [&](const auto& team, const auto& pack, const Outputs& out, std::vector<float>& scratch) {
    constexpr int kPack = std::decay_t<decltype(pack)>::value;
    const PeriNorm forward{in.x.data_ptr(),
                           in.y.data_ptr(),
                           in.out_scale.data_ptr(),
                           in.in_scale.data_ptr(),
                           out.sum.data_ptr(),
                           out.normed.data_ptr(),
                           out.stats.data_ptr(),
                           rows,
                           d,
                           kBranch,
                           kNormEpsilon};
    for (std::int64_t row = 0; row < rows; ++row) {
      peri_norm_row<float, kPack>(team, forward, row, scratch.data());
      team.wait();  // the end of a kernel: every member may read the stats of all rows
    }
    const PeriNormBackward backward{in.d_sum.data_ptr(),
                                    in.d_normed.data_ptr(),
                                    out.sum.data_ptr(),
                                    in.y.data_ptr(),
                                    in.out_scale.data_ptr(),
                                    in.in_scale.data_ptr(),
                                    out.stats.data_ptr(),
                                    out.d_x.data_ptr(),
                                    out.d_y.data_ptr(),
                                    out.partial.data_ptr(),
                                    rows,
                                    d,
                                    teams,
                                    kBranch};
    for (std::int64_t index = 0; index < teams; ++index)
      peri_norm_backward_rows<float, kPack>(team, backward, index, scratch.data());
  };
  const Outputs alone = empty();
  std::vector<float> scratch(3 * d);
  run(Alone{}, std::integral_constant<int, 1>{}, alone, scratch);
  CHECK(alone.partial.isfinite().all().item<bool>());
  for (const int size : {2, 5, 32}) {
    CAPTURE(size);
    const auto check = [&](const auto& pack) {
      const Outputs out = empty();
      alignas(16) std::vector<float> shared(3 * d, NAN);
      ThreadTeam team(size);
      team.run([&](const ThreadTeam::Member& member) { run(member, pack, out, shared); });
      // Sums of 24 numbers of order 1 in different orders.
      CHECK(relative(out.sum, alone.sum) < 1e-6);
      CHECK(relative(out.normed, alone.normed) < 1e-6);
      CHECK(relative(out.d_x, alone.d_x) < 1e-5);
      CHECK(relative(out.d_y, alone.d_y) < 1e-5);
      CHECK(relative(out.partial, alone.partial) < 1e-5);
    };
    check(std::integral_constant<int, 1>{});
    check(std::integral_constant<int, 4>{});
  }
}
