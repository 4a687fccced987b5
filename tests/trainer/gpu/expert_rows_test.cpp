// Compares the kernels of expert_rows.cu with the plain loops of expert_rows.cpp.
#include "trainer/kernels/expert_rows/expert_rows.hpp"

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

Route on_gpu(const Route& route) {
  return {route.permutation.cuda(), route.position.cuda(), route.ends.cuda()};
}

/// The largest difference over the rows of local experts, relative to the largest value.
double row_error(const at::Tensor& gpu, const at::Tensor& cpu, std::int64_t here) {
  if (here == 0) return 0;
  // Rows of ghosts are never written, so they are not copied either.
  const at::Tensor a = gpu.narrow(0, 0, here).cpu().to(at::kFloat), b = cpu.narrow(0, 0, here).to(at::kFloat);
  return largest_difference(a, b) / std::max(1e-6, b.abs().max().item<double>());
}

}  // namespace

TEST_CASE("the kernels equal the loops: every share of ghosts, empty experts, odd widths, both formats") {
  at::manual_seed(9);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // The tolerance covers one rounding of the result, and products of order 1 summed in fp32 in different
    // orders.
    const double tolerance = type == at::kFloat ? 1e-5 : 1e-2;
    for (const std::int64_t tokens : {0, 1, 7, 1000}) {
      for (const std::int64_t d : {1, 33, 512}) {
        for (const std::int64_t here : {0, 1, 3, 8}) {
          CAPTURE(tokens);
          CAPTURE(d);
          CAPTURE(here);
          const std::int64_t chosen = 4, experts = 8;
          const at::Tensor drawn = at::randint(experts, {tokens * chosen}, at::kLong);
          const Route cpu = route(at::where(drawn < here, drawn, at::full_like(drawn, experts)), experts);
          const Route gpu = on_gpu(cpu);
          const std::int64_t rows = cpu.ends[-1].item<std::int64_t>();
          const at::Tensor x = at::randn({tokens, d}).to(type), gates = at::rand({tokens, chosen}).to(type);
          const at::Tensor y = at::randn({tokens * chosen, d}).to(type), u = at::randn_like(y);

          const at::Tensor gathered = rows_of_experts(x.cuda(), gpu, chosen);
          CHECK(row_error(gathered, rows_of_experts(x, cpu, chosen), rows) == 0);
          CHECK(row_error(rows_of_experts_backward(y.cuda(), gpu, chosen),
                          rows_of_experts_backward(y, cpu, chosen), tokens) <= tolerance);
          CHECK(row_error(silu_of_rows(y.cuda(), gpu.ends), silu_of_rows(y, cpu.ends), rows) <= tolerance);
          CHECK(row_error(weighted_sum_of_rows(y.cuda(), gates.cuda(), gpu),
                          weighted_sum_of_rows(y, gates, cpu), tokens) <= tolerance);
          const GatedSiluGradients on_cpu = gated_silu_backward(u, y, gates, cpu);
          const GatedSiluGradients on_device = gated_silu_backward(u.cuda(), y.cuda(), gates.cuda(), gpu);
          CHECK(row_error(on_device.d_h, on_cpu.d_h, rows) <= tolerance);
          CHECK(row_error(on_device.gated, on_cpu.gated, rows) <= tolerance);
          CHECK(row_error(on_device.d_gates, on_cpu.d_gates, tokens) <= tolerance);
        }
      }
    }
  }
}
