#include "trainer/kernels/expert_rows/expert_rows.hpp"

#include <ATen/Dispatch.h>

#include "trainer/kernels/expert_rows/expert_rows_kernels.hpp"
#include "trainer/kernels/on_device.hpp"

namespace fomoe::trainer {
namespace {

void check(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.dim() == 2, name, " must be a contiguous matrix");
}

RowRoute raw(const Route& route, std::int64_t tokens, std::int64_t chosen) {
  return {route.permutation.const_data_ptr<std::int64_t>(),
          route.position.const_data_ptr<std::int64_t>(),
          route.ends.const_data_ptr<std::int32_t>(),
          static_cast<int>(route.ends.numel()),
          tokens,
          static_cast<int>(chosen)};
}

at::Tensor summed(const at::Tensor& y, const at::Tensor& gates, const Route& route, std::int64_t tokens) {
  check(y, "the rows of the experts");
  at::Tensor out = at::empty({tokens, y.size(1)}, y.options());
  if (tokens == 0) return out;
  if (y.is_cuda()) {
    launch_on(y.device(), [&](auto stream) {
      return launch_weighted_sum(
          row_type(y), y.const_data_ptr(), gates.defined() ? gates.const_data_ptr() : nullptr,
          raw(route, tokens, y.size(0) / tokens), y.size(1), out.mutable_data_ptr(), stream);
    });
  } else {
    const RowRoute of = raw(route, tokens, y.size(0) / tokens);
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, y.scalar_type(), "weighted_sum_of_rows", [&] {
      for (std::int64_t token = 0; token < tokens; ++token) {
        sum_rows_of_token<scalar_t, 1>(Alone{}, y.const_data_ptr<scalar_t>(),
                                       gates.defined() ? gates.const_data_ptr<scalar_t>() : nullptr, of,
                                       y.size(1), token, out.mutable_data_ptr<scalar_t>());
      }
    });
  }
  return out;
}

}  // namespace

at::Tensor rows_of_experts(const at::Tensor& x, const Route& route, std::int64_t chosen) {
  check(x, "the tokens");
  at::Tensor rows = at::empty({x.size(0) * chosen, x.size(1)}, x.options());
  if (x.is_cuda()) {
    launch_on(x.device(), [&](auto stream) {
      return launch_rows_of_experts(row_type(x), x.const_data_ptr(), raw(route, x.size(0), chosen), x.size(1),
                                    rows.mutable_data_ptr(), stream);
    });
  } else {
    const RowRoute of = raw(route, x.size(0), chosen);
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "rows_of_experts", [&] {
      for (std::int64_t row = 0; row < of.rows(); ++row) {
        gather_row<scalar_t, 1>(Alone{}, x.const_data_ptr<scalar_t>(), of, x.size(1), row,
                                rows.mutable_data_ptr<scalar_t>());
      }
    });
  }
  return rows;
}

at::Tensor rows_of_experts_backward(const at::Tensor& d_rows, const Route& route, std::int64_t chosen) {
  return summed(d_rows, {}, route, d_rows.size(0) / chosen);
}

at::Tensor silu_of_rows(const at::Tensor& h, const at::Tensor& ends) {
  check(h, "the input of SiLU");
  at::Tensor out = at::empty_like(h);
  if (h.is_cuda()) {
    launch_on(h.device(), [&](auto stream) {
      return launch_silu(row_type(h), h.const_data_ptr(), ends.const_data_ptr<std::int32_t>(),
                         static_cast<int>(ends.numel()), h.size(0), h.size(1), out.mutable_data_ptr(),
                         stream);
    });
  } else {
    const std::int64_t elements = ends.const_data_ptr<std::int32_t>()[ends.numel() - 1] * h.size(1);
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, h.scalar_type(), "silu_of_rows", [&] {
      for (std::int64_t i = 0; i < elements; ++i)
        silu_elements<1>(h.const_data_ptr<scalar_t>(), i, out.mutable_data_ptr<scalar_t>());
    });
  }
  return out;
}

at::Tensor weighted_sum_of_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route) {
  check(gates, "the gates");
  return summed(y, gates, route, gates.size(0));
}

GatedSiluGradients gated_silu_backward(const at::Tensor& u, const at::Tensor& h, const at::Tensor& gates,
                                       const Route& route) {
  check(u, "the gradient of SiLU's output");
  check(h, "the input of SiLU");
  check(gates, "the gates");
  TORCH_CHECK(u.sizes() == h.sizes(), "SiLU's output and its gradient must have the same sizes");
  GatedSiluGradients gradients{at::empty_like(h), at::empty_like(h), at::empty_like(gates)};
  const GatedSilu arguments{u.const_data_ptr(),
                            h.const_data_ptr(),
                            gates.const_data_ptr(),
                            gradients.d_h.mutable_data_ptr(),
                            gradients.gated.mutable_data_ptr(),
                            gradients.d_gates.mutable_data_ptr(),
                            h.size(1)};
  const RowRoute of = raw(route, gates.size(0), gates.size(1));
  if (h.is_cuda()) {
    launch_on(h.device(),
              [&](auto stream) { return launch_gated_silu_backward(row_type(h), arguments, of, stream); });
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, h.scalar_type(), "gated_silu_backward", [&] {
      for (std::int64_t row = 0; row < of.rows(); ++row)
        gated_silu_backward_of_row<scalar_t, 1>(Alone{}, arguments, of, row);
    });
  }
  return gradients;
}

}  // namespace fomoe::trainer
