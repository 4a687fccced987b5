// Compares the kernels of peri_norm.cu with the CPU's rows.
#include "trainer/kernels/peri_norm/peri_norm.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE(
    "peri_norm: forward, backward and sums over rows are the CPU's, for odd and even widths, both formats") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // fp32: sums of up to 8192 terms in different orders. bf16: one rounding that goes the other way is 2^−8
    // of a value, and a difference of one unit in x' adds another such error to what follows.
    const double tolerance = type == at::kFloat ? 2e-5 : 2e-2;
    for (const std::int64_t rows : {0, 1, 7, 1000}) {
      for (const std::int64_t d :
           {1, 33, 256, 2048, 4096, 8192}) {  // from 4096 on: more shared memory than the default
        CAPTURE(rows);
        CAPTURE(d);
        CAPTURE(c10::toString(type));
        at::manual_seed(22);
        const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes).to(type); };
        const std::vector<at::Tensor> inputs = {random({rows, d}), random({rows, d}), random({d}),
                                                random({d})};
        const at::Tensor d_sum = random({rows, d}), d_normed = random({rows, d});
        const auto run = [&](at::Device device) {
          std::vector<at::Tensor> leaf;
          for (const at::Tensor& t : inputs) leaf.push_back(t.to(device).clone().requires_grad_());
          // A large epsilon, since the variance is 0 for d = 1.
          const PeriNormed out = peri_norm(leaf[0], leaf[1], leaf[2], leaf[3], 0.3, 1e-1);
          torch::autograd::backward({out.sum, out.normed}, {d_sum.to(device), d_normed.to(device)});
          return std::vector<at::Tensor>{out.sum,        out.normed,     leaf[0].grad(),
                                         leaf[1].grad(), leaf[2].grad(), leaf[3].grad()};
        };
        const auto wanted = run(at::kCPU), got = run(at::Device(at::kCUDA, 0));
        const auto again = run(at::Device(at::kCUDA, 0));
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          CAPTURE(i);
          CHECK(at::equal(got[i], again[i]));  // no atomic operations: always the same bytes
          if (wanted[i].numel() == 0) continue;
          const double scale = std::max(1.0, wanted[i].abs().max().item<double>());
          CHECK(largest_difference(got[i].cpu(), wanted[i]) <= tolerance * scale);
        }
      }
    }
  }
}
