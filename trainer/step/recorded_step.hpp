// A node's training step as pieces of work that ask the same of its device each time: the gradient of a
// step's first micro-batch, that of each that follows, and the optimiser's update. On a GPU they can be
// recorded and launched as a whole; else each is done anew, and this is forward, backward and AdamW as they
// are.
//
// Recorded gradients stay where the recording put them: the model has the same tensors as its gradients in
// each step, which others may read and write meanwhile, as all-reduces do.
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

/// Adds to the model's gradients that of weight·(L + balance_weight·balance), cross-entropy and
/// load-balancing loss (where `routing` wants it). tokens, targets: int64 [B, S] on the model's device. →
/// weight·L, fp64, on the device.
at::Tensor add_gradient(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                        Routing& routing, double balance_weight, double weight);

/// g ← g·min(1, norm ÷ (|g| + 1e-6)), |g| of all gradients together.
void clip_gradients(const Model& model, double norm);

/// Why steps of this model cannot be recorded, in words; empty where they can.
std::string recording_refused(const costmodel::ModelShape& shape, at::Device device, at::ScalarType dtype);

class RecordedStep {
 public:
  struct Options {
    double balance_weight = 0;
    double clip_norm = 0;  // 0: no clipping
    Launches launches = Launches::by_host;
  };
  /// `model` and its `optimizer` must outlive it.
  RecordedStep(Model& model, AdamW& optimizer, const Options& options);

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const Options& options() const { return options_; }

  /// add_gradient of a micro-batch that may be on the host. By graph only where it has the size and the
  /// weight of the first one of all. → as there; overwritten by the next step's.
  at::Tensor micro_batch(const Batch& batch, Routing& routing, double weight);

  /// Clips, updates, and forgets the gradients. By graph where they are recorded ones and the optimiser is
  /// settled.
  void update();

 private:
  struct Whole {  // gradient of a micro-batch
    DeviceGraph graph;
    at::Tensor loss;
  };
  [[nodiscard]] bool recordable(const Batch& batch, double weight);
  [[nodiscard]] bool has_recorded_gradients() const;
  void take(at::Tensor& into, const at::Tensor& from) const;

  Model* model_;
  AdamW* optimizer_;
  Options options_;
  std::shared_ptr<GraphPool> pool_;  // none: nothing is recorded
  int steps_ = 0;
  bool settled_before_ = false;  // an update like that to be recorded has been made plainly
  // Of the first micro-batch of all, and so of the recorded ones.
  std::int64_t size_ = 0;
  double weight_ = 0;
  // What the recordings read and write.
  at::Tensor tokens_, targets_;
  std::vector<at::Tensor> counts_;     // Routing::counts
  std::vector<at::Tensor> gradients_;  // in the order of the model's parameters
  // After these, which they may be the last to hold.
  Whole first_, next_;
  DeviceGraph update_;
};

}  // namespace fomoe::trainer
