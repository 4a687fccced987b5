// Tests what happens to losses and gradients that are not finite.
#include <limits>

#include "tests/trainer/run/training_case.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A weight that every token's logits depend on.
at::Tensor central_weight(Training& training, costmodel::NodeId node) {
  return training.executor.worker(node).model().parameters().back().master.detach()[0];
}

std::string said_by(Training& training) {
  try {
    training.run();
  } catch (const Diverged& diverged) {
    return diverged.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a loss that is not finite stops the run before anything is sent, and is named") {
  for (const char* method : {"ddp", "diloco", "fomoe", "local_adamw"}) {
    CAPTURE(std::string(method));
    Training training(training_scenario(method, 2), real_options());
    training.run(1);
    central_weight(training, 1).fill_(kNan);
    const at::Tensor other = training.weights(0).clone();
    const std::int64_t sent = training.transport.traffic(1).total_sent();
    const std::string said = said_by(training);
    CAPTURE(said);
    CHECK(said.find("diverged at site-1: the loss of step " +
                    std::string(method == std::string("ddp") ? "1" : "4") + " is not finite") !=
          std::string::npos);
    CHECK(training.transport.traffic(1).total_sent() == sent);
    CHECK(!at::isnan(training.weights(0)).any().item<bool>());
  }
}

TEST_CASE("a value that is not finite is not sent, even if no loss shows it") {
  Training training(training_scenario("diloco", 2), real_options());
  training.tensor(1, "layers.0.qkv.anchor")[0][0] = kNan;  // only the pseudo-gradient reads it
  CHECK(said_by(training).find("diverged at site-1: a value that it was about to send is not finite") !=
        std::string::npos);
}

TEST_CASE("skip_step leaves out steps whose gradients are not finite, at all sites of ddp alike") {
  for (const char* method : {"ddp", "diloco"}) {
    CAPTURE(std::string(method));
    TrainingOptions options = real_options();
    options.skip_nonfinite = true;
    Training training(training_scenario(method, 2), options);
    std::map<costmodel::NodeId, std::vector<bool>> skipped;
    float kept = 0;
    training.executor.on_step = [&](const StepRecord& record) {
      skipped[record.node].push_back(record.skipped);
      // The weight is NaN in the second step only.
      if (record.node != 1) return;
      at::Tensor weight = central_weight(training, 1);
      if (record.step == 0) {
        kept = weight.item<float>();
        weight.fill_(kNan);
      } else if (record.step == 1) {
        weight.fill_(kept);
      }
    };
    training.run();
    const bool ddp = method == std::string("ddp");
    REQUIRE(skipped[0].size() == 12);
    for (std::size_t step = 0; step < 12; ++step) {
      CHECK(skipped[1][step] == (step == 1));
      CHECK(skipped[0][step] == (ddp && step == 1));
    }
    CHECK(training.executor.worker(1).inner().steps().front().item<float>() == 11);
    CHECK(!at::isnan(training.weights(1)).any().item<bool>());
    if (ddp) CHECK(at::equal(training.weights(0), training.weights(1)));
  }
}
