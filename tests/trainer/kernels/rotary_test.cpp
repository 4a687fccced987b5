// Tests q, k and v from one projection, with q and k rotated by their positions, forward and backward. It
// also runs the row functions with a team of several members, as in a GPU's block. ../model/model_test.cpp
// tests the rotation itself.
#include "trainer/kernels/rotary/rotary.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "tests/trainer/kernels/thread_team.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/kernels/rotary/rotary_row.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

struct Case {
  std::int64_t batch = 2, length = 5, heads = 3, head = 8;
  at::Tensor projection, d_q, d_k, d_v;

  explicit Case(at::ScalarType type) {
    at::manual_seed(31);
    projection = at::randn({batch, length, 3, heads, head}, at::kDouble).to(type);
    for (at::Tensor* t : {&d_q, &d_k}) *t = at::randn({batch, length, heads, head}, at::kDouble).to(type);
    // The layout that the backward pass of attention gives: heads before positions.
    d_v = at::randn({batch, heads, length, head}, at::kDouble).to(type).transpose(1, 2);
  }
  [[nodiscard]] RotaryTable table() const { return rotary_table(length, head, projection.options()); }
};

/// q, k, v and the gradient of the projection.
template <class F>
std::vector<at::Tensor> values_and_gradient(const F& f, const Case& test) {
  const at::Tensor projection = test.projection.detach().clone().requires_grad_();
  const Heads out = f(projection, test.table());
  torch::autograd::backward({out.q, out.k, out.v}, {test.d_q, test.d_k, test.d_v});
  return {out.q, out.k, out.v, projection.grad()};
}

}  // namespace

TEST_CASE("rotated heads are those of rope.hpp, and so is the projection's gradient, in fp64") {
  const Case test(at::kDouble);
  const PoisonedMemory poison;
  const auto got = values_and_gradient(rotated_heads, test);
  const auto wanted = values_and_gradient(rotated_heads_of_operators, test);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(largest_difference(got[i], wanted[i]) < 1e-14);
}

TEST_CASE("q and k are rotated where they are, and v stays: nothing of their size is allocated") {
  const Case test(at::kFloat);
  const at::Tensor projection = test.projection.clone();
  const Heads out = rotated_heads(projection, test.table());
  CHECK(out.q.data_ptr() == projection.select(2, 0).data_ptr());
  CHECK(out.k.data_ptr() == projection.select(2, 1).data_ptr());
  CHECK(at::equal(projection.select(2, 2), test.projection.select(2, 2)));
  CHECK(!at::equal(projection.select(2, 0), test.projection.select(2, 0)));
}

TEST_CASE("gradients that nobody gives are zeros: of q alone, k and v get none") {
  const Case test(at::kDouble);
  const at::Tensor projection = test.projection.clone().requires_grad_();
  const Heads out = rotated_heads(projection, test.table());
  out.q.backward(test.d_q);
  CHECK(projection.grad().select(2, 0).abs().max().item<double>() > 0);
  CHECK(projection.grad().narrow(2, 1, 2).abs().max().item<double>() == 0);
}

TEST_CASE("bf16 is rounded once, so it is as close to fp64 as its 8 bits allow") {
  const Case test(at::kBFloat16);
  Case exact = test;
  for (at::Tensor* t : {&exact.projection, &exact.d_q, &exact.d_k, &exact.d_v}) *t = t->to(at::kDouble);
  const RotaryTable rounded = test.table();
  const RotaryTable same{rounded.cos.to(at::kDouble), rounded.sin.to(at::kDouble)};
  const Heads got = rotated_heads(test.projection, rounded), wanted = rotated_heads(exact.projection, same);
  // The tolerance is half a unit in the last of 8 bits, plus the fp32 arithmetic before the rounding.
  CHECK(((got.q.to(at::kDouble) - wanted.q).abs() <= wanted.q.abs() * (1.0 / 256) + 1e-6).all().item<bool>());
}

TEST_CASE("other shapes are refused") {
  const Case test(at::kFloat);
  CHECK_THROWS_AS(rotated_heads(test.projection.transpose(3, 4), test.table()), c10::Error);
  CHECK_THROWS_AS(rotated_heads(test.projection.narrow(4, 0, 7).contiguous(), test.table()), c10::Error);
  CHECK_THROWS_AS(rotated_heads(test.projection, rotary_table(4, 8, at::kFloat)), c10::Error);
  CHECK_THROWS_AS(rotated_heads(test.projection, rotary_table(5, 8, at::kDouble)), c10::Error);
}

TEST_CASE("any size of team, single elements or packs of 4: the same bytes as one member writes") {
  const Case test(at::kFloat);
  const RotaryTable table = test.table();
  const auto run = [&](const auto& team, const auto& pack, std::vector<at::Tensor>& out) {
    constexpr int kPack = std::decay_t<decltype(pack)>::value;
    Rotary forward{out[0].data_ptr(),    nullptr, nullptr, nullptr, table.cos.data_ptr(),
                   table.sin.data_ptr(), 10,      5,       3,       4};
    const at::Tensor d_v = test.d_v.contiguous();
    Rotary backward{out[1].data_ptr(),
                    test.d_q.data_ptr(),
                    test.d_k.data_ptr(),
                    d_v.data_ptr(),
                    table.cos.data_ptr(),
                    table.sin.data_ptr(),
                    10,
                    5,
                    3,
                    4};
    for (std::int64_t token = 0; token < 10; ++token) {
      rotary_token<float, kPack>(team, forward, token);
      rotary_token_backward<float, kPack>(team, backward, token);
    }
  };
  const auto fresh = [&] {
    return std::vector<at::Tensor>{test.projection.clone(), at::full_like(test.projection, NAN)};
  };
  std::vector<at::Tensor> alone = fresh();
  run(Alone{}, std::integral_constant<int, 1>{}, alone);
  for (const int size : {2, 5, 32}) {
    CAPTURE(size);
    const auto check = [&](const auto& pack) {
      std::vector<at::Tensor> out = fresh();
      ThreadTeam team(size);
      team.run([&](const ThreadTeam::Member& member) { run(member, pack, out); });
      for (std::size_t i = 0; i < out.size(); ++i) CHECK(at::equal(out[i], alone[i]));
    };
    check(std::integral_constant<int, 1>{});
    check(std::integral_constant<int, 4>{});
  }
}
