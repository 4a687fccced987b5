#include "trainer/optimizer/moment_ages.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::trainer {

MomentAges::MomentAges(int nodes, std::int64_t layers, std::int64_t experts, double beta2)
    : ages_(at::zeros({nodes, layers, experts}, at::kDouble)), beta2_(beta2) {}

void MomentAges::trained(costmodel::NodeId node, std::int64_t steps) { ages_[node] += steps; }

void MomentAges::restarted(costmodel::NodeId node, std::int64_t layer, std::int64_t expert) {
  ages_[node][layer][expert] = 0;
}

double MomentAges::averaged(const std::vector<costmodel::NodeId>& nodes, std::int64_t layer,
                            std::int64_t expert) {
  double bias = 0, oldest = 0, youngest = INFINITY;
  for (const costmodel::NodeId node : nodes) {
    const double age = ages_[node][layer][expert].item<double>();
    bias += (1 - std::pow(beta2_, age)) / static_cast<double>(nodes.size());
    oldest = std::max(oldest, age);
    youngest = std::min(youngest, age);
  }
  // If β2^t has vanished at all owners, the logarithm is undefined and the largest count is used.
  double age = youngest == oldest || bias >= 1 ? oldest : std::log1p(-bias) / std::log(beta2_);
  for (const costmodel::NodeId node : nodes) ages_[node][layer][expert] = age;
  return age;
}

void MomentAges::set(const std::vector<std::vector<ExpertSteps>>& experts) {
  for (std::size_t layer = 0; layer < experts.size(); ++layer) {
    for (std::size_t expert = 0; expert < experts[layer].size(); ++expert)
      ages_.select(1, static_cast<std::int64_t>(layer))
          .select(1, static_cast<std::int64_t>(expert))
          .fill_(experts[layer][expert].moments);
  }
}

}  // namespace fomoe::trainer
