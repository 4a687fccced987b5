// One node's share of the training: its model, the state of its optimisers, and how the elements of a payload
// are read from them and written to them. Nothing here depends on a training method. The payload's Content
// selects what it holds:
//
//   parameter, moment1, moment2, gradient,
//   outer_moment1, outer_moment2            the tensors themselves
//   pseudo_gradient                         θ_before − θ: the anchor (the parameters at the last
//                                           synchronisation) minus the parameters
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

/// The experts that a node holds, or all experts if `placement` is null.
ExpertChoice expert_choice(const costmodel::Placement* placement, costmodel::NodeId node, bool skip_token);

/// Norms of an outer step, over the parts of the model that it updates; on the device.
struct OuterNorms {
  at::Tensor difference;  // of the averaged pseudo-gradient
  at::Tensor update;      // of the change of the anchor
};

/// Whether written parameters replace the anchor too.
enum class Anchor { kept, replaced };

struct WorkerOptions {
  ModelOptions model;
  AdamWOptions inner;
  std::optional<OuterOptions> outer;  // set if the node takes outer steps
  bool keeps_anchor = false;          // set if the node sends pseudo-gradients or takes outer steps
  bool keeps_residual = false;        // set if the wire format of what it sends is lossy
  /// Factor on the residual when the next payload adds it (β of SparseLoCo, Sarfi et al. 2025).
  double residual_decay = 1;
  /// The worker has no model: it reads zeros, as many as a payload has elements, and forgets what it gets.
  /// For paced runs of models that the trainer does not have, or that no machine could hold.
  bool stand_in = false;
};

class Worker {
 public:
  Worker(const costmodel::ModelShape& shape, const std::vector<costmodel::TensorGroup>& groups,
         const WorkerOptions& options);
  Worker(const Worker&) = delete;  // the optimiser points to the model
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] Model& model() { return model_; }
  [[nodiscard]] AdamW& inner() { return inner_; }

  /// Returns a copy of the payload's elements: flat, in the plan's order and in the dtype of the masters.
  /// With error feedback, it includes what earlier payloads lost.
  [[nodiscard]] at::Tensor read(const costmodel::Payload& payload);

  /// Writes `flat`, the mean over the sites of what read() returned. For parameters, moments and gradients,
  /// the mean replaces the node's own values. Parameters that come from a server, or with an expert, replace
  /// the anchor too; the average of some sites' parameters does not, since their pseudo-gradients go back to
  /// the state that all sites had. Means of pseudo-gradients are kept for outer_step().
  void write(const costmodel::Payload& payload, const at::Tensor& flat, Anchor anchor);

  /// Keeps `residual`, what this node's encodings took from the sum of the last payloads because the wire
  /// format is lossy. The next payload adds it (error feedback, Karimireddy et al. 2019).
  void keep_residual(const costmodel::Payload& payload, const at::Tensor& residual);

  /// Computes the new parameters θ from the anchor θ_before and the averages that write() received. Updates
  /// only the averaged parts or, with `whole`, everything that the node holds. A part that only this node
  /// holds is not averaged, so the node's own difference serves as the mean.
  ///
  /// If `kept_share` = α is above 0, the node has continued to train since it sent its difference. It then
  /// sets θ ← α·θ + (1 − α)·new θ (Streaming DiLoCo, arXiv 2501.18512, section 2.3). The anchor becomes the
  /// new θ itself, which is the same at all sites.
  /// Computes `norms` if they are given.
  void outer_step(bool whole, double kept_share = 0, OuterNorms* norms = nullptr);

  /// Sets all gradients to 0; for runs that do not compute.
  void zero_gradients();
  /// Drops the averages that write() received, without an outer step.
  void discard_averages() { averages_.clear(); }

  /// Replaces the experts that this node holds by those of `next`, which has the same number of experts in
  /// each layer. An expert that the node keeps moves to its new position with all its state. A new expert has
  /// arbitrary values until write(), zero moments, and a warm-up of its own.
  void change_experts(const ExpertChoice& next);
  /// Resets the outer optimiser's state of these experts (layer, expert). Experts that the node does not hold
  /// are skipped.
  void reset_outer_state(const std::vector<std::pair<int, int>>& experts);

  /// If the optimiser's state is sharded, state() has the whole moments from now on, as writable tensors in
  /// which the rows of other shards are zeros. Otherwise it does nothing.
  void open_shards();
  /// Takes the optimiser's own rows from the whole moments, and frees them.
  void close_shards();

  /// Every tensor of the state with its name, for checkpoints to save or to write; inner().experts()
  /// completes it. Call it only between rounds: averages that wait for an outer step are not included.
  /// If the optimiser's state is sharded, call open_shards() before.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> state();

 private:
  struct Average {  // the mean of a part of a parameter
    ParameterSlice slice;
    at::Tensor value;
  };
  [[nodiscard]] std::vector<ParameterSlice> slices_of(const costmodel::Payload& payload) const;
  [[nodiscard]] at::Tensor part(costmodel::Content content, const ParameterSlice& slice);
  /// Casts the part of a master to the copy that the forward and backward passes use, if it has one.
  void cast(const ParameterSlice& slice);
  /// Calls `visit` for every tensor with a row or column for each local expert; empty tensors are skipped.
  template <class Visit>
  void visit_expert_tensors(const Visit& visit);

  std::vector<costmodel::TensorGroup> groups_;
  WorkerOptions options_;
  Model model_;
  AdamW inner_;
  std::vector<at::Tensor> anchor_, residual_;              // in the order of the parameters, or empty
  std::vector<at::Tensor> whole_moment1_, whole_moment2_;  // between open_shards() and close_shards()
  std::optional<OuterOptimizer> outer_;
  std::vector<Average> averages_;
};

}  // namespace fomoe::trainer
