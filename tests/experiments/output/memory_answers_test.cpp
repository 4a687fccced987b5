// Tests of a scenario whose model does not fit into its GPUs: every answer says so first, with a remedy.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

// Qwen3-30B-A3B on 8 GPUs of 141 GB per site, each with a full replica: 26 B · 30.5e9 = 794 GB.
const std::string kTooLarge =
    "experiments/scenarios/four-regions.toml --set compute.sharded=1 --set compute.outer_state_on=device "
    "--set network_model.host=ideal";

std::string out(const std::string& command, int status = 0) {
  const Ran ran = run_in(source_dir(), command);
  REQUIRE_MESSAGE(ran.exit_status == status, ran.err);
  return ran.out;
}

}  // namespace

TEST_CASE("simulate begins with the note that the model does not fit, and does not repeat it at the end") {
  const std::string text = out("fomoe simulate " + kTooLarge);
  const std::size_t at = text.find("This scenario cannot run as configured: it does not fit: a GPU needs ");
  CHECK(at < text.find("wall clock"));
  CHECK(text.find("with compute.sharded=8 the model would fit (") != std::string::npos);
  CHECK(text.find("Note: does not fit") == std::string::npos);
  CHECK(out("fomoe simulate experiments/scenarios/four-regions.toml").find("cannot run") ==
        std::string::npos);
}

TEST_CASE("the proposed settings are accepted, and with them the model fits") {
  const std::string fits = out("fomoe simulate " + kTooLarge + " --set compute.sharded=8");
  CHECK(fits.find("cannot run") == std::string::npos);
}

TEST_CASE("cost, compare, solve and plan also say that the model does not fit") {
  CHECK(out("fomoe cost " + kTooLarge).find("This scenario cannot run as configured: it does not fit: ") !=
        std::string::npos);
  const std::string compared =
      out("fomoe compare " + kTooLarge + " --case strategy.method=ddp --case compute.sharded=8");
  CHECK(compared.starts_with("strategy.method=ddp cannot run as configured: it does not fit: "));
  CHECK(compared.find("compute.sharded=8 cannot run") == std::string::npos);
  CHECK(out("fomoe solve " + kTooLarge + " --for platform.rate_factor --target utilization=90%")
            .find("However, this configuration cannot run: it does not fit: ") != std::string::npos);
  const std::string plan =
      out("fomoe plan " + kTooLarge + " --vary strategy.method=diloco --vary strategy.local_steps=64",
          /*status=*/3);
  CHECK(plan.starts_with("No configuration is possible: all "));
  CHECK(plan.find("The baseline does not fit into a GPU's memory; with compute.sharded=8 the "
                  "model would fit (") != std::string::npos);
}

TEST_CASE("the report shows the note above all other content") {
  const Folder folder;
  const std::string scenario = source_dir() + '/' + kTooLarge;
  REQUIRE(run_in(folder.path(), "fomoe simulate " + scenario + " --output run.json").exit_status == 0);
  REQUIRE(run_in(folder.path(), "fomoe report run.json --output r.html").exit_status == 0);
  const std::string page = read_all(folder / "r.html");
  const std::size_t at =
      page.find("<p class=\"warning\"><strong>This scenario cannot run as configured: it does not fit: ");
  CHECK(at < page.find("<dl class=\"figures\">"));
}

TEST_CASE("cost counts the cycles of each site that trains at its own pace") {
  const Folder folder;
  std::string text =
      "[model]\npreset = \"small\"\n[workload]\ntokens = 1e8\nglobal_batch_sequences = 64\n"
      "[strategy]\nmethod = \"async_diloco\"\nlocal_steps = 8\n[compute]\nstep_time = \"1s\"\n"
      "[platform]\nsites = 3\nbandwidth = \"1Gbps\"\nlatency = \"10ms\"\n";
  write_all(folder / "equal.toml", text);
  for (const char* site : {"site-1", "site-2"})
    text += std::string("[[site]]\nname = \"") + site + "\"\nstep_time = \"10s\"\n";
  write_all(folder / "slow.toml", text);
  const auto sent = [&](const std::string& command) {
    const Ran ran = run_in(folder.path(), command);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    const json answer = json::parse(ran.out)["sent_bytes_per_site"];
    return answer["dense"].get<double>() + answer["expert_sync"].get<double>();
  };
  const double slow = sent("fomoe cost slow.toml --output -");
  CHECK(slow < 0.5 * sent("fomoe cost equal.toml --output -"));
  CHECK(slow == doctest::Approx(sent("fomoe simulate slow.toml --engine closed-form --output -")));
}

TEST_CASE("bytes by class are those of the simulated run, also where sites miss rounds") {
  const Folder folder;
  write_all(
      folder / "s.toml",
      "[model]\npreset = \"small\"\n[workload]\ntokens = 1e8\nglobal_batch_sequences = 64\n"
      "[strategy]\nmethod = \"sparse_loco\"\nlocal_steps = 8\nquorum = 2\n[compute]\nstep_time = \"1s\"\n"
      "[platform]\nsites = 3\nbandwidth = \"100Mbps\"\nlatency = \"10ms\"\n"
      "[[site]]\nname = \"site-2\"\nstep_time = \"3s\"\n");
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json answer = json::parse(ran.out);
  double sum = 0;
  for (const json& bytes : answer["sent_bytes_per_site"]) sum += bytes.get<double>();
  CHECK(sum == doctest::Approx(answer["bytes_sent_per_site_per_round"].get<double>()));
  CHECK(answer["sent_bytes_per_site"]["rejoin"].get<double>() > 0);
}
