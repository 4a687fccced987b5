// Steps that were recorded once: the same training as kernel by kernel, without a wait or an allocation.
#include "trainer/device_graph.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "tests/trainer/support.hpp"
#include "trainer/adamw.hpp"
#include "trainer/grouped_product.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

costmodel::ModelShape shape_for_graphs() {
  costmodel::ModelShape shape = *costmodel::find_preset("small");
  shape.layers = 2;
  shape.vocabulary = 1000;
  shape.sequence_length = 64;
  return shape;
}

bool can_record() {
  return grouped_on_device(at::Device(at::kCUDA, 0), at::kBFloat16,
                           {shape_for_graphs().d_model, shape_for_graphs().d_expert});
}

/// A model that trains on what is in `text`, forward, backward and optimiser each a piece of work.
struct Training {
  explicit Training(std::shared_ptr<GraphPool> pool, bool skip_token)
      : model(shape_for_graphs(), options(skip_token)),
        optimizer(model, {}),
        text(at::zeros({4, 65}, at::TensorOptions().dtype(at::kLong).device(at::kCUDA))),
        forward(pool),
        backward(pool),
        update(pool) {}

  static ModelOptions options(bool skip_token) {
    ModelOptions options;
    options.device = at::Device(at::kCUDA, 0);
    options.dtype = at::kBFloat16;
    options.experts.skip_token = skip_token;
    options.experts.local.assign(2, {0, 3, 5});
    return options;
  }
  void step() {
    forward.run([this] {
      loss = model.loss(text.narrow(1, 0, 64).contiguous(), text.narrow(1, 1, 64).contiguous());
    });
    backward.run([this] { loss.backward(); });
    optimizer.prepare();
    update.run([this] { optimizer.update(); });
    optimizer.count();
  }

  Model model;
  AdamW optimizer;
  at::Tensor text, loss;
  DeviceGraph forward, backward, update;
};

/// Waiting for the device is an error while it lives.
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

TEST_CASE("ten recorded steps train as ten launched kernel by kernel") {
  if (!can_record()) return;  // grouped products wait for the host on this GPU
  for (const bool skip_token : {false, true}) {
    CAPTURE(skip_token);
    const auto pool = std::make_shared<GraphPool>(at::Device(at::kCUDA, 0));
    Training recorded(pool, skip_token), launched(nullptr, skip_token);
    at::manual_seed(7);
    for (int step = 0; step < 10; ++step) {
      CAPTURE(step);
      const at::Tensor text = at::randint(1000, {4, 65}, at::kLong);
      for (Training* training : {&recorded, &launched}) {
        training->text.copy_(text);
        training->optimizer.set_learning_rate(1e-3 * (step + 1));
        training->step();
      }
      // The same kernels in the same order; attention's backward adds in the order in which blocks come.
      CHECK(recorded.loss.item<double>() == doctest::Approx(launched.loss.item<double>()).epsilon(2e-3));
    }
    CHECK(recorded.loss.item<double>() < 7);  // ln 1000 = 6.9: it has learned, if only the marginal
    CHECK(recorded.optimizer.steps()[0].item<double>() == 10);
  }
}

TEST_CASE("a recorded step waits for nothing and allocates nothing") {
  if (!can_record()) return;
  Training training(std::make_shared<GraphPool>(at::Device(at::kCUDA, 0)), /*skip_token=*/true);
  for (int step = 0; step <= DeviceGraph::kPlainCalls; ++step) training.step();
  const NoWaiting guard;
  const std::int64_t before = allocations();
  for (int step = 0; step < 3; ++step) training.step();
  CHECK(allocations() == before);
}
