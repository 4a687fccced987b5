// The gradients of one optimiser step of one node. They are computed at once, or in the parts that a plan's
// operations name, so that gradients that are complete can be sent while the backward pass continues.
//
// Only the last micro-batch is divided into parts, since the sums over micro-batches are complete only then.
// Its forward pass is cut at the layers where the backward pass will pause: the input x of such a layer
// becomes a leaf x' of the autograd graph. The backward pass of this layer and the layers above it ends in
// ∂L/∂x', where L is the loss. From ∂L/∂x', the backward pass of the layers below continues. The sums and
// their order are the same as without cuts, so the gradients have the same bits
// (tests/trainer/run/buckets_test.cpp).
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "trainer/data/batches.hpp"
#include "trainer/model/model.hpp"
#include "trainer/step/recorded_step.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class GradientPass {
 public:
  /// Sequences first … first + count − 1 of the step's global batch, in micro-batches of `micro_batch`
  /// sequences; 0: one micro-batch. They are a part of the `of` sequences of the node's step, of which other
  /// processes of the site may have the rest; 0: all of them.
  struct Part {
    std::int64_t step = 0, first = 0, count = 0, micro_batch = 0, of = 0;
  };
  /// Adds the gradient of L to the gradients of the step's model, with L = Σ_b (sequences of micro-batch b ÷
  /// of)·(L_b + balance_weight·balance_b), where L_b is the cross-entropy and balance_b the load-balancing
  /// loss of micro-batch b. All references must outlive the pass.
  GradientPass(RecordedStep& step, Batches& batches, Routing& routing, const Part& part);

  /// Runs forward and backward of all remaining micro-batches, or of all but the last one.
  void micro_batches(bool but_the_last = false);
  /// Runs both passes of all micro-batches but the last one, and the forward pass of the last one. `stops`
  /// are the layers at which its backward pass will stop.
  void forward(const std::set<std::int64_t>& stops);
  /// Continues the backward pass through layer `down_to`, which is one of the stops or 0. The gradients of
  /// that layer and of all layers above are then complete; with 0, those of the embedding too.
  void backward(std::int64_t down_to);

  /// The part's share of the cross-entropy, which is a mean over the `of` sequences, fp64, on the device;
  /// complete after the last forward pass and undefined before the first one.
  [[nodiscard]] const at::Tensor& loss() const { return loss_; }

 private:
  /// A stage is the layers from `begin` up to the `begin` of the next stage. `output` is where the stage's
  /// backward pass starts, and `input` is the leaf in which it ends.
  struct Stage {
    std::int64_t begin;
    at::Tensor input;    // the leaf; undefined in the first stage, which starts at the embedding
    at::Tensor output;   // the loss, or the next stage's input before it became a leaf
    at::Tensor balance;  // the stage's share of the load-balancing loss, or undefined
  };
  void add_to_loss(const at::Tensor& share_of_loss, std::int64_t size);

  RecordedStep* step_;
  Batches* batches_;
  Routing* routing_;
  Part part_;
  std::int64_t done_ = 0;      // sequences whose forward pass is done
  double share_ = 0;           // the last micro-batch's share of all sequences, if it is cut
  at::Tensor loss_;            // fp64, on the device; undefined before the first forward pass
  std::vector<Stage> stages_;  // stages whose backward pass is still to come
  at::Tensor upstream_;        // ∂L/∂output of the last stage; undefined if that output is the loss
};

}  // namespace fomoe::trainer
