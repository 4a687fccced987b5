#include "trainer/record/norm_means.hpp"

namespace fomoe::trainer {

void NormMeans::add(costmodel::NodeId node, Norm norm, const at::Tensor& value) {
  if (!value.defined()) return;
  Sum& sum = sums_[node][norm];
  sum.sum += value.item<double>();
  ++sum.count;
}

void NormMeans::step(const StepRecord& record) {
  if (record.skipped) return;
  add(record.node, gradient, record.gradient_norm);
  add(record.node, update, record.update_norm);
}

void NormMeans::outer_step(const OuterRecord& record) {
  add(record.node, outer_difference, record.norms.difference);
  add(record.node, outer_update, record.norms.update);
}

MeanNorms NormMeans::of(costmodel::NodeId node) const {
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
