// Tests of activation checkpointing: the same gradients from less memory.
#include "trainer/model/recomputed.hpp"

#include <set>
#include <vector>

#include "tests/trainer/support.hpp"
#include "trainer/model/model.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

struct Pass {
  double loss = 0;
  std::vector<at::Tensor> gradients, counts;
};

Pass pass_of(const Model& model, bool balance, bool cuts) {
  const at::Tensor tokens = at::arange(24, at::kLong).mul(7).remainder(17).view({4, 6});
  Routing routing;
  routing.wants_balance = balance;
  std::vector<std::pair<at::Tensor, at::Tensor>> seams;  // the output below a cut, and the leaf above it
  const Model::AtLayer cut = [&](std::int64_t layer, const at::Tensor& input) {
    if (layer == 0) return input;
    seams.emplace_back(input, input.detach().requires_grad_());
    return seams.back().second;
  };
  const at::Tensor loss = model.loss(tokens, tokens.roll(-1, 1), &routing, cuts ? cut : Model::AtLayer());
  (balance ? loss + 0.1 * routing.balance : loss).backward({}, /*retain_graph=*/true);
  for (auto seam = seams.rbegin(); seam != seams.rend(); ++seam)
    seam->first.backward(seam->second.grad(), /*retain_graph=*/true);
  Pass out{loss.item<double>(), {}, routing.counts};
  for (const Parameter& parameter : model.parameters())
    out.gradients.push_back(parameter.compute.grad().clone());
  return out;
}

/// The number of operations that the graph of the loss keeps, with their operands, for the backward pass.
std::size_t kept_operations(const Model& model) {
  const at::Tensor tokens = at::arange(24, at::kLong).remainder(17).view({4, 6});
  const at::Tensor loss = model.loss(tokens, tokens.roll(-1, 1));
  std::set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> open = {loss.grad_fn().get()};
  while (!open.empty()) {
    const torch::autograd::Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return seen.size();
}

}  // namespace

TEST_CASE("only layers that are computed again keep nothing of their inside for the backward pass") {
  costmodel::ModelShape shape = tiny_shape();
  const auto kept = [&](int layers, bool again) {
    shape.layers = layers;
    ModelOptions options;
    options.kernels = Kernels::library;
    options.activation_checkpointing = again;
    return kept_operations(Model(shape, options));
  };
  const std::size_t of_layer = kept(3, false) - kept(2, false),
                    of_layer_again = kept(3, true) - kept(2, true);
  CHECK(of_layer_again * 2 < of_layer);  // the layer itself, and its parameters
}

TEST_CASE("layers that are computed again give the same loss, the same counts and the same gradients") {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const Kernels kernels : {Kernels::library, Kernels::own}) {
      // Our own kernels fuse the LN before a layer with the addition before it; recomputed layers use
      // LibTorch's LN, which rounds differently. With LibTorch's operators, the gradients have the same bits.
      const bool same_bits = kernels == Kernels::library;
      if (dtype == at::kBFloat16 && !same_bits) continue;
      for (const bool balance : {false, true}) {
        for (const bool cuts : {false, true}) {
          CAPTURE(c10::toString(dtype));
          CAPTURE(static_cast<int>(kernels));
          CAPTURE(balance);
          CAPTURE(cuts);
          costmodel::ModelShape shape = tiny_shape();
          shape.layers = 3;
          ModelOptions options;
          options.dtype = dtype;
          options.kernels = kernels;
          options.experts = {{{1, 3}, {2}, {0}}, true};
          const Model kept(shape, options);
          options.activation_checkpointing = true;
          const Model again(shape, options);
          const Pass expected = pass_of(kept, balance, cuts), pass = pass_of(again, balance, cuts);
          CHECK(pass.loss == doctest::Approx(expected.loss).epsilon(1e-6));
          REQUIRE(pass.counts.size() == expected.counts.size());
          for (std::size_t layer = 0; layer < pass.counts.size(); ++layer)
            CHECK(at::equal(pass.counts[layer], expected.counts[layer]));
          const double tolerance = dtype == at::kDouble ? 1e-12 : 1e-5;
          for (std::size_t i = 0; i < pass.gradients.size(); ++i) {
            CAPTURE(kept.parameters()[i].spec.name());
            const at::Tensor& wanted = expected.gradients[i];
            if (same_bits) {
              CHECK(at::equal(pass.gradients[i], wanted));
            } else {
              CHECK(largest_difference(pass.gradients[i], wanted) <=
                    tolerance * wanted.abs().max().item<double>());
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the forward pass calls a layer once, and the backward pass once again, from its input alone") {
  int first = 0, second = 0;
  const at::Tensor input = at::full({3}, 2.0, at::kDouble).requires_grad_();
  const at::Tensor weight = at::full({3}, 5.0, at::kDouble).requires_grad_();
  const LayerOutput out = recomputed(input, [&](const at::Tensor& x, bool again) {
    ++(again ? second : first);
    CHECK(at::GradMode::is_enabled() == again);
    return LayerOutput{(x * x * weight).sum(), {}};
  });
  CHECK_FALSE(out.scalar.defined());
  CHECK(first == 1);
  CHECK(second == 0);
  out.output.backward();
  CHECK(second == 1);
  CHECK(at::equal(input.grad(), at::full({3}, 20.0, at::kDouble)));  // 2·x·w
  CHECK(at::equal(weight.grad(), at::full({3}, 4.0, at::kDouble)));  // x²
}
