#include "trainer/kernels/adam/adam.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <experimental/simd>

#include "trainer/kernels/adam/adam_kernels.hpp"
#include "trainer/kernels/on_device.hpp"

namespace fomoe::trainer {

namespace {

namespace simd = std::experimental;

constexpr std::int64_t kPerTask = 16384;  // elements that a CPU thread takes at least

/// Updates the elements from `begin` up to `end`, which belong to one expert, on a CPU. The compiler does not
/// vectorise the arithmetic of single elements, since a scalar root may set errno.
template <class G>
void update_range(const AdamPiece& piece, const AdamFactors<Sum<G>> f, std::int64_t begin, std::int64_t end) {
  using S = Sum<G>;
  constexpr int kLanes = 16;
  using V = simd::fixed_size_simd<S, kLanes>;
  constexpr simd::element_aligned_tag kAny{};
  S *master = static_cast<S*>(piece.master), *moment1 = static_cast<S*>(piece.moment1),
    *moment2 = static_cast<S*>(piece.moment2);
  const G* gradient = static_cast<const G*>(piece.gradient);
  auto* copy = static_cast<at::BFloat16*>(piece.copy);
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    V theta(master + i, kAny), m(moment1 + i, kAny), v(moment2 + i, kAny);
    adam_update(f, theta, m, v, V([&](auto lane) { return static_cast<S>(gradient[i + lane]); }));
    theta.copy_to(master + i, kAny);
    m.copy_to(moment1 + i, kAny);
    v.copy_to(moment2 + i, kAny);
    for (int lane = 0; copy != nullptr && lane < kLanes; ++lane)
      copy[i + lane] = static_cast<at::BFloat16>(static_cast<float>(master[i + lane]));
  }
  for (; i < end; ++i) adam_elements<G, at::BFloat16, 1>(piece, f, i);
}

template <class G>
void update_on_cpu(const AdamSettings& settings, const AdamPiece& piece) {
  std::vector<AdamFactors<Sum<G>>> factors;
  for (std::int64_t expert = 0; expert < piece.experts; ++expert)
    factors.push_back(adam_factors<Sum<G>>(settings, piece, expert));
  at::parallel_for(0, piece.n, kPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t run = begin / piece.run;
    for (std::int64_t i = begin; i < end; ++run) {
      const std::int64_t stop = std::min(end, (run + 1) * piece.run);
      update_range<G>(piece, factors[static_cast<std::size_t>(run % piece.experts)], i, stop);
      i = stop;
    }
  });
}

bool counts_fit(const at::Tensor& counts, std::int64_t experts, at::Device device) {
  return counts.scalar_type() == at::kFloat && counts.is_contiguous() && counts.numel() == experts &&
         counts.device() == device;
}

AdamPiece piece_of(const AdamTensors& tensors, std::size_t i, at::ScalarType type) {
  const at::Tensor &master = tensors.masters[i], &gradient = tensors.gradients[i], &copy = tensors.copies[i],
                   &updates = tensors.updates[i],
                   ages = tensors.ages.empty() ? at::Tensor() : tensors.ages[i];
  const auto fits = [&](const at::Tensor& other, at::ScalarType wanted) {
    return other.scalar_type() == wanted && other.strides() == master.strides() &&
           other.sizes() == master.sizes() && other.device() == master.device();
  };
  TORCH_CHECK(
      master.is_non_overlapping_and_dense() && fits(master, sum_type(type)) &&
          fits(tensors.moment1[i], master.scalar_type()) && fits(tensors.moment2[i], master.scalar_type()) &&
          fits(gradient, type) && (!copy.defined() || fits(copy, at::kBFloat16)),
      "adam_step: all tensors must have the same layout and device, all gradients must have the same dtype, "
      "and copies must be bf16");
  const std::int64_t experts = updates.numel();
  std::int64_t run = master.numel();
  if (experts > 1) {
    const std::int64_t dim = tensors.expert_dims.at(i);
    TORCH_CHECK(master.size(dim) == experts, "adam_step: got ", experts, " counts of updates for ",
                master.size(dim), " experts");
    run = master.stride(dim);  // the layout is dense
  }
  TORCH_CHECK(counts_fit(updates, experts, master.device()) &&
                  (!ages.defined() || counts_fit(ages, experts, master.device())),
              "adam_step: counts must be contiguous fp32 on the device, with one value for each expert");
  return {master.data_ptr(),
          tensors.moment1[i].data_ptr(),
          tensors.moment2[i].data_ptr(),
          gradient.const_data_ptr(),
          copy.defined() ? copy.data_ptr() : nullptr,
          updates.const_data_ptr<float>(),
          ages.defined() ? ages.const_data_ptr<float>() : nullptr,
          master.numel(),
          run,
          experts};
}

AdamType adam_type(const at::Tensor& gradient) {
  if (gradient.scalar_type() == at::kDouble) return AdamType::fp64;
  return row_type(gradient) == RowType::fp32 ? AdamType::fp32 : AdamType::bf16;
}

}  // namespace

void adam_step(const AdamTensors& tensors, const AdamRates& rates) {
  if (tensors.masters.empty()) return;
  // For profilers, and for the test that two updates do the same work on the device.
  RECORD_FUNCTION(
      "fomoe::adam_step",
      std::vector<c10::IValue>({rates.rate, rates.rate_scale, rates.beta1, rates.beta2, rates.epsilon,
                                rates.weight_decay, rates.warmup, tensors.masters, tensors.gradients}));
  const AdamSettings settings{rates.rate.const_data_ptr<double>(),
                              rates.rate_scale,
                              rates.beta1,
                              rates.beta2,
                              rates.epsilon,
                              rates.weight_decay,
                              rates.warmup};
  const at::Tensor like = tensors.gradients.front();
  std::vector<AdamPiece> pieces;
  for (std::size_t i = 0; i < tensors.masters.size(); ++i) {
    TORCH_CHECK(tensors.masters[i].device() == like.device() && rates.rate.device() == like.device(),
                "adam_step: all tensors must be on the same device");
    if (tensors.masters[i].numel() > 0) pieces.push_back(piece_of(tensors, i, like.scalar_type()));
  }
  if (like.is_cuda()) {
    return launch_on(like.device(), [&](auto stream) {
      return launch_adam(adam_type(like), settings, pieces.data(), static_cast<std::int64_t>(pieces.size()),
                         stream);
    });
  }
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, like.scalar_type(), "adam_step", [&] {
    for (const AdamPiece& piece : pieces) update_on_cpu<scalar_t>(settings, piece);
  });
}

}  // namespace fomoe::trainer
