// Tests that numbers which no machine has are refused where they are read, and that no answer contains a
// number that is not finite or a time below zero.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "experiments/json/json.hpp"
#include "experiments/results/possible_numbers.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;

namespace {

Ran simulated(const std::string& scenario, const std::string& options) {
  return run_in(source_dir(),
                "timeout 60 fomoe simulate experiments/scenarios/" + scenario + ".toml " + options);
}

}  // namespace

TEST_CASE("absurd quantities are refused with the largest or smallest value") {
  struct Absurd {
    const char* set;
    const char* reason;
  };
  for (const auto& [set, reason] :
       {Absurd{"compute.step_time=1e300s", "\"1e300s\" (above the largest value, 1e11s)"},
        {"compute.step_time=1e308ms", "(above the largest value, 1e11s)"},
        {"platform.latency=1e12s", "(above the largest value, 1e11s)"},
        {"platform.bandwidth=1e-9bps", "(below the smallest value, 1bps)"},
        {"platform.bandwidth=1e300bps", "(above the largest value, 1EB/s)"},
        {"strategy.bucket_bytes=10EB", "(above the largest value, 9EB)"},
        {"network_model.tcp_window=10EB", "(above the largest value, 9EB)"},
        {"prices.gpu_hour=1e300USD", "(above the largest amount, 1e15)"},
        {"energy.pue=1e300", "energy.pue: got 1e+300"},
        {"strategy.bucket_bytes=1B", "million calls; expected buckets that make at most a million calls"},
        {"network_model.bandwidth_efficiency=1e-300", "1e-300 (below the smallest value, 1e-30)"},
        {"network_model.bandwidth_efficiency=1e-20", "a rate of less than 1e-5 bytes per second"}}) {
    CAPTURE(set);
    for (const char* engine : {"", " --engine closed-form"}) {
      const Ran ran = simulated("two-sites", std::string("--set ") + set + engine);
      CHECK(ran.exit_status == 2);
      CHECK(ran.out.empty());
      CHECK(has(ran.err, reason));
    }
  }
}

TEST_CASE("the example of a refused bucket works") {
  const Ran refused = simulated("two-sites", "--set strategy.bucket_bytes=1B");
  std::smatch example;
  REQUIRE(
      std::regex_search(refused.err, example, std::regex("for example bucket_bytes = \"([0-9a-zA-Z]+)\"")));
  CHECK(simulated("two-sites", "--set strategy.bucket_bytes=" + example[1].str()).exit_status == 0);
}

TEST_CASE("the largest values that are accepted give numbers that people and programs can read") {
  const Ran text = simulated("two-sites", "--set compute.step_time=1e11s");
  CHECK_MESSAGE(text.exit_status == 0, text.err);
  CHECK(text.out.find("d -") == std::string::npos);
  CHECK(has(text.out, " M d per round\n"));
  const Ran json = simulated("two-sites", "--set compute.step_time=1e11s --output -");
  CHECK(nlohmann::json::parse(json.out)["wall_clock_s"].get<double>() > 191e11);
}

TEST_CASE("no report leaves the program with a number that is not finite, or with a negative time") {
  fomoe::costmodel::RunReport report;
  report.executor = "simulated";
  report.wall_clock_s = report.round.duration_s = 1;
  CHECK(&fomoe::scenario::possible(report) == &report);
  report.round.idle_s = -1e-12;  // rounding
  CHECK_NOTHROW((void)fomoe::scenario::possible(report));
  report.round.idle_s = -1.4;
  CHECK_THROWS_WITH_AS((void)fomoe::scenario::possible(report),
                       "round.idle_s is -1.4, which cannot be: this is a mistake in fomoe", std::logic_error);
  report.round.idle_s = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS((void)fomoe::scenario::possible(report), fomoe::InputError);

  using fomoe::scenario::to_text;
  CHECK_NOTHROW((void)to_text({{"change", -1.0}, {"wall_clock_s", 1.0}, {"unknown", nullptr}}));
  CHECK_THROWS_AS((void)to_text({{"a", {{"duration_s", -1.4}}}}), std::logic_error);
  CHECK_THROWS_AS((void)to_text({{"a", {1.0, std::nan("")}}}), fomoe::InputError);
  CHECK_THROWS_AS((void)to_text({{"low_s", {-1.0, 2.0}}}), std::logic_error);
}

TEST_CASE("rounds of async_diloco on unequal sites take no negative time") {
  for (const char* rounds : {"", " --rounds all", " --rounds 7"}) {
    const Ran ran =
        simulated("unequal-sites", std::string("--set strategy.method=async_diloco --output -") + rounds);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    const auto timeline = nlohmann::json::parse(ran.out)["round_timeline"];
    CHECK(timeline["duration_s"].get<double>() > 0);
    CHECK(timeline["spans"].size() > 0);
  }
}

TEST_CASE("an event that is nearer than the clock can show is reached") {
  const Folder folder;
  write_all(
      folder / "s.toml",
      "[model]\nd_model = 222\nlayers = 4\nheads = 3\nexperts = 25\nactive_experts = 7\nd_expert = 122\n"
      "vocabulary = 25593\nsequence_length = 738\n[workload]\ntokens = 3262\nglobal_batch_sequences = "
      "635\n[strategy]\nmethod = \"fedavg\"\nlocal_steps = 18\npayload_dtype = \"int4\"\nparameter_dtype "
      "= \"int8\"\ncollective = \"chain\"\n[compute]\nstep_time = \"817.884ms\"\nmicro_batch_sequences = "
      "2\n[platform]\nfile = \"" +
          source_dir() +
          "/platforms/eight-regions.toml\"\nsites = 2\nrate_factor = 6.330826263173248e-05\n"
          "[network_model]\ntcp_window = \"35059B\"\n");
  // A rounding error once repeated the same instant for ever, in one of the runs that make the interval.
  CHECK(run_in(folder.path(), "timeout 60 fomoe simulate s.toml --rounds 1 --sensitivity none --output -")
            .exit_status == 0);
}
