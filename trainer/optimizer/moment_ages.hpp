// Counts the updates that each site's moments of an expert contain. When owners with different counts average
// their second moments, all of them must continue with one bias correction. No payload carries counts, but
// every process sees the whole plan and can therefore count for all sites.
//
// The second moment v_i of owner i has had t_i updates, so it is biased by the factor 1 − β2^(t_i). The mean
// of all v_i is therefore biased by the factor c = mean_i (1 − β2^(t_i)). That is the bias after t = log(1 −
// c)/log β2 updates.
#pragma once
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/optimizer/adamw.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class MomentAges {
 public:
  MomentAges(int nodes, std::int64_t layers, std::int64_t experts, double beta2);

  void trained(costmodel::NodeId node, std::int64_t steps);
  void restarted(costmodel::NodeId node, std::int64_t layer, std::int64_t expert);
  /// The second moments of the expert are averaged over `nodes`. Returns t, which becomes the count of all
  /// `nodes`.
  double averaged(const std::vector<costmodel::NodeId>& nodes, std::int64_t layer, std::int64_t expert);

  /// Every node's moments of an expert (by layer and expert id) contain as many updates as given.
  void set(const std::vector<std::vector<ExpertSteps>>& experts);

  /// fp64 [nodes, layers, experts]: updates that the moments contain, for checkpoints to save or to write.
  [[nodiscard]] at::Tensor& state() { return ages_; }

 private:
  at::Tensor ages_;
  double beta2_;
};

}  // namespace fomoe::trainer
