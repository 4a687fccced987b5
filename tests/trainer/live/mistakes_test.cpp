// Tests what fomoe-train says of mistakes in a scenario and on the command line.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

TEST_CASE("mistakes: one line that says what was expected, status 2, and no file left behind") {
  const Folder folder;
  const auto said = [&](const std::vector<std::string>& settings, const std::vector<std::string>& more) {
    const Ended ended = run(train(settings, more));
    CHECK(ended.status == 2);
    CHECK(std::count(ended.said.begin(), ended.said.end(), '\n') == 1);
    return ended.said;
  };
  CHECK(said({"strategy.method=gossip"}, {"--in-turn"}).find("a method that fomoe-train executes") !=
        std::string::npos);
  CHECK(said({"strategy.method=diloco", "strategy.collective=recursive", "platform.sites=3"}, {"--in-turn"})
            .find("because recursive halving requires a power of two") != std::string::npos);
  CHECK(said({"strategy.method=diloco", "strategy.collective=hierarchical", "strategy.regions=2",
              "strategy.bucket_bytes=1MB"},
             {"--in-turn"})
            .find("strategy.bucket_bytes: got 1000000B; expected one call per collective") !=
        std::string::npos);
  CHECK(said({"trainer.device=cpu", "trainer.cuda_graph=on"}, {"--in-turn"})
            .find("trainer.cuda_graph: got on, but the device is not a GPU") != std::string::npos);
  CHECK(said({"strategy.method=fedavg", "strategy.collective=chain"}, {"--in-turn"})
            .find("strategy.collective: got \"chain\" with fomoe-train") != std::string::npos);
  CHECK(said({"strategy.method=diloco", "strategy.quorum=2"}, {"--in-turn"})
            .find("strategy.quorum: got 2; expected no such key with fomoe-train") != std::string::npos);
  CHECK(said({"strategy.method=diloco", "model.experts=0", "model.d_ffn=64", "trainer.router_temperature=2"},
             {"--in-turn"})
            .find("trainer.router_temperature: got this key for a model without experts") !=
        std::string::npos);
  CHECK(said({"strategy.method=local_adamw", "trainer.inner_moments=restart"}, {"--in-turn"})
            .find("trainer.inner_moments: got \"restart\"; expected \"keep\" with a method that averages") !=
        std::string::npos);
  CHECK(said({"strategy.method=ddp", "trainer.inner_moments=restart"}, {"--in-turn"})
            .find("expected \"keep\" with a method that synchronises after each step") != std::string::npos);
  CHECK(said({"failures.checkpoint_cost=1s", "failures.outages=[\"site-1 at 1s for 1s\"]"}, {"--in-turn"})
            .find("failures.outages: got outages; expected no such key with fomoe-train") !=
        std::string::npos);
  CHECK(said({"compute.gpus_per_site=8", "compute.tensor_parallel=2", "compute.intra_site_bandwidth=100Gbps"},
             {"--local"})
            .find("compute.gpus_per_site: got 8 GPUs that divide the model") != std::string::npos);
  CHECK(said({"compute.gpus_per_site=3", "workload.global_batch_sequences=8",
              "compute.intra_site_bandwidth=100Gbps"},
             {"--local"})
            .find("expected at least one sequence for each") != std::string::npos);
  CHECK(said({"trainer.learning_rate=-1"}, {"--in-turn"}).find("trainer.learning_rate: got -1; expected") !=
        std::string::npos);
  CHECK(said({"trainer.lerning_rate=1"}, {"--in-turn"}).find("did you mean learning_rate?") !=
        std::string::npos);
  CHECK(said({}, {"--seeds", "3"}).find("since one process must train all sites") != std::string::npos);
  CHECK(said({}, {"--seeds", "1", "--in-turn"}).find("--seeds: got 1; expected") != std::string::npos);
  CHECK(said({"trainer.validation_sequences=0"}, {"--seeds", "2", "--in-turn"}).find("got no validation") !=
        std::string::npos);
  CHECK(said({}, {}).find("expected --local, --in-turn, or the environment variables RANK") !=
        std::string::npos);
  CHECK(said({}, {"--local", "3"}).find("one process for each GPU of the scenario's sites, 4") !=
        std::string::npos);
  CHECK(said({}, {"--in-turn", "--resume"}).find("--checkpoints") != std::string::npos);
  CHECK(
      said({"trainer.data=nothing.bin"}, {"--in-turn", "--output", folder / "r.json"}).find("nothing.bin") !=
      std::string::npos);
  CHECK(!fs::exists(folder / "r.json"));
  CHECK(said({"trainer.schedule=wsd", "trainer.decay_steps=1000000", "trainer.warmup_steps=2"}, {"--in-turn"})
            .find("trainer.warmup_steps: got 2 steps of warm-up before the 1000000 of the decay") !=
        std::string::npos);
  std::ofstream(folder / "odd.bin") << "abc";
  CHECK(said({"trainer.data=" + (folder / "odd.bin")}, {"--in-turn"}).find("ids of 2 bytes each") !=
        std::string::npos);
}
