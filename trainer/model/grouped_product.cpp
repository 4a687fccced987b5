#include "trainer/model/grouped_product.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/device/cuda_device.hpp"

namespace fomoe::trainer {
namespace {

constexpr std::int64_t kRowBytes = 16;  // LibTorch's grouped kernel needs rows that are multiples of this

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

/// Whether LibTorch's grouped kernel gives the products of a loop over the groups, also for groups without
/// rows, on this device.
bool kernel_agrees(at::Device device) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions(at::kBFloat16).device(device);
  const at::Tensor rows = at::arange(96 * 64, options).remainder(13).sub(6).view({96, 64});
  const at::Tensor weights = at::arange(4 * 64 * 32, options).remainder(11).sub(5).view({4, 64, 32});
  const at::Tensor ends = at::tensor({0, 40, 40, 96}, at::TensorOptions(at::kInt).device(device));
  const at::Tensor by_rows = at::_grouped_mm(rows, weights, ends);
  const at::Tensor right = by_rows.contiguous();
  const at::Tensor outer = at::_grouped_mm(rows.t(), right, ends);
  bool agrees = true;
  std::int64_t begin = 0, g = 0;
  for (const std::int64_t end : {0, 40, 40, 96}) {
    const at::Tensor part = rows.narrow(0, begin, end - begin), heard = right.narrow(0, begin, end - begin);
    agrees = agrees && at::allclose(heard, at::mm(part, weights.select(0, g)), 1e-2, 1e-2) &&
             at::allclose(outer.select(0, g), at::mm(part.t(), heard), 1e-2, 1e-2);
    begin = end;
    ++g;
  }
  return agrees;
}

// LibTorch 2.11 has the kernel for compute capability 9.0 and 10.0. On others, it loops over the groups and
// copies their ends to the host. For 10.0, wrong products of groups without rows have been reported, so the
// kernel is tried once before it is used.
bool has_kernel(at::Device device) {
  const int capability = compute_capability(device);
  if (capability != 100) return capability == 90;
  static const bool agrees = kernel_agrees(device);
  return agrees;
}

// LibTorch's grouped product is one kernel for bf16 on GPUs. On a CPU it is the same loop as below, with less
// overhead per group: for [256, 256] rows and 8 experts of width 128 in fp32 it took 109 µs against 120 µs
// for our loop on two cores; for [4096, 256] rows both took the same time. It does not support fp64, needs
// rows of whole 16 bytes, and for fp32 on a GPU also loops over the groups.
bool library_takes(const at::Tensor& left, const at::Tensor& right) {
  if (left.is_cuda() && !has_kernel(left.device())) return false;
  const at::ScalarType type = left.scalar_type();
  const bool fast = type == at::kBFloat16 || (type == at::kFloat && left.is_cpu());
  const auto whole = [](std::int64_t columns, const at::Tensor& of) {
    return columns * static_cast<std::int64_t>(of.element_size()) % kRowBytes == 0;
  };
  // Weights may also be transposed, so both of their dimensions are checked.
  const bool weights_whole = right.dim() == 2 || whole(right.size(1), right);
  return fast && whole(left.size(1), left) && whole(right.size(-1), right) && weights_whole;
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
  return has_kernel(device) && std::all_of(widths.begin(), widths.end(), whole);
}

}  // namespace fomoe::trainer
