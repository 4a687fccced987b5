// The gradients of one optimiser step of one node: at once, or in the parts that a plan's operations name, so
// that what has left the backward pass can be sent while it goes on.
//
// Parts are of the last micro-batch, since sums over micro-batches are complete in no other. Its forward pass
// is cut where the backward pass is to stop: a layer's input x becomes a leaf x', and the backward pass of
// the layers from there on ends in ∂L/∂x', from which that of the layers before goes on. It is the same sums
// in the same order as in one go: the gradients have the same bits (tests/trainer/buckets_test.cpp).
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
  /// Sequences first … first + count − 1 of the step's batch, `micro_batch` at a time; 0: all at a time.
  struct Part {
    std::int64_t step = 0, first = 0, count = 0, micro_batch = 0;
  };
  /// L = Σ_b (sequences of micro-batch b ÷ count)·(L_b + balance_weight·balance_b), b's cross-entropy and
  /// load-balancing loss; its gradient is added to that of the step's model. All referred to must outlive the
  /// pass.
  GradientPass(RecordedStep& step, Batches& batches, Routing& routing, const Part& part);

  /// Forward and backward of all micro-batches that are left, or of all but the last one.
  void micro_batches(bool but_the_last = false);
  /// Of all but the last one both passes, of the last one forward. `stops`: layers at which the backward pass
  /// will stop.
  void forward(const std::set<std::int64_t>& stops);
  /// Goes on through layer `down_to`, one of the stops or 0, whose gradients and those of the layers above
  /// are then complete; with 0 those of the embedding too.
  void backward(std::int64_t down_to);

  /// Cross-entropy, mean over the sequences; complete after the last forward.
  /// Waits for the device.
  [[nodiscard]] double loss() const { return loss_.defined() ? loss_.item<double>() : 0; }

 private:
  /// Of the layers from `begin` to the next stage's: what their backward pass starts from, and the leaf that
  /// it ends in.
  struct Stage {
    std::int64_t begin;
    at::Tensor input;    // none: the embedding
    at::Tensor output;   // the loss, or the next stage's input before it became a leaf
    at::Tensor balance;  // their share of the load-balancing loss; or none
  };
  void add_to_loss(const at::Tensor& share_of_loss, std::int64_t size);

  RecordedStep* step_;
  Batches* batches_;
  Routing* routing_;
  Part part_;
  std::int64_t done_ = 0;      // sequences whose forward has been
  double share_ = 0;           // of the last micro-batch, where it is cut
  at::Tensor loss_;            // fp64, on the device; none before the first forward
  std::vector<Stage> stages_;  // whose backward has not been
  at::Tensor upstream_;        // ∂L ÷ ∂ the last one's output; none: that is the loss
};

}  // namespace fomoe::trainer
