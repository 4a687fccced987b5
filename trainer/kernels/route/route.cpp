#include "trainer/kernels/route/route.hpp"

#include <utility>
#include <vector>

#include "trainer/kernels/on_device.hpp"
#include "trainer/kernels/route/route_kernels.hpp"

namespace fomoe::trainer {

Route route_reference(const at::Tensor& expert_of_slot, std::int64_t local_experts) {
  const std::int64_t slots = expert_of_slot.numel();
  const auto* expert = expert_of_slot.const_data_ptr<std::int64_t>();
  Route out{at::empty({slots}, at::kLong), at::empty({slots}, at::kLong),
            at::empty({local_experts}, at::kInt)};

  // next[e] first counts the slots of expert e. Then it is the position of the next slot of e to be placed.
  std::vector<std::int64_t> next(static_cast<std::size_t>(local_experts + 1), 0);
  for (std::int64_t slot = 0; slot < slots; ++slot) ++next[static_cast<std::size_t>(expert[slot])];
  std::int64_t begin = 0;
  for (std::int64_t e = 0; e <= local_experts; ++e) {
    const std::int64_t count = std::exchange(next[static_cast<std::size_t>(e)], begin);
    begin += count;
    if (e < local_experts) out.ends.data_ptr<std::int32_t>()[e] = static_cast<std::int32_t>(begin);
  }

  auto* permutation = out.permutation.data_ptr<std::int64_t>();
  auto* position = out.position.data_ptr<std::int64_t>();
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int64_t where = next[static_cast<std::size_t>(expert[slot])]++;
    permutation[where] = slot;
    position[slot] = where;
  }
  return out;
}

Route route(const at::Tensor& expert_of_slot, std::int64_t local_experts) {
  TORCH_CHECK(expert_of_slot.scalar_type() == at::kLong && expert_of_slot.is_contiguous(),
              "route: the expert ids must be contiguous and int64");
  if (!expert_of_slot.is_cuda()) return route_reference(expert_of_slot, local_experts);

  const std::int64_t slots = expert_of_slot.numel();
  const int bins = static_cast<int>(local_experts) + 1;
  const at::TensorOptions ids = expert_of_slot.options();
  Route out{at::empty({slots}, ids), at::empty({slots}, ids),
            at::empty({local_experts}, ids.dtype(at::kInt))};
  const at::Tensor scratch = at::empty({route_scratch_elements(slots, bins)}, ids.dtype(at::kInt));
  launch_on(expert_of_slot.device(), [&](auto stream) {
    return launch_route(expert_of_slot.const_data_ptr<std::int64_t>(), slots, bins,
                        out.permutation.data_ptr<std::int64_t>(), out.position.data_ptr<std::int64_t>(),
                        out.ends.data_ptr<std::int32_t>(), scratch.data_ptr<std::int32_t>(), stream);
  });
  return out;
}

}  // namespace fomoe::trainer
