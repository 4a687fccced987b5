// Checks that the trainer sends what the plan says: its counts are compared with the simulator's, site by
// site.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("each site sends and receives the very bytes that the simulator says") {
  const std::vector<std::vector<std::string>> cases = {
      {"method=ddp", "collective=direct"},
      {"method=diloco", "collective=ring"},
      {"method=local_adamw", "collective=direct"},
      {"method=fomoe", "collective=ring"},
      {"method=fomoe", "collective=direct"},
      {"method=fomoe", "collective=direct", "outer_state_on_migration=transfer"},
      {"method=fomoe", "collective=ring", "outer_optimizer=adam", "outer_state_on_migration=transfer"},
      {"method=fedavg", "collective=ring"},
      {"method=streaming_diloco", "collective=ring", "fragments=2"},
      {"method=diloco", "collective=recursive"},
      {"method=fomoe", "collective=recursive", "placement=fixed"},
      {"method=local_adamw", "collective=hierarchical", "regions=2"},
      {"method=fomoe", "collective=hierarchical", "regions=2", "expert_overlap=4"},
      // Buckets that are sent during the backward pass.
      {"method=ddp", "collective=ring", "fragments=2"},
      {"method=ddp", "collective=recursive", "fragments=2", "bucket_bytes=10001B"},
      {"method=ddp", "collective=hierarchical", "regions=2", "fragments=2", "payload_dtype=int8"},
      // Pieces: each piece is divided into chunks, and has its own int8 scales.
      {"method=diloco", "collective=ring", "bucket_bytes=10001B"},
      {"method=fomoe", "collective=direct", "granularity=tensor"},
      {"method=fomoe", "collective=direct", "granularity=tensor", "bucket_bytes=1500B", "payload_dtype=int8"},
  };
  for (const std::vector<std::string>& one : cases) {
    std::string name;
    std::vector<std::string> settings = {"workload.tokens=32768", "strategy.local_steps=4",
                                         "strategy.payload_dtype=bf16"};
    for (const std::string& setting : one) {
      settings.push_back("strategy." + setting);
      name += setting + ' ';
    }
    CAPTURE(name);
    const Folder folder;
    REQUIRE(run(train(settings, {"--in-turn", "--output", folder / "measured.json"})).status == 0);
    std::vector<std::string> simulate = with_settings(
        {kPlan, "simulate", kScenario, "--rounds", "all", "--output", folder / "simulated.json"}, settings);
    REQUIRE(run(simulate).status == 0);
    const json measured = json::parse(content(folder / "measured.json")),
               simulated = json::parse(content(folder / "simulated.json"));
    REQUIRE(measured["sites"].size() == 4);
    for (std::size_t site = 0; site < 4; ++site) {
      CHECK(measured["sites"][site]["bytes_sent"] == simulated["sites"][site]["bytes_sent"]);
      CHECK(measured["sites"][site]["bytes_received"] == simulated["sites"][site]["bytes_received"]);
      CHECK(measured["sites"][site]["memory_bytes"].get<double>() > 1e6);
    }
    for (const char* key : {"bytes_per_token", "bytes_sent_per_site_per_round", "optimizer_steps", "tokens"})
      CHECK(measured[key] == simulated[key]);
    CHECK(measured["round"]["count"] == simulated["round"]["count"]);
  }
}

TEST_CASE(
    "processes and one in turn end in the same bits: pieces, sums of all kinds, outer state that migrates") {
  for (const auto& extra : std::vector<std::vector<std::string>>{
           {"strategy.granularity=tensor", "strategy.bucket_bytes=2000B"},
           {"strategy.collective=recursive", "strategy.payload_dtype=bf16", "strategy.placement=fixed"},
           {"strategy.collective=hierarchical", "strategy.regions=2", "strategy.expert_overlap=4"},
           {"strategy.method=ddp", "strategy.fragments=2", "strategy.collective=recursive",
            "trainer.checkpoint_rounds=64"},
           {"strategy.outer_state_on_migration=transfer", "strategy.payload_dtype=bf16"}}) {
    CAPTURE(extra.front());
    const Folder folder;
    std::vector<std::string> settings = kShort;
    settings.insert(settings.end(), extra.begin(), extra.end());
    for (const char* how : {"local", "in-turn"}) {
      const Ended ended = run(train(settings, {std::string("--") + how, "--checkpoints", folder / how}));
      CAPTURE(ended.said);
      REQUIRE(ended.status == 0);
    }
    // ddp: 64 rounds of one step; others: 4 rounds of 16 steps
    const bool every_step = extra.front() == "strategy.method=ddp";
    for (int node = 0; node < 4; ++node) {
      const std::string file = std::string(every_step ? "/round-00000064" : "/round-00000004") + "/node-" +
                               std::to_string(node) + ".safetensors";
      REQUIRE(fs::exists(folder / "local" + file));
      CHECK(content(folder / "local" + file) == content(folder / "in-turn" + file));
    }
  }
}
