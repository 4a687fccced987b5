// Compares the kernel of outer_step.cu with the CPU.
#include "trainer/kernels/outer_step/outer_step.hpp"

#include "tests/trainer/support.hpp"
#include "trainer/optimizer/outer_optimizer.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE(
    "the outer step's kernel equals the CPU's, for sizes that pack and that do not, and unaligned parts") {
  for (const std::int64_t n : {0, 1, 7, 8, 1023, 1'000'000}) {
    for (const std::int64_t skip : {0, 1}) {  // 1: the address is not a multiple of 16 bytes
      CAPTURE(n);
      CAPTURE(skip);
      at::manual_seed(53);
      const auto part = [&](const at::Tensor& t) { return t.narrow(0, skip, n); };
      const at::Tensor theta = at::randn({n + 1}), b = at::randn({n + 1}), d = at::randn({n + 1});
      at::Tensor cpu = theta.clone(), cpu_b = b.clone(), gpu = theta.cuda(), gpu_b = b.cuda();
      nesterov_step(part(cpu), part(cpu_b), part(d), 0.7, 0.9);
      CHECK(fits_nesterov_kernel(part(gpu), part(gpu_b), part(d.cuda())));
      nesterov_step(part(gpu), part(gpu_b), part(d.cuda()), 0.7, 0.9);
      // Values of order 5 in fp32, with and without fused multiply-add.
      CHECK(largest_difference(gpu.cpu(), cpu) < 5e-6);
      CHECK(largest_difference(gpu_b.cpu(), cpu_b) < 5e-6);
    }
  }
}

TEST_CASE("OuterOptimizer takes a part of a tensor on the GPU, and leaves the rest alone") {
  at::manual_seed(54);
  const at::Tensor start = at::randn({4, 6}), difference = at::randn({4, 3});
  // strided: the kernel does not take it
  const auto columns = [](const at::Tensor& t) { return t.narrow(1, 1, 3); };
  const auto rows = [](const at::Tensor& t) { return t.narrow(0, 1, 2); };  // contiguous
  OuterOptimizer on_cpu({}, {start}), on_gpu({}, {start.cuda()});
  at::Tensor cpu = start.clone(), gpu = start.cuda();
  on_cpu.step(0, columns, columns(cpu), difference);
  on_gpu.step(0, columns, columns(gpu), difference.cuda());
  on_cpu.step(0, rows, rows(cpu), at::ones({2, 6}));
  on_gpu.step(0, rows, rows(gpu), at::ones({2, 6}).cuda());
  CHECK(largest_difference(gpu.cpu(), cpu) < 5e-6);
  CHECK(largest_difference(on_gpu.first()[0].cpu(), on_cpu.first()[0]) < 5e-6);
}
