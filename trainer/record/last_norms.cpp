#include "trainer/record/last_norms.hpp"

#include <cmath>

namespace fomoe::trainer {

void LastNorms::add(costmodel::NodeId node, Norm norm, const at::Tensor& value) {
  if (!value.defined()) return;
  Sum& sum = sums_[node][norm];
  sum.sum += value.item<double>();
  ++sum.count;
}

void LastNorms::replace(costmodel::NodeId node, Norm norm, const at::Tensor& value) {
  sums_[node][norm] = {};
  add(node, norm, value);
}

void LastNorms::step(const StepRecord& record) {
  if (record.skipped) return;
  replace(record.node, gradient, record.gradient_norm);
  replace(record.node, update, record.update_norm);
}

void LastNorms::outer_step(const OuterRecord& record) {
  add(record.node, outer_difference, record.norms.difference);
  add(record.node, outer_update, record.norms.update);
}

const char* not_finite(const NodeNorms& norms) {
  const auto wrong = [](const std::optional<double>& norm) { return norm && !std::isfinite(*norm); };
  if (wrong(norms.gradient)) return "the norm of its gradients";
  if (wrong(norms.update)) return "the norm of its updates";
  if (wrong(norms.outer_difference)) return "the norm of its averaged pseudo-gradient";
  return wrong(norms.outer_update) ? "the norm of its outer update" : nullptr;
}

NodeNorms LastNorms::of(costmodel::NodeId node) const {
  const auto found = sums_.find(node);
  if (found == sums_.end()) return {};
  const auto mean = [&](Norm norm) -> std::optional<double> {
    const Sum& sum = found->second[norm];
    if (sum.count == 0) return std::nullopt;
    return sum.sum / sum.count;
  };
  return {mean(gradient), mean(update), mean(outer_difference), mean(outer_update)};
}

}  // namespace fomoe::trainer
