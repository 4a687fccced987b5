#include "trainer/kernels/expert_rows.hpp"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <cmath>

#include "trainer/kernels/expert_rows_kernels.hpp"
#include "trainer/kernels/on_device.hpp"

namespace fomoe::trainer {
namespace {

template <class S>
S sigmoid(S z) {
  return 1 / (1 + std::exp(-z));
}

std::int64_t rows_here(const at::Tensor& ends) {
  return ends.const_data_ptr<std::int32_t>()[ends.numel() - 1];
}

template <class T>
void gather(const at::Tensor& x, const Route& route, std::int64_t chosen, at::Tensor& rows) {
  const std::int64_t d = x.size(1);
  const auto* permutation = route.permutation.const_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows_here(route.ends); ++row) {
    const T* from = x.const_data_ptr<T>() + permutation[row] / chosen * d;
    std::copy(from, from + d, rows.mutable_data_ptr<T>() + row * d);
  }
}

// gates undefined: all 1.
template <class T>
void sum_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route, at::Tensor& out) {
  const std::int64_t tokens = out.size(0), d = out.size(1), chosen = tokens == 0 ? 0 : y.size(0) / tokens;
  const auto* position = route.position.const_data_ptr<std::int64_t>();
  const T* gate = gates.defined() ? gates.const_data_ptr<T>() : nullptr;
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < d; ++i) {
      Sum<T> sum = 0;
      for (std::int64_t slot = token * chosen; slot < (token + 1) * chosen; ++slot) {
        if (position[slot] >= rows_here(route.ends)) continue;
        const Sum<T> weight = gate == nullptr ? Sum<T>(1) : static_cast<Sum<T>>(gate[slot]);
        sum += weight * static_cast<Sum<T>>(y.const_data_ptr<T>()[position[slot] * d + i]);
      }
      out.mutable_data_ptr<T>()[token * d + i] = static_cast<T>(sum);
    }
  }
}

template <class T>
void sum_rows_backward(const at::Tensor& d_out, const at::Tensor& y, const at::Tensor& gates,
                       const Route& route, WeightedSumGradients& gradients) {
  const std::int64_t d = y.size(1), chosen = gates.size(1);
  const auto* position = route.position.const_data_ptr<std::int64_t>();
  for (std::int64_t slot = 0; slot < gates.numel(); ++slot) {
    const std::int64_t row = position[slot];
    Sum<T> product = 0;
    if (row < rows_here(route.ends)) {
      const auto gate = static_cast<Sum<T>>(gates.const_data_ptr<T>()[slot]);
      for (std::int64_t i = 0; i < d; ++i) {
        const auto d_o = static_cast<Sum<T>>(d_out.const_data_ptr<T>()[slot / chosen * d + i]);
        product += static_cast<Sum<T>>(y.const_data_ptr<T>()[row * d + i]) * d_o;
        gradients.d_y.mutable_data_ptr<T>()[row * d + i] = static_cast<T>(gate * d_o);
      }
    }
    gradients.d_gates.mutable_data_ptr<T>()[slot] = static_cast<T>(product);
  }
}

// d_a undefined: SiLU itself.
template <class T>
void silu(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends, at::Tensor& out) {
  for (std::int64_t i = 0; i < rows_here(ends) * h.size(1); ++i) {
    const auto z = static_cast<Sum<T>>(h.const_data_ptr<T>()[i]);
    const Sum<T> s = sigmoid(z);
    out.mutable_data_ptr<T>()[i] =
        d_a.defined()
            ? static_cast<T>(static_cast<Sum<T>>(d_a.const_data_ptr<T>()[i]) * s * (1 + z * (1 - s)))
            : static_cast<T>(z * s);
  }
}

void check(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.dim() == 2, name, ": a contiguous matrix");
}

DeviceRoute on_device(const Route& route, std::int64_t tokens, std::int64_t chosen) {
  return {route.permutation.const_data_ptr<std::int64_t>(),
          route.position.const_data_ptr<std::int64_t>(),
          route.ends.const_data_ptr<std::int32_t>(),
          static_cast<int>(route.ends.numel()),
          tokens,
          static_cast<int>(chosen)};
}

at::Tensor summed(const at::Tensor& y, const at::Tensor& gates, const Route& route, std::int64_t tokens) {
  check(y, "rows of experts");
  at::Tensor out = at::empty({tokens, y.size(1)}, y.options());
  if (tokens == 0) return out;
  if (y.is_cuda()) {
    const c10::cuda::CUDAGuard guard(y.device());
    C10_CUDA_CHECK(launch_weighted_sum(row_type(y), y.const_data_ptr(),
                                       gates.defined() ? gates.const_data_ptr() : nullptr,
                                       on_device(route, tokens, y.size(0) / tokens), y.size(1),
                                       out.mutable_data_ptr(), at::cuda::getCurrentCUDAStream()));
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, y.scalar_type(), "weighted_sum_of_rows",
                                   [&] { sum_rows<scalar_t>(y, gates, route, out); });
  }
  return out;
}

at::Tensor activated(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends) {
  check(h, "SiLU of rows");
  at::Tensor out = at::empty_like(h);
  if (h.is_cuda()) {
    const c10::cuda::CUDAGuard guard(h.device());
    C10_CUDA_CHECK(launch_silu(row_type(h), d_a.defined() ? d_a.const_data_ptr() : nullptr,
                               h.const_data_ptr(), ends.const_data_ptr<std::int32_t>(),
                               static_cast<int>(ends.numel()), h.size(0), h.size(1), out.mutable_data_ptr(),
                               at::cuda::getCurrentCUDAStream()));
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, h.scalar_type(), "silu_of_rows",
                                   [&] { silu<scalar_t>(d_a, h, ends, out); });
  }
  return out;
}

}  // namespace

at::Tensor rows_of_experts(const at::Tensor& x, const Route& route, std::int64_t chosen) {
  check(x, "tokens");
  at::Tensor rows = at::empty({x.size(0) * chosen, x.size(1)}, x.options());
  if (x.is_cuda()) {
    const c10::cuda::CUDAGuard guard(x.device());
    C10_CUDA_CHECK(launch_rows_of_experts(row_type(x), x.const_data_ptr(),
                                          on_device(route, x.size(0), chosen), x.size(1),
                                          rows.mutable_data_ptr(), at::cuda::getCurrentCUDAStream()));
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "rows_of_experts",
                                   [&] { gather<scalar_t>(x, route, chosen, rows); });
  }
  return rows;
}

at::Tensor rows_of_experts_backward(const at::Tensor& d_rows, const Route& route, std::int64_t chosen) {
  return summed(d_rows, {}, route, d_rows.size(0) / chosen);
}

at::Tensor silu_of_rows(const at::Tensor& h, const at::Tensor& ends) { return activated({}, h, ends); }

at::Tensor silu_of_rows_backward(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends) {
  check(d_a, "gradient of SiLU");
  return activated(d_a, h, ends);
}

at::Tensor weighted_sum_of_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route) {
  check(gates, "gates");
  return summed(y, gates, route, gates.size(0));
}

WeightedSumGradients weighted_sum_of_rows_backward(const at::Tensor& d_out, const at::Tensor& y,
                                                   const at::Tensor& gates, const Route& route) {
  check(d_out, "gradient of the tokens");
  check(y, "rows of experts");
  check(gates, "gates");
  WeightedSumGradients gradients{at::empty_like(y), at::empty_like(gates)};
  if (y.is_cuda()) {
    const c10::cuda::CUDAGuard guard(y.device());
    C10_CUDA_CHECK(launch_weighted_sum_backward(
        row_type(y), d_out.const_data_ptr(), y.const_data_ptr(), gates.const_data_ptr(),
        on_device(route, gates.size(0), gates.size(1)), y.size(1), gradients.d_y.mutable_data_ptr(),
        gradients.d_gates.mutable_data_ptr(), at::cuda::getCurrentCUDAStream()));
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, y.scalar_type(), "weighted_sum_of_rows_backward",
                                   [&] { sum_rows_backward<scalar_t>(d_out, y, gates, route, gradients); });
  }
  return gradients;
}

}  // namespace fomoe::trainer
