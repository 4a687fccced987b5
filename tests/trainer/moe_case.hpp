// One random MoE layer, in the formats of the reference and of the trainer.
#pragma once
#include <vector>

#include "tests/trainer/moe_reference.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/model/moe.hpp"

namespace fomoe::trainer::testing {

struct MoeCase {
  MoeReference reference;
  at::Tensor x, d_y;
  MoeLayer layer;

  /// local_index: for each scored expert its row among the local experts, −1 for a ghost. `local` may exceed
  /// the number of scored local experts, so that some experts stay empty.
  MoeCase(int tokens, int d, int d_expert, int chosen, std::vector<int> local_index, int local)
      : reference{tokens,
                  d,
                  d_expert,
                  static_cast<int>(local_index.size()),
                  local,
                  chosen,
                  {},
                  {},
                  {},
                  {},
                  std::move(local_index)} {
    const at::TensorOptions fp64 = at::kDouble;
    at::manual_seed(7);
    x = at::randn({tokens, d}, fp64);
    d_y = at::randn({tokens, d}, fp64);
    layer.router = at::randn({d, reference.scored}, fp64);
    layer.up = at::randn({local, d, d_expert}, fp64);
    layer.down = at::randn({local, d_expert, d}, fp64);
    layer.chosen = chosen;
    layer.local_index = at::empty({reference.scored}, at::kLong);
    for (int e = 0; e < reference.scored; ++e) {
      const int index = reference.local_index[static_cast<std::size_t>(e)];
      layer.local_index[e] = index < 0 ? local : index;
    }
    copy_to_reference();
    for (at::Tensor tensor : {x, layer.router, layer.up, layer.down}) tensor.requires_grad_();
  }

  void copy_to_reference() {
    auto values = [](const at::Tensor& tensor) {
      const at::Tensor flat = tensor.detach().contiguous();
      const auto* data = flat.const_data_ptr<double>();
      return std::vector<double>(data, data + flat.numel());
    };
    reference.x = values(x);
    reference.router = values(layer.router);
    reference.up = values(layer.up);
    reference.down = values(layer.down);
  }

  [[nodiscard]] std::vector<double> upstream() const {
    const auto* data = d_y.const_data_ptr<double>();
    return {data, data + d_y.numel()};
  }
};

inline at::Tensor as_tensor(std::vector<double>& values, at::IntArrayRef sizes) {
  return at::from_blob(values.data(), sizes, at::kDouble).clone();
}

}  // namespace fomoe::trainer::testing
