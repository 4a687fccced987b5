// Tests that the bf16 copies, with which models compute, follow the fp32 masters that methods average.
#include "tests/trainer/run/training_case.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE("after every round of every method, the bf16 copies are those of the masters") {
  for (const char* method :
       {"ddp", "local_sgd", "diloco", "local_adamw", "streaming_diloco", "fedavg", "fomoe"}) {
    CAPTURE(std::string(method));
    const bool fomoe = method == std::string("fomoe");
    costmodel::Scenario scenario = training_scenario(method, 4, fomoe ? 2 : 0);
    if (fomoe) scenario.strategy.placement = costmodel::PlacementKind::random;
    TrainingOptions options = real_options();
    options.dtype = at::kBFloat16;
    Training training(scenario, options);
    for (std::int64_t round = 0; round < training.plan.rounds; ++round) {
      training.run(1);
      for (const costmodel::NodeId node : training.executor.hosted()) {
        for (const Parameter& parameter : training.executor.worker(node).model().parameters()) {
          CAPTURE(parameter.spec.name());
          CHECK(at::equal(parameter.compute.detach(), parameter.master.detach().to(at::kBFloat16)));
        }
      }
    }
    training.executor.finish();
  }
}
