// One node's share of the training: its model, what its optimisers remember, and how the words of a payload
// (Content, groups) read and write it. Nothing here knows a training method.
//
//   parameter, moment1, moment2, gradient,
//   outer_moment1, outer_moment2            the tensors themselves
//   pseudo_gradient                         θ_before − θ: the anchor, kept since the last synchronisation,
//                                           less the parameters
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/plan/placement.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/model/model.hpp"
#include "trainer/model/tensor_groups.hpp"
#include "trainer/optimizer/adamw.hpp"
#include "trainer/optimizer/outer_optimizer.hpp"

namespace fomoe::trainer {

/// The experts of a node, `placement` absent: all.
ExpertChoice expert_choice(const costmodel::Placement* placement, costmodel::NodeId node, bool skip_token);

struct WorkerOptions {
  ModelOptions model;
  AdamWOptions inner;
  std::optional<OuterOptions> outer;  // where the node takes outer steps
  bool keeps_anchor = false;          // where it sends pseudo-gradients or takes outer steps
  bool keeps_residual = false;        // where what it sends loses something on the wire
};

class Worker {
 public:
  Worker(const costmodel::ModelShape& shape, const std::vector<costmodel::TensorGroup>& groups,
         const WorkerOptions& options);
  Worker(const Worker&) = delete;  // the optimiser points to the model
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] Model& model() { return model_; }
  [[nodiscard]] AdamW& inner() { return inner_; }

  /// A copy of the payload's elements, flat, in the plan's order, in the masters' dtype. With error feedback
  /// it includes what earlier payloads left out.
  [[nodiscard]] at::Tensor read(const costmodel::Payload& payload);

  /// The sites' mean of what read() gave. Parameters, moments and gradients take its value (and the anchor
  /// that of parameters); pseudo-gradients wait for outer_step().
  void write(const costmodel::Payload& payload, const at::Tensor& flat);

  /// What others did not learn from the last payload; the next one adds it (error feedback, Karimireddy et
  /// al. 2019).
  void keep_residual(const costmodel::Payload& payload, const at::Tensor& residual);

  /// θ_before → new θ, from the averages that were written: of these alone, or with `whole` of all that the
  /// node holds. What only this node holds is averaged with nobody: its own difference is the mean.
  /// `kept_share` α where the node has trained on since it sent: θ ← α·θ + (1 − α)·new θ (Streaming DiLoCo,
  /// arXiv 2501.18512, section 2.3), while the anchor becomes the new θ, the same at all sites.
  void outer_step(bool whole, double kept_share = 0);

  /// Of runs that do not compute: there are gradients, all 0.
  void zero_gradients();
  /// Takes no outer step with what was written.
  void discard_averages() { averages_.clear(); }

  /// From the experts held to those of `next`; as many in each layer. Kept experts move to their new
  /// positions with all their state. New ones have any values until write(), and start anew: zero moments,
  /// an own warm-up.
  void change_experts(const ExpertChoice& next);
  /// Forgets the outer optimiser's state of these experts (layer, expert); of experts held elsewhere nothing.
  void reset_outer_state(const std::vector<std::pair<int, int>>& experts);

  /// Every tensor of the state, with its name, to be saved or copied into; beside them there are
  /// inner().experts(). Between rounds only: averages that wait for an outer step are not among them.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> state();

 private:
  struct Average {  // of a part of a parameter
    ParameterSlice slice;
    at::Tensor value;
  };
  [[nodiscard]] std::vector<ParameterSlice> slices_of(const costmodel::Payload& payload) const;
  [[nodiscard]] at::Tensor part(costmodel::Content content, const ParameterSlice& slice);
  /// Of every tensor with a row for each local expert; empty ones are skipped.
  template <class Visit>
  void visit_expert_tensors(const Visit& visit);

  std::vector<costmodel::TensorGroup> groups_;
  WorkerOptions options_;
  Model model_;
  AdamW inner_;
  std::vector<at::Tensor> anchor_, residual_;  // in the order of the parameters, or empty
  std::optional<OuterOptimizer> outer_;
  std::vector<Average> averages_;
};

}  // namespace fomoe::trainer
