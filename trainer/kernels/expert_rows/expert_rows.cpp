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

at::Tensor activated(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends) {
  check(h, "the input of SiLU");
  at::Tensor out = at::empty_like(h);
  if (h.is_cuda()) {
    launch_on(h.device(), [&](auto stream) {
      return launch_silu(row_type(h), d_a.defined() ? d_a.const_data_ptr() : nullptr, h.const_data_ptr(),
                         ends.const_data_ptr<std::int32_t>(), static_cast<int>(ends.numel()), h.size(0),
                         h.size(1), out.mutable_data_ptr(), stream);
    });
  } else {
    const std::int64_t elements = ends.const_data_ptr<std::int32_t>()[ends.numel() - 1] * h.size(1);
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, h.scalar_type(), "silu_of_rows", [&] {
      for (std::int64_t i = 0; i < elements; ++i) {
        silu_elements<1>(d_a.defined() ? d_a.const_data_ptr<scalar_t>() : nullptr,
                         h.const_data_ptr<scalar_t>(), i, out.mutable_data_ptr<scalar_t>());
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

at::Tensor silu_of_rows(const at::Tensor& h, const at::Tensor& ends) { return activated({}, h, ends); }

at::Tensor silu_of_rows_backward(const at::Tensor& d_a, const at::Tensor& h, const at::Tensor& ends) {
  check(d_a, "the gradient of SiLU's output");
  return activated(d_a, h, ends);
}

at::Tensor weighted_sum_of_rows(const at::Tensor& y, const at::Tensor& gates, const Route& route) {
  check(gates, "the gates");
  return summed(y, gates, route, gates.size(0));
}

WeightedSumGradients weighted_sum_of_rows_backward(const at::Tensor& d_out, const at::Tensor& y,
                                                   const at::Tensor& gates, const Route& route) {
  check(d_out, "the gradient of the tokens' sums");
  check(y, "the rows of the experts");
  check(gates, "the gates");
  WeightedSumGradients gradients{at::empty_like(y), at::empty_like(gates)};
  if (y.is_cuda()) {
    launch_on(y.device(), [&](auto stream) {
      return launch_weighted_sum_backward(row_type(y), d_out.const_data_ptr(), y.const_data_ptr(),
                                          gates.const_data_ptr(), raw(route, gates.size(0), gates.size(1)),
                                          y.size(1), gradients.d_y.mutable_data_ptr(),
                                          gradients.d_gates.mutable_data_ptr(), stream);
    });
  } else {
    const RowRoute of = raw(route, gates.size(0), gates.size(1));
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, y.scalar_type(), "weighted_sum_of_rows_backward", [&] {
      for (std::int64_t slot = 0; slot < of.rows(); ++slot) {
        sum_rows_backward_of_slot<scalar_t, 1>(
            Alone{}, d_out.const_data_ptr<scalar_t>(), y.const_data_ptr<scalar_t>(),
            gates.const_data_ptr<scalar_t>(), of, y.size(1), slot, gradients.d_y.mutable_data_ptr<scalar_t>(),
            gradients.d_gates.mutable_data_ptr<scalar_t>());
      }
    });
  }
  return gradients;
}

}  // namespace fomoe::trainer
