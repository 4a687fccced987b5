// Tests runs that go on without a lost site, which comes back later.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

/// Four sites, each started by itself as at real sites.
class Sites {
 public:
  Sites(const Folder& folder, std::vector<std::string> settings)
      : folder_(folder), settings_(std::move(settings)) {
    settings_.insert(settings_.end(),
                     {"workload.tokens=1572864", "strategy.local_steps=4", "trainer.on_lost_site=drop",
                      "trainer.drop_after=6s", "trainer.timeout=60s"});  // 96 rounds
    for (int rank = 0; rank < 4; ++rank) start(rank);
  }
  void start(int rank, const std::vector<std::string>& more = {}) {
    const std::string own = std::to_string(rank);
    std::vector<std::string> options = {"--checkpoints", folder_ / ("site-" + own)};
    if (rank == 0) options.insert(options.end(), {"--output", folder_ / "report.json"});
    options.insert(options.end(), more.begin(), more.end());
    running_.erase(rank);
    running_.emplace(rank, Process(train(settings_, options), log(rank, ++started_[rank]),
                                   {{"RANK", own},
                                    {"WORLD_SIZE", "4"},
                                    {"MASTER_ADDR", "127.0.0.1"},
                                    {"MASTER_PORT", std::to_string(port_)}}));
  }
  void kill(int rank) { running_.at(rank).kill(); }
  int wait(int rank) { return running_.at(rank).wait(150); }
  [[nodiscard]] std::string said(int rank) const { return content(log(rank, started_.at(rank))); }
  [[nodiscard]] bool wait_for_round(int round) const {
    char path[64];
    std::snprintf(path, sizeof path, "site-0/round-%08d/node-0.safetensors", round);
    return wait_for_file(folder_ / path, 100);
  }
  /// The checkpoints of all sites after the last round, in one folder.
  [[nodiscard]] std::string together() const {
    for (const char* rank : {"0", "1", "2", "3"}) {
      const std::string from =
          folder_ / (std::string("site-") + rank + "/round-00000096/node-" + rank + ".safetensors");
      fs::create_directories(folder_ / "all/round-00000096");
      fs::copy_file(from, folder_ / (std::string("all/round-00000096/node-") + rank + ".safetensors"));
    }
    return folder_ / "all";
  }

 private:
  [[nodiscard]] std::string log(int rank, int start) const {
    return folder_ / ("stderr-" + std::to_string(rank) + "-" + std::to_string(start));
  }
  const Folder& folder_;
  std::vector<std::string> settings_;
  int port_ = 20'000 + (::getpid() + 631) % 10'000;
  std::map<int, int> started_;
  std::map<int, Process> running_;
};

}  // namespace

TEST_CASE("the other sites go on without a lost one, which gets their state when it comes back") {
  struct Case {
    std::vector<std::string> settings;
    std::string experts;  // said about experts that nobody trained meanwhile
  };
  for (const Case& one :
       {Case{{"strategy.method=diloco"}, ""},
        Case{{"strategy.method=fomoe", "strategy.placement=fixed", "strategy.expert_overlap=1"},
             "the site's own checkpoint after round"}}) {
    CAPTURE(one.settings.front());
    const Folder folder;
    Sites sites(folder, one.settings);
    REQUIRE(sites.wait_for_round(3));
    sites.kill(2);
    REQUIRE(sites.wait_for_round(10));
    sites.start(2, {"--resume"});
    for (const int rank : {0, 1, 2, 3}) {
      CAPTURE(rank);
      const int status = sites.wait(rank);
      CAPTURE(sites.said(rank));
      CHECK(status == 0);
    }
    CAPTURE(sites.said(0));
    CAPTURE(sites.said(2));
    CHECK(sites.said(0).find("goes on without site-2") != std::string::npos);
    CHECK(sites.said(0).find("site-2 (rank 2) has come back") != std::string::npos);
    CHECK(sites.said(2).find("got the state after round") != std::string::npos);
    if (!one.experts.empty()) CHECK(sites.said(2).find(one.experts) != std::string::npos);

    // After the last averages, all sites have the same dense parameters.
    const Ended ended = run({kTrain, "export", sites.together(), "--output", folder / "exported"});
    CAPTURE(ended.said);
    CHECK(ended.status == 0);
    CHECK(ended.said.find("hold different values") == std::string::npos);
    const auto report = nlohmann::json::parse(content(folder / "report.json"));
    CHECK(report["quality"]["perplexity"].get<double>() < 40);

    // Three parts: with all sites, without the lost one, and with all again. `fomoe validate` predicts each.
    const auto& parts = report["run"]["whole_run"]["parts"];
    REQUIRE(parts.size() == 3);
    CHECK(parts[0]["absent"].empty());
    CHECK(parts[1]["absent"] == nlohmann::json::array({"site-2"}));
    CHECK(parts[2]["absent"].empty());
    CHECK(parts[1]["first_round"].get<int>() >= 3);
    CHECK(parts[2]["first_round"].get<int>() >= 10);
    const Ended validated =
        run({kPlan, "validate", folder / "report.json", "--output", folder / "errors.json"});
    CAPTURE(validated.said);
    REQUIRE(validated.status == 0);
    const auto compared = nlohmann::json::parse(content(folder / "errors.json"))["runs"][0];
    CHECK(compared["whole_run"]["restarts"] == 2);
    CHECK(compared["errors"]["bytes"].get<double>() == 0);
    CHECK(compared["measured"]["wall_clock_s"].get<double>() <=
          report["run"]["whole_run"]["wall_clock_s"].get<double>());
  }
}
