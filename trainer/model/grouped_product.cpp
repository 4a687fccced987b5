#include "trainer/model/grouped_product.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/device/cuda_device.hpp"

namespace fomoe::trainer {
namespace {

// The compute capability for which LibTorch's grouped kernel is known to be right. For 10.0 there is a kernel
// as well, but groups without rows have been reported to be wrong there. On others LibTorch loops over the
// groups and copies their ends to the host.
constexpr int kKnownRight = 9;
constexpr std::int64_t kRowBytes = 16;  // LibTorch's grouped kernel needs rows that are multiples of this

// LibTorch's grouped product is one kernel for bf16 on GPUs. On a CPU it is the same loop as below, with less
// overhead per group: for [256, 256] rows and 8 experts of width 128 in fp32 it took 109 µs against 120 µs
// for our loop on two cores; for [4096, 256] rows both took the same time. It does not support fp64, needs
// rows of whole 16 bytes, and for fp32 on a GPU also loops over the groups.
bool library_takes(const at::Tensor& left, const at::Tensor& right) {
  if (left.is_cuda() && compute_capability(left.device()) != kKnownRight) return false;
  const at::ScalarType type = left.scalar_type();
  const bool fast = type == at::kBFloat16 || (type == at::kFloat && left.is_cpu());
  const auto whole = [](std::int64_t columns, const at::Tensor& of) {
    return columns * static_cast<std::int64_t>(of.element_size()) % kRowBytes == 0;
  };
  // Weights may also be transposed, so both of their dimensions are checked.
  const bool weights_whole = right.dim() == 2 || whole(right.size(1), right);
  return fast && whole(left.size(1), left) && whole(right.size(-1), right) && weights_whole;
}

// [begin, end) of each group. It waits for the device if `ends` is on one; bf16 of usual widths does not
// reach this function.
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
  if (library_takes(rows, weights)) return at::_grouped_mm(rows, weights, ends);
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
  if (library_takes(left, right)) return at::_grouped_mm(left.t(), right, ends);
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

bool grouped_on_device(at::Device device, at::ScalarType type, std::initializer_list<std::int64_t> widths) {
  if (!device.is_cuda() || type != at::kBFloat16) return false;
  const auto whole = [&](std::int64_t width) {
    return width * static_cast<std::int64_t>(at::elementSize(type)) % kRowBytes == 0;
  };
  return compute_capability(device) == kKnownRight && std::all_of(widths.begin(), widths.end(), whole);
}

}  // namespace fomoe::trainer
