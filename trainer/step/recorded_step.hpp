// A node's training step as three pieces of work that are the same on the device each time: the gradient of a
// step's first micro-batch, the gradient of each later micro-batch, and the optimiser's update. On a GPU they
// can be recorded and launched as a whole. Otherwise they run directly, as ordinary forward, backward and
// AdamW.
//
// Recorded gradients stay at the addresses of the recording: the model has the same gradient tensors in each
// step. Other code, such as an all-reduce, may read and write them between the pieces.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/batches.hpp"
#include "trainer/model/model.hpp"
#include "trainer/optimizer/adamw.hpp"
#include "trainer/step/device_graph.hpp"
#include "trainer/step/launches.hpp"

namespace fomoe::trainer {

/// Adds the gradient of weight·(L + balance_weight·balance) to the model's gradients, where L is the
/// cross-entropy and balance the load-balancing loss (if `routing` wants it). tokens, targets: int64 [B, S]
/// on the model's device. Returns weight·L, fp64, on the device. A weight below 1 says that other
/// micro-batches of the step follow or came before: the gradients of a bf16 model are then fp32, since sums
/// of many parts in bf16 lose the small ones.
at::Tensor add_gradient(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                        Routing& routing, double balance_weight, double weight);

/// |g|, the norm of all gradients together, in the dtype of the masters, on the device.
at::Tensor gradient_norm(const Model& model);
/// g ← g·min(1, most ÷ (|g| + 1e-6)), where `norm` is |g|.
void clip_gradients(const Model& model, const at::Tensor& norm, double most);

/// The reason why steps of this model cannot be recorded; empty if they can.
std::string recording_refused(const costmodel::ModelShape& shape, at::Device device, at::ScalarType dtype);

class RecordedStep {
 public:
  struct Options {
    double balance_weight = 0;
    double clip_norm = 0;  // 0: no clipping
    Launches launches = Launches::by_host;
    bool norms = false;           // whether gradient_norm() and update_norm() are wanted
    bool skip_nonfinite = false;  // whether update() leaves out gradients that are not finite
  };
  /// `model` and `optimizer` must outlive it.
  RecordedStep(Model& model, AdamW& optimizer, const Options& options);

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const Options& options() const { return options_; }

  /// Calls add_gradient() for a micro-batch that may be in host memory. A graph is used only if the
  /// micro-batch has the same size and weight as the very first one. Returns the result of add_gradient(), in
  /// a tensor that the next step overwrites.
  at::Tensor micro_batch(const Batch& batch, Routing& routing, double weight);

  /// Clips the gradients, updates the parameters and drops the gradients. A graph is used if the gradients
  /// come from a recording and the model uses our own kernels (AdamW::update). With skip_nonfinite, it waits
  /// for the device, and returns false without an update if a gradient is not finite.
  bool update();

  /// The norm of the gradients of the last update, before they were clipped; undefined if neither clipping
  /// nor Options::norms needs it.
  [[nodiscard]] const at::Tensor& gradient_norm() const { return norm_; }
  /// |θ_after − θ_before| of the last update, over all parameters; undefined if it is not wanted.
  [[nodiscard]] const at::Tensor& update_norm() const { return update_norm_; }
  /// Has an effect on updates that are not recorded.
  void want_norms(bool wanted) { options_.norms = wanted; }

 private:
  struct Whole {  // the gradient of one micro-batch
    DeviceGraph graph;
    at::Tensor loss;
  };
  [[nodiscard]] bool recordable(const Batch& batch, double weight);
  [[nodiscard]] bool has_recorded_gradients() const;
  void take(at::Tensor& into, const at::Tensor& from) const;

  Model* model_;
  AdamW* optimizer_;
  Options options_;
  std::shared_ptr<GraphPool> pool_;  // null: nothing is recorded
  int steps_ = 0;
  // Size and weight of the first micro-batch. Only micro-batches with this size and weight are recorded.
  std::int64_t size_ = 0;
  double weight_ = 0;
  // The tensors that the recordings read and write.
  at::Tensor tokens_, targets_;
  std::vector<at::Tensor> counts_;     // Routing::counts
  std::vector<at::Tensor> gradients_;  // in the order of the model's parameters
  at::Tensor norm_, update_norm_;      // see gradient_norm() and update_norm()
  // Declared after the tensors above, since the recordings use their memory.
  Whole first_, next_;
  DeviceGraph update_;
};

}  // namespace fomoe::trainer
