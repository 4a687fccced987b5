// Tests runs whose sites exchange through a folder that all of them share (--store).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

/// tiny-training.toml with a store.
class Stored {
 public:
  explicit Stored(bool aggregates) {
    std::string text = content(kScenario);
    const std::string before = "[strategy]";
    text.replace(
        text.find(before), before.size(),
        std::string("[platform.store]\naggregates = ") + (aggregates ? "true" : "false") + "\n\n" + before);
    std::ofstream(at("S.toml")) << text;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::vector<std::string> command(const std::string& program, const std::string& verb,
                                                 const std::string& method,
                                                 std::vector<std::string> more) const {
    // Sites that average moments also agree on how many updates these have.
    if (method == "fomoe-adamw") {
      more.insert(more.end(),
                  {"--set", "strategy.outer_optimizer=local_adamw", "--set", "strategy.expert_overlap=2"});
      return command(program, verb, "fomoe", std::move(more));
    }
    more.insert(more.begin(), {program, verb, at("S.toml")});
    return with_settings(more,
                         {"strategy.method=" + method, "strategy.collective=store", "workload.tokens=65536",
                          "workload.global_batch_sequences=32", "strategy.local_steps=8"});
  }
  [[nodiscard]] std::vector<std::string> trained(const std::string& method, const std::string& name,
                                                 std::vector<std::string> more) const {
    more.insert(more.end(), {"--threads", "1", "--checkpoints", at(name), "--output", at(name + ".json")});
    return command(kTrain, "run", method, more);
  }
  [[nodiscard]] json report(const std::string& name) const {
    return json::parse(content(at(name + ".json")));
  }

 private:
  Folder folder_;
};

constexpr int kRoundsStored = 4;

}  // namespace

TEST_CASE("sites that share a folder train the bits of one process, and send the bytes of the simulation") {
  for (const bool aggregates : {true, false}) {
    const Stored stored(aggregates);
    for (const std::string method : {"fomoe", "fomoe-adamw", "sparse_loco", "fedavg"}) {
      if (method == "fedavg" && !aggregates) continue;  // its server combines
      CAPTURE(aggregates);
      CAPTURE(method);
      const Ended shared =
          run(stored.trained(method, "shared-" + method, {"--local", "--store", stored.at("x")}));
      CAPTURE(shared.said);
      REQUIRE(shared.status == 0);
      CHECK(fs::is_empty(stored.at("x")));
      REQUIRE(run(stored.trained(method, "whole-" + method, {"--in-turn"})).status == 0);
      CHECK(state_after(stored.at("shared-" + method), kRoundsStored, 4) ==
            state_after(stored.at("whole-" + method), kRoundsStored, 4));
      REQUIRE(run(stored.command(kPlan, "simulate", method,
                                 {"--output", stored.at("predicted.json"), "--set", "compute.step_time=1s"}))
                  .status == 0);
      const json measured = stored.report("shared-" + method), predicted = stored.report("predicted");
      CHECK(measured["store"]["requests"] == predicted["store"]["requests"]);
      for (const char* way : {"bytes_sent", "bytes_received"}) {
        CHECK(measured["store"][way].get<double>() > 0);
        CHECK(measured["store"][way] == predicted["store"][way]);
        for (int site = 0; site < 4; ++site)
          CHECK(measured["sites"][site][way] == predicted["sites"][site][way]);
      }
    }
  }
}

TEST_CASE("a run through a folder that is killed goes on from its checkpoint, and clears the folder") {
  const Stored stored(true);
  REQUIRE(run(stored.trained("fomoe", "whole", {"--in-turn"})).status == 0);
  {
    Process killed(stored.trained("fomoe", "killed", {"--local", "--store", stored.at("x")}),
                   stored.at("stderr"));
    REQUIRE(wait_for_file(stored.at("killed/round-00000002")));
    killed.kill();
    (void)killed.wait();
  }
  CHECK(!fs::is_empty(stored.at("x")));
  const Ended again =
      run(stored.trained("fomoe", "killed", {"--local", "--resume", "--store", stored.at("x")}));
  CAPTURE(again.said);
  REQUIRE(again.status == 0);
  CHECK(again.said.find("resumed after round ") != std::string::npos);
  CHECK(state_after(stored.at("killed"), kRoundsStored, 4) ==
        state_after(stored.at("whole"), kRoundsStored, 4));
  CHECK(fs::is_empty(stored.at("x")));
}

TEST_CASE("a missing, unneeded or unusable --store is refused before anything is trained") {
  const Stored stored(false);
  const auto said_of = [&](std::vector<std::string> more) {
    const Ended ended = run(stored.trained("diloco", "refused", std::move(more)));
    CHECK(ended.status == 2);
    CHECK(!fs::exists(stored.at("refused.json")));
    return ended.said;
  };
  CHECK(said_of({"--local"}).find("--store: got nothing, and strategy.collective = \"store\"") !=
        std::string::npos);
  CHECK(said_of({"--in-turn", "--store", stored.at("x")}).find("--store: got --in-turn too") !=
        std::string::npos);
  CHECK(said_of({"--local", "--store", stored.at("x"), "--set", "trainer.on_lost_site=drop"})
            .find("drop with an exchange through a store") != std::string::npos);
  std::ofstream(stored.at("file")) << "text";
  CHECK(said_of({"--local", "--store", stored.at("file")}).find("which cannot be made") != std::string::npos);
  const Ended unneeded = run(train(kShort, {"--local", "--store", stored.at("x")}));
  CHECK(unneeded.status == 2);
  CHECK(unneeded.said.find("whose sites do not exchange through a store") != std::string::npos);
}
