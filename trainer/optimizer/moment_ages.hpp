// How many updates each site's moments of an expert hold. Where owners of different age average their second
// moments, all must go on with one bias correction, and no payload carries counts: but every process sees the
// whole plan, and so can count for all sites alike.
//
//   owner i's v_i is biased by 1 − β2^(t_i), so their mean by c = mean_i (1 − β2^(t_i)), which is that of
//   t = log(1 − c)/log β2 updates
#pragma once
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class MomentAges {
 public:
  MomentAges(int nodes, std::int64_t layers, std::int64_t experts, double beta2);

  void trained(costmodel::NodeId node, std::int64_t steps);
  void restarted(costmodel::NodeId node, std::int64_t layer, std::int64_t expert);
  /// → t, which is from now on the age at all of `nodes`.
  double averaged(const std::vector<costmodel::NodeId>& nodes, std::int64_t layer, std::int64_t expert);

  /// fp64 [nodes, layers, experts], to be saved or copied into.
  [[nodiscard]] at::Tensor& state() { return ages_; }

 private:
  at::Tensor ages_;
  double beta2_;
};

}  // namespace fomoe::trainer
