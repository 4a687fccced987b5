// Tests that every command says first what is wrong with the step times that it uses, and that the memory of
// the card on which they were taken is checked.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/files/step_profile_io.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

namespace {

/// Steps of the preset `small` on a card of the catalogue, at the numbers of experts that two sites may hold.
costmodel::StepProfile timed() {
  costmodel::StepProfile profile;
  profile.model = *costmodel::find_preset("small");
  profile.device_kind = "cuda";
  profile.device_name = "NVIDIA H100 80GB HBM3";
  profile.dtype = "bf16";
  profile.versions = "none";
  profile.measured_at = "2026-01-02T03:04:05Z";
  for (const std::int64_t held : {4, 8})
    profile.points.push_back({1, held, false, 0, {{0.003, 0.001, 0.0004}}});
  return profile;
}

struct Scenarios {
  Folder folder;
  explicit Scenarios(const costmodel::StepProfile& profile) {
    write_all(folder / "p.json", scenario::step_profile_json(profile));
  }
  [[nodiscard]] std::string of(const std::string& command, const std::string& more = "") const {
    return "fomoe " + command + " " + source_dir() +
           "/tests/ideal/two-sites.toml --set compute.profile=" + (folder / "p.json") + " " + more;
  }
  [[nodiscard]] Ran run(const std::string& command, const std::string& more = "") const {
    return run_in(folder.path(), of(command, more));
  }
};

const std::string kWhat =
    "are superseded since 2026-11-26: measured before the kernels changed; half as long now";

}  // namespace

TEST_CASE("every command that uses a superseded profile says so first") {
  costmodel::StepProfile profile = timed();
  profile.superseded = {"2026-11-26", "measured before the kernels changed", "half as long now"};
  const Scenarios scenarios(profile);
  CHECK(scenario::read_step_profile(scenarios.folder / "p.json").superseded->difference ==
        "half as long now");
  for (const auto& [command, more] :
       {std::pair<std::string, std::string>{"simulate", ""},
        {"compare", "--case strategy.local_steps=8 --case strategy.local_steps=16"},
        {"sweep", "--vary strategy.local_steps=8,16 --engine closed-form --output s.csv"},
        {"plan", "--vary strategy.method=diloco --vary strategy.local_steps=8,16"},
        {"solve", "--for platform.bandwidth --target compute_utilization=0.5"},
        {"explain", ""},
        {"cost", ""}}) {
    CAPTURE(command);
    const Ran ran = scenarios.run(command, more);
    CHECK(ran.exit_status == 0);
    const std::string first = ran.err.substr(0, ran.err.find('\n'));
    CHECK_MESSAGE(has(first, "warning: the step times of "), ran.err);
    CHECK(has(first, kWhat));
    CHECK(ran.err.find(kWhat) == ran.err.rfind(kWhat));  // once, however often the scenario is read
  }
  const Ran text = scenarios.run("simulate");
  CHECK(text.out.starts_with("Warning: the step times of "));
  CHECK(has(text.out, "95 % interval: none is given, because of the warnings above"));
  const json report = json::parse(scenarios.run("simulate", "--output -").out);
  REQUIRE(report.at("warnings").size() == 1);
  CHECK(has(report["warnings"][0], kWhat));
  REQUIRE(scenarios.run("simulate", "--output run.json").exit_status == 0);
  REQUIRE(run_in(scenarios.folder.path(), "fomoe report run.json --output page.html").exit_status == 0);
  CHECK(has(read_all(scenarios.folder / "page.html"), kWhat));
  // What is made from such a profile is superseded as well.
  const Ran scaled =
      run_in(scenarios.folder.path(), "fomoe profile scale p.json --to H200-SXM --output q.json");
  CHECK(has(scaled.err, kWhat));
  CHECK(scenario::read_step_profile(scenarios.folder / "q.json").superseded);
}

TEST_CASE("a profile that nothing is wrong with gives no warning") {
  const Scenarios scenarios(timed());
  const Ran ran = scenarios.run("simulate", "--output -");
  CHECK(ran.err.empty());
  CHECK(!json::parse(ran.out).contains("warnings"));
}

TEST_CASE("the memory of the card on which steps were timed is checked") {
  const Scenarios scenarios(timed());
  const json small = json::parse(scenarios.run("simulate", "--output -").out);
  CHECK(!small.contains("memory_problem"));
  bool stated = false;
  for (const json& entry : small["provenance"]) stated = stated || entry["what"] == "GPU memory";
  CHECK(stated);
  costmodel::StepProfile deep = timed();
  deep.model = *costmodel::find_preset("xl");
  for (costmodel::ProfilePoint& point : deep.points) {
    point.local_experts *= 8;
    point.samples = {{0.3, 0.6, 0.1}};  // no card would take milliseconds for a model of this size
  }
  const Scenarios too_large(deep);
  const json report = json::parse(too_large.run("simulate", "--set model.preset=xl --output -").out);
  CHECK(has(report.at("memory_problem"), "does not fit: a GPU needs "));
  CHECK(
      has(too_large.run("simulate", "--set model.preset=xl").out, "This scenario cannot run as configured"));
}

TEST_CASE("what a profile measured of synchronisation is used, unless the scenario gives it") {
  costmodel::StepProfile profile = timed();
  profile.synchronisation = costmodel::SynchronisationTimes{{{costmodel::ElementType::bf16, 2e9}}, 1e-9};
  const Scenarios scenarios(profile);
  const std::string common =
      "--set model.preset=small --set compute.micro_batch_sequences=1 --engine closed-form --output - ";
  const auto rate = [&](const std::string& more) {
    const Ran ran = scenarios.run("simulate", common + more);
    CHECK(ran.exit_status == 0);
    const json network = json::parse(ran.out)["scenario"]["network_model"];
    return network.value("payload_bytes_per_s", 0.0);
  };
  CHECK(rate("") == 2e9);
  CHECK(rate("--set network_model.payload_rate=8Gbps") == 1e9);
  CHECK(rate("--set strategy.payload_dtype=int8") == 0);  // not measured
  const std::string sparse = "--set strategy.method=sparse_loco --set strategy.payload_dtype=bf16 ";
  CHECK(rate(sparse) == 0);
  CHECK(scenario::read_step_profile(scenarios.folder / "p.json")
            .synchronisation->payload_rates.front()
            .bytes_per_s == 2e9);
  profile.synchronisation->sparse = {1e-9, 2e-9};
  const Scenarios choosing(profile);
  const Ran ran = choosing.run("simulate", common + sparse + "--set platform.sites=2 ");
  // One element in 64, as 16 + 12 bits, chosen for one other site.
  CHECK(json::parse(ran.out)["scenario"]["network_model"]["payload_bytes_per_s"].get<double>() ==
        doctest::Approx(28.0 / 8 / 64 / 3e-9));
  profile.synchronisation->sparse->add_s_per_element = 0;
  const Ran zero = Scenarios(profile).run("simulate", common + sparse);
  CHECK(zero.exit_status == 2);
  CHECK(has(zero.err, "p.json: synchronisation.sparse.add_s_per_element: got 0; expected seconds above 0"));
  profile.synchronisation->sparse.reset();
  profile.synchronisation->payload_rates.front().bytes_per_s = 0;
  const Scenarios wrong(profile);
  const Ran refused = wrong.run("simulate", common);
  CHECK(refused.exit_status == 2);
  CHECK(has(refused.err, "p.json: synchronisation.payload_bytes_per_s.bf16: got 0; expected"));
}
