// Norms of gradients and of updates for the report of a run: of the last step, and means over the outer steps
// of the last round.
#pragma once
#include <array>
#include <map>
#include <optional>

#include "trainer/execution/executor.hpp"

namespace fomoe::trainer {

/// Of one node. Empty: there was no such step, or nothing measured it.
struct NodeNorms {
  std::optional<double> gradient;          // of a step's gradients, before clipping
  std::optional<double> update;            // of a step's change of the parameters
  std::optional<double> outer_difference;  // of the averaged pseudo-gradient of an outer step
  std::optional<double> outer_update;      // of an outer step's change of the parameters
};

/// The name of a norm that is no number, which a report cannot state; null if there is none.
const char* not_finite(const NodeNorms& norms);

class LastNorms {
 public:
  /// Forgets what it has seen.
  void clear() { sums_.clear(); }
  void step(const StepRecord& record);
  void outer_step(const OuterRecord& record);
  [[nodiscard]] NodeNorms of(costmodel::NodeId node) const;

 private:
  enum Norm : std::size_t { gradient, update, outer_difference, outer_update, kNorms };
  struct Sum {
    double sum = 0;
    int count = 0;
  };
  void add(costmodel::NodeId node, Norm norm, const at::Tensor& value);
  void replace(costmodel::NodeId node, Norm norm, const at::Tensor& value);
  std::map<costmodel::NodeId, std::array<Sum, kNorms>> sums_;
};

}  // namespace fomoe::trainer
