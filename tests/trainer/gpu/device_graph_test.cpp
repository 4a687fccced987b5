// Tests recorded steps: they train as steps launched kernel by kernel do, and neither wait nor allocate
// memory.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cmath>

#include "tests/trainer/support.hpp"
#include "trainer/model/grouped_product.hpp"
#include "trainer/step/recorded_step.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

constexpr std::int64_t kMicroBatches = 2, kSequences = 2, kLength = 64;

costmodel::ModelShape shape_for_graphs() {
  costmodel::ModelShape shape = *costmodel::find_preset("small");
  shape.layers = 2;
  shape.vocabulary = 1000;
  shape.sequence_length = kLength;
  return shape;
}

bool can_record() {
  return grouped_on_device(at::Device(at::kCUDA, 0), at::kBFloat16,
                           {shape_for_graphs().d_model, shape_for_graphs().d_expert});
}

ExpertChoice experts(bool skip_token, const std::vector<int>& held) {
  ExpertChoice choice;
  choice.skip_token = skip_token;
  choice.local.assign(2, held);
  return choice;
}

/// The training of one site, by micro-batches.
struct GraphTraining {
  GraphTraining(Launches launches, bool skip_token)
      : model(shape_for_graphs(),
              {experts(skip_token, {0, 3, 5}), at::Device(at::kCUDA, 0), at::kBFloat16, 42}),
        optimizer(model, {}),
        step(model, optimizer, {/*balance_weight=*/0.01, /*clip_norm=*/1, launches}) {}

  /// Trains one step and returns the loss. `text` is int64 [sequences, length + 1], in host memory.
  at::Tensor train(const at::Tensor& text) {
    at::Tensor loss;
    routing = {};
    routing.wants_balance = true;
    for (std::int64_t i = 0; i < kMicroBatches; ++i) {
      const at::Tensor part = text.narrow(0, i * kSequences, kSequences);
      const Batch batch{part.narrow(1, 0, kLength).contiguous(), part.narrow(1, 1, kLength).contiguous()};
      const at::Tensor share = step.micro_batch(batch, routing, 1.0 / kMicroBatches);
      loss = loss.defined() ? loss + share : share.clone();
    }
    step.update();
    return loss;
  }

  Model model;
  AdamW optimizer;
  Routing routing;
  RecordedStep step;
};

at::Tensor some_text() { return at::randint(1000, {kMicroBatches * kSequences, kLength + 1}, at::kLong); }

/// While the object exists, waiting for the device is an error.
class NoWaiting {
 public:
  NoWaiting() { c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR); }
  ~NoWaiting() { c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED); }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;
};

std::int64_t allocations() {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocation[0].allocated;
}

}  // namespace

TEST_CASE("recorded steps train as steps that are launched kernel by kernel") {
  if (!can_record()) return;  // otherwise grouped products wait for the host on this GPU
  for (const bool skip_token : {false, true}) {
    CAPTURE(skip_token);
    GraphTraining recorded(Launches::by_graph, skip_token), launched(Launches::by_host, skip_token);
    at::manual_seed(7);
    std::vector<at::Tensor> start;
    for (const Parameter& parameter : launched.model.parameters())
      start.push_back(parameter.master.detach().clone());
    for (int step = 0; step < 20; ++step) {
      CAPTURE(step);
      const at::Tensor text = some_text();
      std::vector<double> losses;
      for (GraphTraining* training : {&recorded, &launched}) {
        training->optimizer.set_learning_rate(1e-3 * std::min(1.0, (step + 1) / 8.0));
        if (step == 10) training->model.relabel_experts(experts(skip_token, {1, 3, 6}));
        if (step == 15) {  // the recorded update takes the counts of each expert
          training->optimizer.set_experts(0, {{15, -1}, {0, 0}, {15, -1}});
          training->optimizer.set_experts(1, {{15, -1}, {15, -1}, {15, -1}});
        }
        losses.push_back(training->train(text).item<double>());
        REQUIRE(training->routing.counts.size() == 2);
        // Counts exactly the slots of this step.
        const std::int64_t slots = text.size(0) * kLength *
                                   std::min<std::int64_t>(training->model.shape().active_experts,
                                                          training->routing.counts[0].numel());
        CHECK(training->routing.counts[0].sum().item<std::int64_t>() == slots);
        if (step == 16) training->optimizer.set_experts(0, {{17, -1}, {17, -1}, {17, -1}});
      }
      // The kernels and their order are the same, but attention's backward pass adds in the order in which
      // its blocks run.
      CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(5e-3));
      // The two results are much closer to each other than to the start. They are not closer still, because
      // AdamW makes full steps where the gradients are only noise.
      double apart = 0, moved = 0;
      for (std::size_t i = 0; i < start.size(); ++i) {
        const at::Tensor theirs = launched.model.parameters()[i].master.detach();
        apart += (recorded.model.parameters()[i].master.detach() - theirs).square().sum().item<double>();
        moved += (theirs - start[i]).square().sum().item<double>();
      }
      CHECK(std::sqrt(apart) < 0.3 * std::sqrt(moved));
    }
    CHECK(recorded.optimizer.steps()[0].item<double>() == 20);
    CHECK(recorded.optimizer.steps()[parameter_index(0, Role::up)].item<double>() ==
          launched.optimizer.steps()[parameter_index(0, Role::up)].item<double>());
  }
}

TEST_CASE("a recorded step waits for nothing and allocates nothing on the device") {
  if (!can_record()) return;
  GraphTraining training(Launches::by_graph, /*skip_token=*/true);
  const at::Tensor text = some_text();
  for (int step = 0; step <= DeviceGraph::kPlainCalls; ++step) training.train(text);
  const auto whole_step = [&] {  // without the sum of the losses, which the caller computes
    Routing routing;
    routing.wants_balance = true;
    for (std::int64_t i = 0; i < kMicroBatches; ++i) {
      const at::Tensor part = text.narrow(0, i * kSequences, kSequences);
      training.step.micro_batch(
          {part.narrow(1, 0, kLength).contiguous(), part.narrow(1, 1, kLength).contiguous()}, routing,
          1.0 / kMicroBatches);
    }
    training.step.update();
  };
  const NoWaiting guard;
  const std::int64_t before = allocations();
  for (int step = 0; step < 3; ++step) whole_step();
  CHECK(allocations() == before);
}

TEST_CASE("gradients of a recorded step are those of one that is launched by the host") {
  if (!can_record()) return;
  GraphTraining recorded(Launches::by_graph, true), launched(Launches::by_host, true);
  at::manual_seed(8);
  for (int step = 0; step < DeviceGraph::kPlainCalls + 2; ++step) {
    const at::Tensor text = some_text();
    // With a learning rate of 0, both keep the same model.
    for (GraphTraining* training : {&recorded, &launched}) {
      training->optimizer.set_learning_rate(0);
      Routing routing;
      for (std::int64_t i = 0; i < kMicroBatches; ++i) {
        const at::Tensor part = text.narrow(0, i * kSequences, kSequences);
        training->step.micro_batch(
            {part.narrow(1, 0, kLength).contiguous(), part.narrow(1, 1, kLength).contiguous()}, routing,
            1.0 / kMicroBatches);
      }
    }
    for (std::size_t i = 0; i < recorded.model.parameters().size(); ++i) {
      CAPTURE(recorded.model.parameters()[i].spec.name());
      const at::Tensor got = recorded.model.parameters()[i].compute.grad(),
                       expected = launched.model.parameters()[i].compute.grad();
      REQUIRE(got.defined());
      CHECK(largest_difference(got, expected) <= 0.02 * expected.abs().max().item<double>());
    }
    for (GraphTraining* training : {&recorded, &launched}) training->step.update();
  }
}
