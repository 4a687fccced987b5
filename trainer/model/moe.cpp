#include "trainer/model/moe.hpp"

#include "trainer/kernels/route/route.hpp"
#include "trainer/model/grouped_product.hpp"
#include "trainer/model/moe_rows.hpp"

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// rows[p] = x[token of the slot at sorted position p]. [T, d] → [T·k, d]. The gradient gathers a token's k
// rows and sums them in the order of slots, so that GPU results do not depend on the order of atomic
// operations.
struct Dispatch : Function<Dispatch> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& permutation,
                            const at::Tensor& position, std::int64_t chosen) {
    context->saved_data["position"] = position;
    context->saved_data["chosen"] = chosen;
    return x.index_select(0, permutation.floor_divide(chosen));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor position = context->saved_data["position"].toTensor();
    const std::int64_t chosen = context->saved_data["chosen"].toInt(), d = gradients[0].size(1);
    return {gradients[0].index_select(0, position).view({-1, chosen, d}).sum(1), {}, {}, {}};
  }
};

// LibTorch's grouped product leaves rows that belong to no group uninitialised; NaN would spread from them
// through 0·NaN.
void clear_ghost_rows(at::Tensor& rows, const at::Tensor& ends) {
  const at::Tensor last = ends.select(0, ends.numel() - 1);
  if (!last.is_cuda()) {
    const std::int64_t end = last.item<std::int32_t>();
    rows.narrow(0, end, rows.size(0) - end).zero_();
  } else {
    rows.masked_fill_((at::arange(rows.size(0), ends.options()) >= last).unsqueeze(1), 0);
  }
}

// For each group of rows with its expert: h = rows·up, a = SiLU(h), y = a·down; rows of ghosts give 0.
//   da = dy·downᵀ,  dh = da·SiLU'(h),  d rows = dh·upᵀ,  d up = rowsᵀ·dh,  d down = aᵀ·dy
struct Experts : Function<Experts> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& up,
                            const at::Tensor& down, const at::Tensor& ends, bool ghosts) {
    const at::Tensor h = grouped_rows(rows, up, ends);
    at::Tensor y = grouped_rows(at::silu(h), down, ends);
    if (ghosts) clear_ghost_rows(y, ends);
    context->saved_data["ghosts"] = ghosts;
    context->save_for_backward({rows, up, down, ends, h});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &up = saved[1], &down = saved[2], &ends = saved[3], &h = saved[4];
    const at::Tensor d_y = gradients[0].contiguous();
    const at::Tensor d_h = at::silu_backward(grouped_rows(d_y, down.transpose(1, 2), ends), h);
    at::Tensor d_rows = grouped_rows(d_h, up.transpose(1, 2), ends);
    if (context->saved_data["ghosts"].toBool()) clear_ghost_rows(d_rows, ends);
    // SiLU is computed again instead of being saved: that costs one pass over [T·k, d_expert], and saves
    // keeping it from the forward to the backward pass.
    return {d_rows, grouped_outer(rows, d_h, ends), grouped_outer(at::silu(h), d_y, ends), {}, {}};
  }
};

// out[t] = Σ_j gates[t, j]·y[position of slot (t, j)]. y [T·k, d], gates [T, k] → [T, d].
struct Combine : Function<Combine> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& gates,
                            const at::Tensor& permutation, const at::Tensor& position) {
    const std::int64_t tokens = gates.size(0), chosen = gates.size(1), d = y.size(1);
    const at::Tensor by_slot = y.index_select(0, position).view({tokens, chosen, d});
    context->save_for_backward({by_slot, gates, permutation});
    return at::bmm(gates.view({tokens, 1, chosen}), by_slot).view({tokens, d});
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &by_slot = saved[0], &gates = saved[1], &permutation = saved[2];
    const at::Tensor& d_out = gradients[0];
    const at::Tensor d_gates = at::bmm(by_slot, d_out.unsqueeze(2)).squeeze(2);
    const at::Tensor d_by_slot = (gates.unsqueeze(2) * d_out.unsqueeze(1)).view({-1, d_out.size(1)});
    return {d_by_slot.index_select(0, permutation), d_gates, {}, {}};
  }
};

}  // namespace

namespace {

at::Tensor gates_of(const at::Tensor& scores, double temperature) {
  return at::sigmoid(temperature == 1 ? scores : scores / temperature);
}

void note_use(RouterUse& use, const at::Tensor& scores, const at::Tensor& expert, double temperature) {
  const std::int64_t scored = scores.size(1);
  at::Tensor counts = at::zeros({scored}, expert.options());
  counts.scatter_add_(0, expert.flatten(), at::ones({expert.numel()}, expert.options()));
  if (use.counts.defined()) use.counts += counts;
  if (!use.wants_balance) return;
  // Means over tokens lose precision in bf16.
  const bool bf16 = scores.scalar_type() == at::kBFloat16;
  const at::Tensor all_gates = gates_of(bf16 ? scores.to(at::kFloat) : scores, temperature);
  const at::Tensor p = (all_gates / all_gates.sum(1, /*keepdim=*/true)).mean(0);
  const at::Tensor f = counts.to(p.scalar_type()) / static_cast<double>(expert.numel());
  use.balance = (p * f).sum() * static_cast<double>(scored);
}

}  // namespace

at::Tensor moe_forward(const at::Tensor& x, const MoeLayer& layer, RouterUse* use) {
  // Select by score rather than by gate: the order is the same, and in bf16 there are fewer ties among scores
  // than among sigmoids near 1.
  const at::Tensor scores = at::mm(x, layer.router);
  const auto [score, expert] = scores.topk(layer.chosen, /*dim=*/1);
  if (use != nullptr) note_use(*use, scores, expert, layer.temperature);
  const at::Tensor gates = gates_of(score, layer.temperature);

  at::Tensor expert_of_slot = expert.flatten();
  if (layer.local_index.defined()) expert_of_slot = layer.local_index.index_select(0, expert_of_slot);
  const Route sorted = route(expert_of_slot, layer.up.size(0));

  if (layer.own_kernels) return experts_by_rows(x, gates, layer.up, layer.down, sorted);
  const at::Tensor rows = Dispatch::apply(x, sorted.permutation, sorted.position, layer.chosen);
  const at::Tensor y = Experts::apply(rows, layer.up, layer.down, sorted.ends, layer.local_index.defined());
  return Combine::apply(y, gates, sorted.permutation, sorted.position);
}

}  // namespace fomoe::trainer
