#include "trainer/grouped_product.hpp"

#include <utility>
#include <vector>

namespace fomoe::trainer {
namespace {

// LibTorch's grouped product is one kernel for bf16 on GPUs. It does not take fp64; elsewhere it is the loop
// below with more overhead (docs in the test "grouped products"), so we loop ourselves.
bool use_library(const at::Tensor& rows) { return rows.is_cuda() && rows.scalar_type() == at::kBFloat16; }

// [begin, end) of each group. Waits for the device where `ends` is on one, which only tests in fp32 do.
std::vector<std::pair<std::int64_t, std::int64_t>> ranges(const at::Tensor& ends) {
  const at::Tensor host = ends.to(at::kCPU);
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  std::int64_t begin = 0;
  for (std::int64_t g = 0; g < host.numel(); ++g) {
    const std::int64_t end = host.const_data_ptr<std::int32_t>()[g];
    out.emplace_back(begin, end);
    begin = end;
  }
  return out;
}

}  // namespace

at::Tensor grouped_rows(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& ends) {
  if (use_library(rows)) return at::_grouped_mm(rows, weights, ends);
  at::Tensor out = at::empty({rows.size(0), weights.size(2)}, rows.options());
  std::int64_t g = 0;
  for (const auto& [begin, end] : ranges(ends)) {
    if (end > begin) {
      at::Tensor target = out.narrow(0, begin, end - begin);
      at::mm_out(target, rows.narrow(0, begin, end - begin), weights.select(0, g));
    }
    ++g;
  }
  return out;
}

at::Tensor grouped_outer(const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends) {
  if (use_library(left)) return at::_grouped_mm(left.t(), right, ends);
  at::Tensor out = at::empty({ends.numel(), left.size(1), right.size(1)}, left.options());
  std::int64_t g = 0;
  for (const auto& [begin, end] : ranges(ends)) {
    at::Tensor target = out.select(0, g++);
    if (end > begin) {
      at::mm_out(target, left.narrow(0, begin, end - begin).t(), right.narrow(0, begin, end - begin));
    } else {
      target.zero_();
    }
  }
  return out;
}

}  // namespace fomoe::trainer
