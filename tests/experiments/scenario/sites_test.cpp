// Tests of [[site]] and workload.batch: what a scenario says of sites that differ.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::string kStart =
    "[model]\npreset = \"small\"\n[workload]\ntokens = 1e8\nglobal_batch_sequences = 64\n"
    "[strategy]\nmethod = \"diloco\"\nlocal_steps = 8\n"
    "[platform]\nsites = 3\nbandwidth = \"1Gbps\"\nlatency = \"10ms\"\n";
const std::string kMfu =
    "[compute]\naccelerator = \"H100-SXM\"\nmfu = 0.4\ngpus_per_site = 8\n";  // lines 13-16

class Sites {
 public:
  /// Runs `fomoe COMMAND s.toml ARGUMENTS` with the given tables.
  Ran run(const std::string& command, const std::string& tables, const std::string& arguments = "") const {
    write_all(folder_ / "s.toml", kStart + tables);
    return run_in(folder_.path(), "fomoe " + command + " s.toml " + arguments);
  }
  json simulated(const std::string& tables, const std::string& arguments = "") const {
    const Ran ran = run("simulate", tables, arguments + " --output -");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return json::parse(ran.out);
  }
  std::string refused(const std::string& tables, const std::string& arguments = "") const {
    const Ran ran = run("simulate", tables, arguments);
    CHECK(ran.exit_status == 2);
    return ran.err;
  }

 private:
  Folder folder_;
};

double compute_s(const json& report, int site) { return report["sites"][site]["compute_s"]; }

}  // namespace

TEST_CASE("a [[site]] changes the compute of the sites that it names") {
  const Sites sites;
  const std::string more =
      "[[site]]\nname = \"site-1\"\ngpus_per_site = 4\n"
      "[[site]]\nname = \"site-2\"\naccelerator = \"A100-80GB-SXM\"\n";
  // Without an outer step, whose time follows from the memory bandwidth and not from the peak.
  const std::string average = "--set strategy.method=local_sgd";
  const json plain = sites.simulated(kMfu, average), report = sites.simulated(kMfu + more, average);
  CHECK(compute_s(report, 0) == doctest::Approx(compute_s(plain, 0)));
  CHECK(compute_s(report, 1) == doctest::Approx(compute_s(plain, 1) * 2));
  CHECK(compute_s(report, 2) == doctest::Approx(compute_s(plain, 2) * 989.5 / 312));
  CHECK(report["efficiency"]["peak_flop_per_s"].get<double>() ==
        doctest::Approx(8 * 989.5e12 + 4 * 989.5e12 + 8 * 312e12));
  CHECK(report["scenario"]["site"][1]["gpus_per_site"] == 4);
  CHECK_FALSE(plain["scenario"].contains("site"));

  // A pattern names several sites, and step_time replaces what [compute] says.
  const json both = sites.simulated(kMfu + "[[site]]\nname = \"site-[12]\"\nstep_time = \"3s\"\n", average);
  CHECK(compute_s(both, 0) == doctest::Approx(compute_s(plain, 0)));
  CHECK(compute_s(both, 1) == doctest::Approx(compute_s(both, 2)));
  CHECK(compute_s(both, 1) > 10);
  // The same as JSON, and from a bundle.
  const std::string as_json =
      R"({"model":{"preset":"small"},"workload":{"tokens":1e8,"global_batch_sequences":64},"strategy":)"
      R"({"method":"diloco","local_steps":8},"platform":{"sites":3,"bandwidth":"1Gbps","latency":"10ms"},)"
      R"("compute":{"accelerator":"H100-SXM","mfu":0.4,"gpus_per_site":8},)"
      R"("site":[{"name":"site-1","gpus_per_site":4},{"name":"site-2","accelerator":"A100-80GB-SXM"}]})";
  const Folder folder;
  write_all(folder / "s.json", as_json);
  const Ran ran = run_in(folder.path(), "fomoe simulate s.json " + average + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(json::parse(ran.out)["wall_clock_s"] == report["wall_clock_s"]);
}

TEST_CASE("batch_share and a balanced batch") {
  const Sites sites;
  const std::string slow = "[[site]]\nname = \"site-2\"\ngpus_per_site = 4\n";
  const json plain = sites.simulated(kMfu + slow);
  const json balanced = sites.simulated(kMfu + slow, "--set workload.batch=balanced");
  CHECK(balanced["scenario"]["site"][0]["batch_sequences"] == 25);
  CHECK(balanced["scenario"]["site"][2]["batch_sequences"] == 13);
  CHECK(balanced["wall_clock_s"].get<double>() < plain["wall_clock_s"].get<double>());
  const json given = sites.simulated(kMfu + slow + "batch_share = 0.5\n");
  CHECK(given["wall_clock_s"].get<double>() == doctest::Approx(balanced["wall_clock_s"].get<double>()));
  const std::string notes = plain["notes"].dump();
  CHECK(notes.find("s at site-2 and") != std::string::npos);
  CHECK(notes.find("workload.batch = ") != std::string::npos);
  CHECK(balanced["notes"].dump().find("s at site-2 and") == std::string::npos);
}

TEST_CASE("mistakes in a [[site]] have its line") {
  const Sites sites;
  CHECK(sites.refused(kMfu + "[[site]]\nname = \"site-1\"\nmfu = 40\n")
            .starts_with("s.toml:19: site.mfu: got 40; expected"));
  CHECK(sites.refused(kMfu + "[[site]]\nname = \"site-1\"\ngpus = 4\n")
            .find("s.toml:19: site.gpus: got an unknown") == 0);
  CHECK(sites.refused(kMfu + "[[site]]\ngpus_per_site = 4\n").find("site.name: got nothing") !=
        std::string::npos);
  CHECK(sites.refused(kMfu + "[[site]]\nname = \"site1\"\ngpus_per_site = 4\n")
            .starts_with("s.toml:18: site.name: got \"site1\"; expected the name of a site"));
  CHECK(sites
            .refused(kMfu +
                     "[[site]]\nname = \"site-1\"\nsharded = 2\n[[site]]\nname = \"site-*\"\nsharded = 2\n")
            .find("s.toml:21: site.name: got \"site-*\", which is site-1 once more") == 0);
  CHECK(sites.refused(kMfu + "[[site]]\nname = \"site-1\"\nsharded = 3\n").find("(at site site-1)") !=
        std::string::npos);
  CHECK(sites.refused(kMfu + "[site]\nname = \"site-1\"\n")
            .find("expected a list of tables; for example [[site]]") != std::string::npos);
  CHECK(
      sites.refused(kMfu + "[[site]]\nname = \"site-1\"\nbatch_share = 2\n", "--set workload.batch=balanced")
          .find("got batch_share together with workload.batch") != std::string::npos);
  CHECK(sites.refused("[compute]\nstep_time = \"1s\"\n[[site]]\nname = \"site-1\"\ngpus_per_site = 4\n")
            .find("site.gpus_per_site: got gpus_per_site without a step time of the site") !=
        std::string::npos);
  CHECK(sites.refused("[compute]\nstep_time = \"1s\"\n", "--set workload.batch=balanced")
            .find("with compute.step_time") != std::string::npos);
  // The name of a site that the run does not use is no mistake.
  CHECK(sites.run("simulate", kMfu + "[[site]]\nname = \"site-2\"\nsharded = 2\n", "--set platform.sites=2")
            .exit_status == 0);
}

TEST_CASE("sweep, plan and solve compute each site with its own GPUs") {
  const Sites sites;
  const std::string slow = kMfu + "[[site]]\nname = \"site-2\"\ngpus_per_site = 2\n";
  const Ran sweep = sites.run(
      "sweep", slow, "--engine closed-form --vary compute.mfu=0.2,0.4 --vary platform.sites=2,3 --output -");
  REQUIRE_MESSAGE(sweep.exit_status == 0, sweep.err);
  const json rows = json::parse(sweep.out)["rows"];
  REQUIRE(rows.size() == 4);
  for (const json& row : rows) {
    const json one =
        sites.simulated(slow, "--engine closed-form --set compute.mfu=" + row["compute.mfu"].dump() +
                                  " --set platform.sites=" + row["platform.sites"].dump());
    CHECK(row["wall_clock_s"].get<double>() ==
          doctest::Approx(one["wall_clock_s"].get<double>()).epsilon(1e-9));
  }
  CHECK(rows[1]["round_compute_s"] != rows[0]["round_compute_s"]);

  const Ran plan = sites.run("plan", slow,
                             "--set platform.bandwidth=100Gbps --set workload.global_batch_sequences=4096 "
                             "--set workload.tokens=1e10 --vary strategy.method=diloco --output -");
  REQUIRE_MESSAGE(plan.exit_status == 0, plan.err);
  CHECK(plan.out.find("workload.batch=balanced") != std::string::npos);

  const Ran solved =
      sites.run("solve", slow,
                "--set network_model.host=ideal --for platform.bandwidth --target compute_utilization=0.3");
  CHECK_MESSAGE(solved.exit_status == 0, solved.err);
}

TEST_CASE(
    "a [[site]] with another accelerator and MFU keeps the micro-batch, and the energy of an unknown "
    "device") {
  const Sites sites;
  const std::string small = "[[site]]\nname = \"site-1\"\naccelerator = \"A10\"\nmfu = 0.3\n";
  const json report = sites.simulated(kMfu + "micro_batch_sequences = 64\n" + small);
  for (const json& site : report["scenario"]["site"]) CHECK(site["micro_batch_sequences"] == 64);
  // GH200 has no power in the catalogue; it then draws what the scenario says.
  const json power =
      sites.simulated(kMfu +
                      "[energy]\ngpu_power = \"500W\"\nidle_share = 0.2\n[[site]]\nname = \"site-1\"\n"
                      "accelerator = \"GH200\"\n");
  CHECK(power["scenario"]["site"][1]["gpu_power_w"] == 500);
}

TEST_CASE("an assumed penalty decides in compare and plan") {
  const Sites sites;
  const Ran ran = sites.run(
      "compare", kMfu,
      "--set quality.equal_loss_factor=50 --case strategy.method=ddp --case strategy.method=diloco");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.find("To reach the loss of data-parallel training") != std::string::npos);
  const Ran plan = sites.run("plan", kMfu, "--set quality.equal_loss_factor=50 --output -");
  REQUIRE_MESSAGE(plan.exit_status == 0, plan.err);
  // With a penalty of 50 the best method synchronises in each step, or needs no synchronisation.
  CHECK(json::parse(plan.out)["choice"]["equal_loss_factor"] == 1);
}

TEST_CASE("a [[site]] has prices and failures of its own, and owned GPUs are not preempted") {
  const Sites sites;
  const std::string tables = kMfu +
                             "[prices]\ngpu_hour = \"3.60USD\"\n"
                             "[failures]\npreemptions_per_day = 20\ncheckpoint_cost = \"20s\"\n";
  const std::string own = "[[site]]\nname = \"site-0\"\npricing = \"owned\"\ngpu_hour = \"1.20USD\"\n";
  const json plain = sites.simulated(tables), report = sites.simulated(tables + own);
  CHECK(report["cost"]["gpu_cost"].get<double>() ==
        doctest::Approx(plain["cost"]["gpu_cost"].get<double>() * (3.6 + 3.6 + 1.2) / (3 * 3.6)));
  CHECK(report["goodput"]["system_mtbf_s"].get<double>() ==
        doctest::Approx(plain["goodput"]["system_mtbf_s"].get<double>() * 3 / 2));
  CHECK(report["goodput"]["goodput"] > plain["goodput"]["goodput"]);
  CHECK(report.dump().find("owned GPUs are not preempted: site-0") != std::string::npos);
  CHECK(plain.dump().find("detection_time = \\\"30s\\\", restart_time = \\\"10min\\\"") != std::string::npos);
  const json fast = sites.simulated(tables + "[[site]]\nname = \"site-*\"\nrestart_time = \"10s\"\n");
  CHECK(fast["goodput"]["goodput"] > plain["goodput"]["goodput"]);
  CHECK(compute_s(report, 0) == compute_s(plain, 0));  // no key of [compute]
  CHECK(sites.refused(kMfu + "[[site]]\nname = \"site-0\"\nrestart_time = \"1s\"\n")
            .find("restart_time without [failures]") != std::string::npos);
  CHECK(sites.refused(kMfu + "[[site]]\nname = \"site-0\"\ngpu_hour = \"1USD\"\n")
            .find("gpu_hour without prices of the other sites") != std::string::npos);
  CHECK(sites.refused(tables + own + "preemptions_per_day = 1\n").find("preemptions of owned GPUs") !=
        std::string::npos);
}

TEST_CASE("--set reaches the keys of one site and of one path") {
  const Sites sites;
  const json plain = sites.simulated(kMfu);
  const json slow = sites.simulated(kMfu, "--set site.site-1.uplink=10Mbps");
  CHECK(slow["scenario"]["platform"]["sites"][1]["uplink_bytes_per_s"] == 1.25e6);
  CHECK(slow["scenario"]["platform"]["sites"][1]["downlink_bytes_per_s"] == 1.25e8);
  CHECK(slow["wall_clock_s"] > plain["wall_clock_s"]);
  CHECK(compute_s(sites.simulated(kMfu, "--set site.site-1.gpus_per_site=4"), 1) > 1.5 * compute_s(plain, 1));
  const std::string direct = "--set strategy.collective=direct ";  // a ring would go the other way round
  CHECK(sites.simulated(kMfu, direct + "--set path.site-0.site-1.latency=2s")["wall_clock_s"] >
        sites.simulated(kMfu, direct)["wall_clock_s"]);
  CHECK(sites.refused(kMfu, "--set site.site-1.nothing=4").find("nothing") != std::string::npos);
  CHECK(sites.refused(kMfu, "--set path.site-0.site-9.latency=2s").find("the name of a site that is used") !=
        std::string::npos);
}
