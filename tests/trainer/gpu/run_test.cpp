// Tests whole trainings on a GPU: Worker, Executor and checkpoints.
#include <cstdlib>

#include "tests/trainer/run/training_case.hpp"
#include "trainer/device/device_info.hpp"
#include "trainer/execution/checkpoints.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

TrainingOptions on_gpu(at::ScalarType dtype = at::kFloat) {
  TrainingOptions options = real_options();
  options.device = at::Device(at::kCUDA, 0);
  options.dtype = dtype;
  return options;
}

costmodel::Scenario random_experts() {
  costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
  scenario.strategy.placement = costmodel::PlacementKind::random;
  return scenario;
}

/// Checks that a run which is resumed after two rounds ends in the bits of one that was not interrupted.
void check_resumed(const costmodel::Scenario& scenario, at::ScalarType dtype) {
  const std::string directory = "/tmp/fomoe-gpu-checkpoints-" + std::to_string(::getpid());
  Training whole(scenario, on_gpu(dtype));
  whole.run(2);
  {
    Checkpoints checkpoints(directory, {});
    checkpoints.save(whole.executor, 2);
    checkpoints.wait();
  }
  whole.run();
  Training resumed(scenario, on_gpu(dtype));
  Checkpoints(directory, {}).load(resumed.executor, 2);
  resumed.next_round = 2;
  resumed.run();
  for (const costmodel::NodeId node : whole.executor.hosted())
    CHECK(at::equal(resumed.weights(node), whole.weights(node)));
  (void)!std::system(("rm -r " + directory).c_str());
}

}  // namespace

TEST_CASE("initial weights on a GPU have the bits of those on a CPU") {
  const costmodel::Scenario scenario = random_experts();
  Training cpu(scenario, real_options()), gpu(scenario, on_gpu()), bf16(scenario, on_gpu(at::kBFloat16));
  for (const costmodel::NodeId node : cpu.executor.hosted()) {
    CHECK(at::equal(gpu.weights(node).cpu(), cpu.weights(node)));
    CHECK(at::equal(bf16.weights(node).cpu(), cpu.weights(node)));
  }
}

TEST_CASE("a training on a GPU follows that on a CPU, with every content that methods send") {
  for (const char* method : {"ddp", "diloco", "local_adamw", "streaming_diloco", "fomoe"}) {
    CAPTURE(std::string(method));
    const costmodel::Scenario scenario =
        method == std::string("fomoe") ? random_experts() : training_scenario(method, 4);
    Training cpu(scenario, real_options()), gpu(scenario, on_gpu());
    double cpu_loss = 0, gpu_loss = 0;
    cpu.executor.on_step = [&](const StepRecord& step) { cpu_loss = step.loss.item<double>(); };
    gpu.executor.on_step = [&](const StepRecord& step) { gpu_loss = step.loss.item<double>(); };
    cpu.run();
    gpu.run();
    cpu.executor.finish();
    gpu.executor.finish();
    // 12 steps in fp32; sums have another order on a GPU, and Adam amplifies differences of small gradients.
    CHECK(gpu_loss == doctest::Approx(cpu_loss).epsilon(0.01));
    for (const costmodel::NodeId node : cpu.executor.hosted()) {
      const at::Tensor expected = cpu.weights(node);
      CHECK(((gpu.weights(node).cpu() - expected).norm() / expected.norm()).item<double>() < 0.02);
      CHECK(gpu.transport.traffic(node).total_sent() == cpu.transport.traffic(node).total_sent());
    }
  }
}

TEST_CASE(
    "a run that is resumed from a checkpoint on a GPU ends in the bits of one that was not interrupted") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) check_resumed(random_experts(), dtype);
}

TEST_CASE("payloads in int8, int4 and top-k train on a GPU as on a CPU, all sites alike") {
  for (const costmodel::WireFormat& wire :
       {costmodel::plain_format(costmodel::ElementType::int8),
        costmodel::plain_format(costmodel::ElementType::int4),
        costmodel::top_k_format(costmodel::ElementType::fp32, 0.25, 12)}) {
    CAPTURE(wire.bytes_per_element());
    costmodel::Scenario scenario = training_scenario(wire.sparse() ? "sparse_loco" : "diloco", 2);
    scenario.strategy.wire = wire;
    Training cpu(scenario, real_options()), gpu(scenario, on_gpu());
    const at::Tensor start = cpu.weights(0).clone();
    cpu.run();
    gpu.run();
    for (const costmodel::NodeId node : cpu.executor.hosted())
      CHECK(gpu.transport.traffic(node).total_sent() == cpu.transport.traffic(node).total_sent());
    // A code that is rounded the other way differs by 1/7 of the largest value of its block with int4.
    const at::Tensor moved = cpu.weights(0) - start;
    CHECK(((gpu.weights(0).cpu() - cpu.weights(0)).norm() / moved.norm()).item<double>() < 0.2);
    if (!wire.sparse()) CHECK(at::equal(gpu.weights(0), gpu.weights(1)));
  }
}

TEST_CASE("layers that a GPU computes again give the training that keeps their activations") {
  costmodel::Scenario scenario = training_scenario("diloco", 2);
  TrainingOptions options = on_gpu();
  options.launches = Launches::by_host;
  Training keeps(scenario, options);
  scenario.gpus.activation_checkpointing = true;
  Training again(scenario, options);
  keeps.run();
  again.run();
  CHECK(((again.weights(0) - keeps.weights(0)).norm() / keeps.weights(0).norm()).item<double>() < 1e-3);
}

// Sequences so long that the backward pass of attention adds with atomic operations unless it is told not to.
TEST_CASE("with deterministic algorithms, long sequences too resume on a GPU to the bits of a whole run") {
  use_deterministic_algorithms(true);
  costmodel::Scenario scenario = random_experts();
  scenario.model.sequence_length = 2048;
  scenario.workload.tokens = 12 * 8 * scenario.model.sequence_length;
  check_resumed(scenario, at::kBFloat16);
  use_deterministic_algorithms(false);
}

// The steps are so long that the host queues a recorded one in a small part of its time.
TEST_CASE("a step's time on a GPU is that of the device, which the host runs ahead of") {
  costmodel::Scenario scenario = training_scenario("diloco", 2);
  scenario.model = *costmodel::find_preset("small");
  scenario.workload.tokens = 12 * 8 * scenario.model.sequence_length;
  Training training(scenario, on_gpu(at::kBFloat16));
  std::vector<Stopwatch> steps;
  training.executor.on_step = [&](const StepRecord& step) { steps.push_back(step.time); };
  training.run();
  double sum_s = 0, computed_s = 0;
  for (const Stopwatch& step : steps) sum_s += step.seconds();
  for (const costmodel::Interval& interval : training.executor.intervals()) {
    if (interval.activity == costmodel::Activity::compute) computed_s += interval.end_s - interval.start_s;
  }
  // The rest are outer steps. The time to queue recorded steps would be some per cent.
  CHECK(sum_s > 0.5 * computed_s);
  CHECK(sum_s < computed_s);
}
