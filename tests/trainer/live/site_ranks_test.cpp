// Tests sites with several processes: they train as one process does, and send the same bytes to other sites.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

nlohmann::json report_of(const std::vector<std::string>& settings, const std::vector<std::string>& more,
                         const std::string& path) {
  std::vector<std::string> options = more;
  options.insert(options.end(), {"--output", path});
  const Ended ended = run(train(settings, options));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  return nlohmann::json::parse(content(path));
}

std::string state_folder(int round) {
  char name[32];
  std::snprintf(name, sizeof name, "round-%08d", round);
  return name;
}

}  // namespace

TEST_CASE("two processes a site train as one process does with two micro-batches, and send the same bytes") {
  const Folder folder;
  const std::vector<std::vector<std::string>> methods = {
      {"strategy.method=diloco", "strategy.payload_dtype=int8"},
      {"strategy.method=ddp"},
      {"strategy.method=fedavg"},
      {"strategy.method=local_adamw", "trainer.clip_norm=0.05"},
      {"strategy.method=fomoe", "strategy.expert_overlap=2", "strategy.placement=random",
       "strategy.reshuffle_rounds=1", "strategy.outer_optimizer=local_adamw"}};
  for (const std::vector<std::string>& method : methods) {
    CAPTURE(method.front());
    std::vector<std::string> settings = {"platform.sites=2", "workload.tokens=65536",
                                         "strategy.local_steps=4", "strategy.collective=direct"};
    settings.insert(settings.end(), method.begin(), method.end());
    std::vector<std::string> halves = settings, ranks = settings;
    halves.emplace_back("compute.micro_batch_sequences=16");
    ranks.insert(ranks.end(), {"compute.gpus_per_site=2", "compute.intra_site_bandwidth=100Gbps"});
    const auto one = report_of(halves, {"--in-turn"}, folder / "one.json");
    const auto two = report_of(ranks, {"--local", "4"}, folder / "two.json");
    CHECK(two["quality"]["perplexity"].get<double>() ==
          doctest::Approx(one["quality"]["perplexity"].get<double>()).epsilon(1e-4));
    CHECK(two["bytes_sent_per_site_per_round"] == one["bytes_sent_per_site_per_round"]);
    CHECK(two["optimizer_steps"] == one["optimizer_steps"]);
    for (std::size_t site = 0; site < 2; ++site) {
      for (const char* bytes : {"bytes_sent", "bytes_received"})
        CHECK(two["sites"][site][bytes] == one["sites"][site][bytes]);
    }
  }
}

TEST_CASE("parts of a site's batch may differ by a sequence") {
  const Folder folder;
  const std::vector<std::string> settings = {"platform.sites=3", "workload.tokens=8448",
                                             "workload.global_batch_sequences=33", "strategy.local_steps=2",
                                             "strategy.method=diloco",
                                             // This loss of a whole batch is not the mean over its parts.
                                             // Four steps: later, a token may choose another expert because
                                             // of rounding, in one process with micro-batches too.
                                             "trainer.balance_weight=1e-12"};
  std::vector<std::string> ranks = settings;  // 11 sequences of a site are 5 and 6
  ranks.insert(ranks.end(), {"compute.gpus_per_site=2", "compute.intra_site_bandwidth=100Gbps"});
  const auto one = report_of(settings, {"--in-turn"}, folder / "one.json");
  const auto two = report_of(ranks, {"--local"}, folder / "two.json");
  CHECK(two["quality"]["perplexity"].get<double>() ==
        doctest::Approx(one["quality"]["perplexity"].get<double>()).epsilon(1e-6));
}

TEST_CASE("a process of a site that is killed is named, and the run goes on from its checkpoint, bit-equal") {
  const Folder folder;
  const std::vector<std::string> settings = {"platform.sites=2", "workload.tokens=262144",
                                             "strategy.local_steps=4", "compute.gpus_per_site=2",
                                             "compute.intra_site_bandwidth=100Gbps"};
  REQUIRE(run(train(settings, {"--local", "--checkpoints", folder / "whole"})).status == 0);
  Process process(train(settings, {"--local", "--checkpoints", folder / "killed"}), folder / "log");
  REQUIRE(wait_for_file(folder / "killed/round-00000003/node-1.safetensors"));
  ::kill(process.children().back(), SIGKILL);  // the second process of the second site
  const int status = process.wait();
  CAPTURE(content(folder / "log"));
  CHECK(status == 128 + SIGKILL);
  CHECK(content(folder / "log").find("site-1") != std::string::npos);
  const Ended resumed = run(train(settings, {"--local", "--checkpoints", folder / "killed", "--resume"}));
  CAPTURE(resumed.said);
  CHECK(resumed.status == 0);
  CHECK(state_after(folder / "killed", 16, 2) == state_after(folder / "whole", 16, 2));
}

TEST_CASE("a sharded state of the optimiser: the same weights, checkpoints and bytes, to the last bit") {
  const Folder folder;
  for (const std::vector<std::string>& method :
       {std::vector<std::string>{"strategy.method=diloco"},
        {"strategy.method=ddp", "strategy.fragments=1"},
        {"strategy.method=fomoe", "strategy.expert_overlap=1", "strategy.placement=fixed",
         "strategy.outer_optimizer=nesterov"}}) {
    const std::string name = method.front().substr(method.front().find('=') + 1);
    CAPTURE(name);
    std::vector<std::string> settings = {"platform.sites=2",        "workload.tokens=65536",
                                         "strategy.local_steps=4",  "strategy.collective=direct",
                                         "compute.gpus_per_site=2", "compute.intra_site_bandwidth=100Gbps",
                                         "trainer.clip_norm=0.5"};
    settings.insert(settings.end(), method.begin(), method.end());
    std::vector<std::string> sharded = settings;
    sharded.insert(sharded.end(), {"compute.sharded=2", "compute.zero_stage=1"});
    const std::string whole_state = folder / (name + "-whole"), shards = folder / (name + "-shards");
    const auto one = report_of(settings, {"--local", "--checkpoints", whole_state}, folder / "one.json");
    const auto two = report_of(sharded, {"--local", "--checkpoints", shards}, folder / "two.json");
    const int last = one["round"]["count"];
    CHECK(state_after(shards, last, 2) == state_after(whole_state, last, 2));
    for (const char* bytes : {"bytes_sent", "bytes_received"})
      CHECK(two["sites"][1][bytes] == one["sites"][1][bytes]);
    // A run goes on from the other's checkpoints, and ends in the same bits.
    fs::remove_all(fs::path(shards) / fs::path(state_folder(last)));
    const Ended resumed = run(train(sharded, {"--local", "--checkpoints", shards, "--resume"}));
    CAPTURE(resumed.said);
    REQUIRE(resumed.status == 0);
    CHECK(state_after(shards, last, 2) == state_after(whole_state, last, 2));
  }
}

TEST_CASE("kinds of sharding that are not there, and methods that exchange the state, are refused") {
  const auto said = [](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"platform.sites=2", "compute.gpus_per_site=2",
                                     "compute.intra_site_bandwidth=100Gbps", "compute.sharded=2"});
    const Ended ended = run(train(settings, {"--local"}));
    CHECK(ended.status == 2);
    return ended.said;
  };
  CHECK(said({"strategy.method=diloco"}).find("compute.sharded: got 2 of 2 GPUs with zero_stage = 3") !=
        std::string::npos);
  for (const std::vector<std::string>& method :
       {std::vector<std::string>{"strategy.method=local_adamw"},
        {"strategy.method=fomoe", "strategy.expert_overlap=1", "strategy.placement=random"}}) {
    std::vector<std::string> settings = method;
    settings.emplace_back("compute.zero_stage=1");
    CHECK(said(settings).find("a plan in which sites exchange it or move experts") != std::string::npos);
  }
}
