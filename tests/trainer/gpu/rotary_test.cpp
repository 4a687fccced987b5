// Compares the kernels of rotary.cu with the CPU's rows.
#include "trainer/kernels/rotary/rotary.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE(
    "rotated heads: forward and backward are the CPU's, for widths that pack and that do not, both formats") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // fp32: products of order 1, with and without fused multiply-add. bf16: one rounding that goes the other
    // way.
    const double tolerance = type == at::kFloat ? 1e-6 : 4e-2;
    for (const auto& [batch, length] :
         {std::pair{0, 4}, std::pair{1, 1}, std::pair{3, 7}, std::pair{2, 1024}}) {
      for (const auto& [heads, head] :
           {std::pair{1, 2}, std::pair{3, 6}, std::pair{8, 64}, std::pair{16, 128}}) {
        CAPTURE(length);
        CAPTURE(head);
        at::manual_seed(32);
        const at::Tensor projection = at::randn({batch, length, 3, heads, head}).to(type);
        const at::Tensor d = at::randn({3, batch, heads, length, head}).to(type).transpose(2, 3);
        const auto run = [&](at::Device device) {
          const at::Tensor leaf = projection.to(device).clone().requires_grad_();
          const Heads out = rotated_heads(leaf, rotary_table(length, head, leaf.options()));
          torch::autograd::backward({out.q, out.k, out.v},
                                    {d[0].to(device), d[1].to(device), d[2].to(device)});
          return std::vector<at::Tensor>{out.q.cpu(), out.k.cpu(), out.v.cpu(), leaf.grad().cpu()};
        };
        const auto wanted = run(at::kCPU), got = run(at::Device(at::kCUDA, 0));
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          CAPTURE(i);
          CHECK(got[i].sizes() == wanted[i].sizes());
          if (wanted[i].numel() > 0) CHECK(largest_difference(got[i], wanted[i]) <= tolerance);
        }
      }
    }
  }
}
