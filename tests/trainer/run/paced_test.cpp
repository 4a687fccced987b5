// Tests paced runs: compute takes the time of the scenario and changes nothing, and transfers are real.
#include "platforms/support/input_error.hpp"
#include "tests/trainer/run/training_case.hpp"

namespace costmodel = fomoe::costmodel;
using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

constexpr double kStep_s = 0.004;

costmodel::Scenario paced_scenario(const std::string& method, int sites, int overlap = 0) {
  costmodel::Scenario scenario = training_scenario(method, sites, overlap);
  scenario.compute = costmodel::GivenStepTime{kStep_s};
  return scenario;
}

TrainingOptions paced() {
  TrainingOptions options = real_options();
  options.paced = true;
  return options;
}

struct PacedCase {
  const char* method;
  int sites, overlap, fragments = 1;
};
constexpr PacedCase kPacedCases[] = {{"ddp", 2, 0},
                                     {"ddp", 2, 0, 2},
                                     {"diloco", 2, 0},
                                     {"local_adamw", 2, 0},
                                     {"streaming_diloco", 2, 0, 2},
                                     {"fomoe", 4, 2},
                                     {"sparse_loco", 2, 0}};

costmodel::Scenario scenario_of(const PacedCase& one) {
  costmodel::Scenario scenario = paced_scenario(one.method, one.sites, one.overlap);
  if (one.overlap > 0) scenario.strategy.placement = costmodel::PlacementKind::random;
  scenario.strategy.fragments = one.fragments;
  if (std::string(one.method) == "sparse_loco") {
    scenario.strategy.wire.kept_share = 0.1;
    scenario.strategy.wire.index_bits = 32;
  }
  return scenario;
}

/// Hosts the first of several nodes and moves no messages.
class LonelyTransport : public Transport {
 public:
  explicit LonelyTransport(const std::vector<costmodel::Node>& nodes) : Transport(nodes, {0}) {}
  bool used = false;

 protected:
  void post(const std::vector<Message*>&, int) override { used = true; }
  void move(const std::vector<Message*>&, int) override { used = true; }
};

double compute_s(const Executor& executor, costmodel::NodeId node) {
  double sum = 0;
  for (const costmodel::Interval& interval : executor.intervals()) {
    if (interval.node == node && interval.activity == costmodel::Activity::compute)
      sum += interval.end_s - interval.start_s;
  }
  return sum;
}

}  // namespace

TEST_CASE("a paced node computes for as long as the scenario says, and a slow site longer") {
  costmodel::Scenario scenario = paced_scenario("diloco", 2);
  scenario.platform.sites[1].compute_factor = 3;
  Training training(scenario, paced());
  training.run();
  // 3 rounds of 4 steps. A sleep may end late but never early. It can be late once per operation, and a round
  // has two operations.
  for (const costmodel::NodeId node : {0, 1}) {
    const double expected_s = 12 * kStep_s * (node == 1 ? 3 : 1);
    CHECK(compute_s(training.executor, node) >= expected_s);
    CHECK(compute_s(training.executor, node) < expected_s + 6 * 0.020);
    CHECK(training.executor.steps(node) == 12);
  }
}

TEST_CASE("a paced run sends the bytes of a real one, by class and receiver, and trains nothing") {
  for (const PacedCase& one : kPacedCases) {
    CAPTURE(std::string(one.method));
    const costmodel::Scenario scenario = scenario_of(one);
    Training real(scenario, real_options()), slept(scenario, paced());
    const at::Tensor before = slept.weights(0).clone();
    real.run();
    slept.run();
    for (int node = 0; node < one.sites; ++node) {
      CHECK(slept.transport.traffic(node).sent == real.transport.traffic(node).sent);
      CHECK(slept.transport.traffic(node).received == real.transport.traffic(node).received);
      CHECK(slept.transport.traffic(node).sent_to == real.transport.traffic(node).sent_to);
      CHECK(real.transport.traffic(node).total_sent() > 0);
    }
    CHECK(!at::equal(real.weights(0), before));
    // With random placement experts move between sites; tensors that all sites hold keep their values.
    if (one.overlap == 0) CHECK(at::allclose(slept.weights(0), before, 1e-6, 1e-7));
    CHECK(at::isfinite(slept.weights(0)).all().item<bool>());
  }
}

namespace {

// Shapes that the trainer cannot compute: gated experts with a shared one after a dense layer, as in
// DeepSeek's models, and a model of which only the numbers of parameters are known.
costmodel::ModelShape foreign_shape() {
  costmodel::ModelShape shape = tiny_shape();
  shape.architecture = "deepseek_v3";
  shape.layers = 3;
  shape.gated = true;
  shape.dense_layers = 1;
  shape.d_ffn = 24;
  shape.shared_experts = 1;
  shape.tied_embeddings = false;
  return shape;
}

costmodel::ModelShape opaque_shape() {
  costmodel::ModelShape shape = tiny_shape();
  shape.architecture = "opaque";
  shape.opaque = {.dense_parameters = 1001, .expert_parameters = 8000};
  return shape;
}

}  // namespace

TEST_CASE("a paced run of a model that the trainer does not have sends the bytes of its plan") {
  for (const costmodel::ModelShape& shape : {foreign_shape(), opaque_shape()}) {
    CAPTURE(shape.architecture);
    for (const PacedCase& one : kPacedCases) {
      CAPTURE(std::string(one.method));
      costmodel::Scenario scenario = scenario_of(one);
      // Fragments, experts and backward passes need layers.
      if (shape.opaque && (one.fragments > 1 || one.overlap > 0)) continue;
      scenario.model = shape;
      Training slept(scenario, paced());
      slept.executor.rehearse();
      slept.run();
      const std::vector<Traffic> planned = planned_traffic(slept.plan);
      for (std::size_t node = 0; node < planned.size(); ++node) {
        // sparse_loco's positions depend on the values, and planned_traffic() counts whole chunks
        if (std::string(one.method) == "sparse_loco") {
          CHECK(slept.transport.traffic(static_cast<int>(node)).total_sent() > 0);
          continue;
        }
        check_traffic(slept.transport.traffic(static_cast<int>(node)), planned[node]);
      }
      CHECK_THROWS_AS(Training(scenario, real_options()), fomoe::InputError);
    }
  }
}

TEST_CASE("a rehearsal needs nobody, sends nothing and waits for nothing") {
  for (const PacedCase& one : kPacedCases) {
    CAPTURE(std::string(one.method));
    const costmodel::Scenario scenario = scenario_of(one);
    Training source(scenario, paced());  // provides the plan and the batches
    LonelyTransport transport(source.plan.nodes);
    Executor executor(scenario, source.plan, transport, source.batches, paced());
    const std::size_t noted = executor.intervals().size();
    const PoisonedMemory poisoned;
    executor.rehearse();
    CHECK(!transport.used);
    CHECK(transport.traffic(0).total_sent() == 0);
    CHECK(executor.intervals().size() == noted);
    for (const Parameter& parameter : executor.worker(0).model().parameters())
      CHECK(at::isfinite(parameter.master).all().item<bool>());
  }
}

TEST_CASE("after a rehearsal a run sends what it would have without") {
  for (const PacedCase& one : kPacedCases) {
    CAPTURE(std::string(one.method));
    const costmodel::Scenario scenario = scenario_of(one);
    Training plain(scenario, paced()), rehearsed(scenario, paced());
    plain.run();
    rehearsed.executor.rehearse();
    rehearsed.run();
    for (int node = 0; node < one.sites; ++node) {
      CHECK(rehearsed.transport.traffic(node).sent == plain.transport.traffic(node).sent);
      CHECK(rehearsed.transport.traffic(node).received == plain.transport.traffic(node).received);
    }
  }
}
