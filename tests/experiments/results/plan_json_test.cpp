// Tests of plans as JSON: a plan that is written and read again gives the same simulation, a plan by hand
// takes the time computed by hand, and every mistake is reported with its place.
#include "experiments/results/plan_json.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/results/json_values.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/experiments/run_fomoe.hpp"
#include "tests/scenarios.hpp"

namespace {

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

const std::string kThreeSites = R"(seed = 1
[model]
preset = "small"
[workload]
tokens = 1e6
global_batch_sequences = 12
[strategy]
method = "ddp"
[compute]
step_time = "100ms"
[platform]
sites = 3
bandwidth = "1Gbps"
latency = "20ms"
[network_model]
host = "ideal"
)";
const std::string kHubAndSpoke = source_dir() + "/experiments/plans/hub-and-spoke.json";

json numbers_of(const costmodel::RunReport& report) {
  json document = json::parse(scenario::run_report_json(report));
  document.erase("notes");
  return document;
}

void check_round_trip(const costmodel::Scenario& scenario, const sim::RunOptions& options = {}) {
  const sim::SimulatedRun made = sim::simulate_scenario(scenario, options);
  const Folder folder;
  const std::string text = scenario::plan_json(made.plan, made.executed);
  write_all(folder / "p.json", text);
  const costmodel::Plan plan =
      scenario::read_plan(folder / "p.json", scenario.sites(), scenario.platform.store.has_value());
  const sim::SimulatedRun read = sim::simulate_plan(scenario, plan, options);
  CHECK(numbers_of(read.report) == numbers_of(made.report));
  // Writing the plan again changes nothing but the note about its origin.
  json first = json::parse(text), second = json::parse(scenario::plan_json(read.plan, read.executed));
  first.erase("notes");
  second.erase("notes");
  CHECK(first["nodes"] == second["nodes"]);
  CHECK(first["groups"] == second["groups"]);
  CHECK(first["rounds"].size() == second["rounds"].size());
}

}  // namespace

TEST_CASE("every method's plan, written and read again, gives the same simulated numbers") {
  for (const costmodel::Method& method : costmodel::methods()) {
    CAPTURE(std::string(method.name));
    costmodel::Scenario scenario = every_axis_scenario(std::string(method.name), 4, 4);
    scenario.platform = platforms::uniform(4, 1e9, 5e8, 0.01);
    check_round_trip(scenario);
    for (const auto collective : {costmodel::Collective::direct, costmodel::Collective::recursive}) {
      scenario.strategy.collective = collective;
      check_round_trip(scenario);
    }
  }
}

TEST_CASE("plans through a store: written and read again, and refused where there is none") {
  for (const costmodel::Method& method : costmodel::methods()) {
    if (!method.through_store) continue;
    for (const bool aggregates : {true, false}) {
      CAPTURE(method.name);
      costmodel::Scenario scenario =
          through_store(every_axis_scenario(method.name, 4, 2), aggregates || method.name == "fedavg", 0.01);
      if (!method.partial_experts) scenario.strategy.expert_overlap = 4;
      check_round_trip(scenario);
    }
  }
  const sim::SimulatedRun made =
      sim::simulate_scenario(through_store(ideal_scenario("sparse_loco", 3), false), {});
  const Folder folder;
  const auto refused = [&](const std::string& text, bool store) {
    write_all(folder / "p.json", text);
    try {
      (void)scenario::read_plan(folder / "p.json", 3, store);
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string text = scenario::plan_json(made.plan, made.executed);
  CHECK(refused(text, true) == "");
  CHECK(refused(text, false).find("[platform.store]") != std::string::npos);
  json wrong = json::parse(text);
  wrong["nodes"][3]["site"] = 2;
  CHECK(refused(wrong.dump(), true).find("3, the number of sites, for a store") != std::string::npos);
  wrong = json::parse(text);
  json& exchange = wrong["rounds"][0]["ops"][1]["transfer"]["exchanges"][0];
  exchange["nodes"] = {0, 1, 2, 3};
  CHECK(refused(wrong.dump(), true).find("the store first") != std::string::npos);
  wrong = json::parse(text);
  wrong["rounds"][0]["ops"][1]["transfer"]["pattern"] = "all_gather";
  CHECK(refused(wrong.dump(), true).find("pass through a store") != std::string::npos);
}

TEST_CASE("the parameters that an outer step updates are written and read again") {
  const costmodel::Scenario scenario = every_axis_scenario("dept", 4, 4);
  const sim::SimulatedRun made = sim::simulate_scenario(scenario, {});
  const Folder folder;
  write_all(folder / "p.json", scenario::plan_json(made.plan, made.executed));
  const auto updates_all = [](const costmodel::Plan& plan) {
    const costmodel::RoundPlan round = plan.round(0);
    return std::get<costmodel::Compute>(round.ops.back().what).whole_model;
  };
  CHECK_FALSE(updates_all(made.plan));
  CHECK_FALSE(updates_all(scenario::read_plan(folder / "p.json", 4)));
}

TEST_CASE("random placements: sampled rounds by index, a shorter last round, jitter and extra traffic") {
  costmodel::Scenario scenario = ideal_scenario("fomoe", 4, 2);
  scenario.workload.tokens += 3 * 4 * scenario.model.sequence_length;  // 3 steps more than whole rounds
  scenario.strategy.placement = costmodel::PlacementKind::random;
  check_round_trip(scenario);
  sim::RunOptions all;
  all.all_rounds = true;
  check_round_trip(scenario, all);
  scenario.network.jitter_s = 0.01;
  scenario.traffic.data_site = 1;
  scenario.traffic.data_bytes_per_token = 4;
  check_round_trip(scenario);
}

TEST_CASE("the owners of experts are written, also of those with one owner, which are in no exchange") {
  costmodel::Scenario scenario = ideal_scenario("fomoe", 4, 2);
  scenario.strategy.expert_overlap = 1;
  scenario.strategy.placement = costmodel::PlacementKind::fixed;
  check_round_trip(scenario);
  const sim::SimulatedRun fixed = sim::simulate_scenario(scenario, {});
  const json one = json::parse(scenario::plan_json(fixed.plan, fixed.executed))["placements"];
  REQUIRE(one.size() == 1);
  const costmodel::Placement placement = fixed.plan.placement(0);
  const json owners = one[0]["owners"];
  CHECK(owners.size() == static_cast<std::size_t>(placement.layers()));
  CHECK(owners[0].size() == static_cast<std::size_t>(placement.experts()));
  CHECK(owners[0].back() == json::array({placement.owners(0, placement.experts() - 1)[0]}));
  // A random placement has an entry for each round, and one for the experts after the last of them.
  scenario.strategy.placement = costmodel::PlacementKind::random;
  sim::RunOptions all;
  all.all_rounds = true;
  const sim::SimulatedRun redrawn = sim::simulate_scenario(scenario, all);
  const json many = json::parse(scenario::plan_json(redrawn.plan, redrawn.executed))["placements"];
  CHECK(many.back()["rounds"].back() == redrawn.plan.rounds);
}

TEST_CASE("operations that wait for earlier rounds than the previous one") {
  costmodel::Scenario scenario = ideal_scenario("async_diloco", 3);
  scenario.platform.sites[2].compute_factor = 2;
  for (const std::int64_t staleness : {0, 1, 3}) {
    scenario.strategy.staleness = staleness;
    check_round_trip(scenario);
  }
}

TEST_CASE("sites at their own pace: the averaged rates of paths are written and read again") {
  costmodel::Scenario scenario = ideal_scenario("async_diloco", 3);
  scenario.platform = platforms::uniform(3, 1e9, 5e8, 0.01);
  scenario.platform.sites[2].compute_factor = 2;
  check_round_trip(scenario);
  const sim::SimulatedRun made = sim::simulate_scenario(scenario, {});
  const json document = json::parse(scenario::plan_json(made.plan, made.executed));
  CHECK(document["classes"][0]["own_pace"] == true);
  const json& paths = document["averaged_paths"];  // from both remote sites to the server's site and back
  REQUIRE(paths.size() == 4);
  CHECK(paths[0]["from"] == 1);
  CHECK(paths[0]["to"] == 0);
  CHECK(paths[0]["bytes_per_s"] == made.plan.averaged_paths[0].bytes_per_s);
}

TEST_CASE("queued transfers arrive in their order, whichever of them its sender could begin first") {
  const Folder folder;
  const std::string send =
      R"("transfer": {"pattern": "point_to_point", "collective": "direct", "exchanges": [{"nodes": [0, 1],)"
      R"( "payloads": [{"content": "activation", "traffic": "activation", "bytes": 12500000}]}]})";
  write_all(
      folder / "p.json",
      R"({"schema": "fomoe.plan/1",)"
      R"( "nodes": [{"kind": "worker", "site": 0, "sequences": 4}, {"kind": "worker", "site": 1, "sequences": 4},)"
      R"( {"kind": "worker", "site": 2, "sequences": 4}], "groups": [],)"
      R"( "classes": [{"count": 1, "steps": 1, "rounds": [0]}], "rounds": [{"indices": [0], "ops": [)"
      R"({"name": "step", "compute": {"work": "whole_step", "nodes": [0]}, "after": []},)"
      R"({"name": "first", )" +
          send +
          R"(, "after": [0]},)"
          R"({"name": "second", )" +
          send + R"(, "after": [], "receive_after": [1]}]}]})");
  costmodel::Scenario scenario = ideal_scenario("ddp", 3);
  for (const double longer_s : {0.0, 0.03}) {
    scenario.platform = platforms::uniform(3, 12.5e6, 12.5e6, 0.1);
    platforms::Path path = scenario.platform.path(1, 2);
    path.latency_s += longer_s;
    scenario.platform.paths.set(1, 2, path);
    // A step of 1 s, then 0.1 s of latency and 2 s of bytes.
    const costmodel::Plan plan = scenario::read_plan(folder / "p.json", 3);
    CHECK(sim::simulate_plan(scenario, plan, {}).report.wall_clock_s == doctest::Approx(3.1).epsilon(1e-9));
  }
}

TEST_CASE("hub and spoke by hand") {
  const Folder folder;
  write_all(folder / "s.toml", kThreeSites);
  const Ran ran =
      run_in(folder.path(), "fomoe simulate s.toml --traffic-plan " + kHubAndSpoke + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json report = json::parse(ran.out);
  // 5 steps; then two spokes share the hub's downlink of 125 MB/s, and then its uplink.
  const double steps_s = 5 * 0.1, reduce_s = 0.02 + 2 * 250e6 / 125e6, broadcast_s = 0.02 + 2 * 250e6 / 125e6;
  CHECK(report["wall_clock_s"].get<double>() ==
        doctest::Approx(10 * (steps_s + reduce_s + broadcast_s)).epsilon(1e-9));
  CHECK(report["sites"][0]["bytes_sent"] == 10 * 2 * 250e6);
  CHECK(report["sites"][1]["bytes_sent"] == 10 * 250e6);
  CHECK(report["optimizer_steps"] == 50);
  CHECK(report["notes"].dump().find("hub-and-spoke.json") != std::string::npos);
}

TEST_CASE("--write-plan, then --traffic-plan, on the command line") {
  const Folder folder;
  write_all(folder / "s.toml", kThreeSites);
  const Ran wrote = run_in(folder.path(), "fomoe simulate s.toml --write-plan p.json --output a.json");
  REQUIRE_MESSAGE(wrote.exit_status == 0, wrote.err);
  const Ran again = run_in(folder.path(), "fomoe simulate s.toml --traffic-plan p.json --output b.json");
  REQUIRE_MESSAGE(again.exit_status == 0, again.err);
  json first = json::parse(read_all(folder / "a.json")), second = json::parse(read_all(folder / "b.json"));
  // A user's own plan has no closed form.
  CHECK(second["sensitivity"].empty());
  for (const char* formula : {"sent_bytes_per_site", "bandwidth_curve"})
    CHECK_FALSE(second.contains(formula));
  CHECK(second["bottleneck"]["waits_for"] == "");
  first["bottleneck"].erase("waits_for");
  second["bottleneck"].erase("waits_for");
  for (const char* other : {"notes", "sensitivity", "sent_bytes_per_site", "bandwidth_curve"}) {
    first.erase(other);
    second.erase(other);
  }
  CHECK(first == second);
}

TEST_CASE("wrong plans give exit status 2 and the place of the mistake, and leave no file") {
  struct Wrong {
    std::string pointer;  // place in the valid plan, as a JSON pointer
    json value;           // the value to put there; null removes the key
    std::string message;  // beginning of the message after the file's name
  };
  const std::string ops = "/rounds/0/ops", at = ": rounds[0].ops";
  const std::string payload = ops + "/1/transfer/exchanges/0/payloads/0";
  const std::string payload_at = at + "[1].transfer.exchanges[0].payloads[0]";
  const std::vector<Wrong> cases = {
      {"/schema", "fomoe.plan/9", ":1: schema: got \"fomoe.plan/9\"; expected \"fomoe.plan/1\""},
      {"/nods", 3, ": nods: got an unknown key; expected one of schema, optimizer_steps, nodes, groups"},
      {"/nodes", json::array(), ": nodes: got an empty array; expected an array with at least one entry"},
      {"/nodes/2/site", 3,
       ": nodes[2].site: got 3; expected a site of the scenario's platform, a whole number from 0 to 2"},
      {"/nodes/0/sequences", -1, ": nodes[0].sequences: got -1; expected sequences of a step, zero or more"},
      {"/nodes/0/kind", "hub", ": nodes[0].kind: got \"hub\"; expected one of \"worker\", \"server\""},
      {"/classes/0/count", 0, ": classes[0].count: got 0; expected a whole number from 1 to 1000000000"},
      {"/classes/0/rounds", json::array({7}),
       ": classes[0].rounds: got 7; expected the index of a round in the list rounds"},
      {"/classes/0/overlapping", true,
       ": classes[0].rounds: got 1 rounds; expected at least 5 if rounds overlap"},
      {"/averaged_paths", json::array({{{"from", 0}, {"to", 3}, {"bytes_per_s", 1e6}}}),
       ": averaged_paths[0].to: got 3; expected a whole number from 0 to 2"},
      {"/averaged_paths", json::array({{{"from", 1}, {"to", 1}, {"bytes_per_s", 1e6}}}),
       ": averaged_paths[0].to: got 1; expected another site than \"from\""},
      {"/averaged_paths", json::array({{{"from", 1}, {"to", 0}, {"bytes_per_s", 0}}}),
       ": averaged_paths[0].bytes_per_s: got 0; expected bytes per second, more than zero"},
      {"/rounds/0/indices", json::array({0, 0}),
       ": rounds[0].indices: got 0 twice; expected each round once"},
      {ops + "/2/after", json::array({2}),
       at + "[2].after: got 2; expected earlier operations, whole numbers from 0 to 1"},
      {ops + "/1/after", json::array({2}),
       at + "[1].after: got 2; expected earlier operations, whole numbers from 0 to 0"},
      {ops + "/0/after", json::array({0}),
       at + "[0].after: got 0; expected no operation, because this is the first one"},
      {ops + "/1/after", 0, at + "[1].after: got 0; expected an array"},
      {ops + "/1/after", json::array({-1}), at + "[1].after: got -1; expected earlier operations"},
      {ops + "/0/compute/nodes", json::array({0, 3}),
       at + "[0].compute.nodes: got 3; expected different nodes of the plan, whole numbers from 0 to 2"},
      {ops + "/0/compute/nodes", json::array({1, 1}),
       at + "[0].compute.nodes: got 1 twice; expected different nodes"},
      {ops + "/0/compute/work", "rest", at + "[0].compute.work: got \"rest\"; expected one of \"gradients\""},
      {ops + "/0/compute/repeat", 1.5, at + "[0].compute.repeat: got 1.5; expected a whole number from 0"},
      {ops + "/0/compute", nullptr,
       at + "[0].compute: got nothing; expected exactly one of compute and transfer"},
      {ops + "/1/transfer/pattern", "gossip",
       at + "[1].transfer.pattern: got \"gossip\"; expected one of \"all_reduce\""},
      {ops + "/1/transfer/pattern", "point_to_point",
       at + "[1].transfer.exchanges[0].nodes: got 3 nodes; expected the sender and the receiver"},
      {ops + "/1/name", 5, at + "[1].name: got 5; expected a string"},
      {ops + "/1/after_previous_round", json::array({3}),
       at + "[1].after_previous_round: got 3; expected operations of a round, whole numbers from 0 to 2"},
      {ops + "/1/after_earlier", json::array({{{"op", 0}, {"rounds_back", 0}}}),
       at + "[1].after_earlier[0].rounds_back: got 0; expected a whole number from 1 to"},
      {ops + "/1/after_earlier", json::array({2}),
       at + "[1].after_earlier[0]: got number; expected an object"},
      {ops + "/1/receive_after", json::array({0}),
       at + "[1].receive_after: got 0; expected earlier transfers between the same two nodes, with the "
            "pattern point_to_point and one exchange, as this one"},
      {payload + "/bytes", -1, payload_at + ".bytes: got -1; expected a whole number from 0 to"},
      {payload + "/elements", 5,
       payload_at + ".bytes: got both bytes and elements; expected only one of them"},
      {payload + "/bytes", nullptr,
       payload_at + ".bytes: got nothing; expected bytes, or elements with format"},
  };
  const json good = json::parse(read_all(kHubAndSpoke));
  for (const Wrong& wrong : cases) {
    json plan = good;
    const json::json_pointer pointer(wrong.pointer);
    if (wrong.value.is_null()) {
      plan[pointer.parent_pointer()].erase(pointer.back());
    } else {
      plan[pointer] = wrong.value;
    }
    const Folder folder;
    write_all(folder / "s.toml", kThreeSites);
    write_all(folder / "P.json", plan.dump());
    const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --traffic-plan P.json --output answer.json");
    CAPTURE(ran.err);
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(ran.err.starts_with("P.json" + wrong.message), wrong.message);
    CHECK(ran.err.find("; for example ") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "answer.json"));
  }
}

TEST_CASE("a plan from a file that describes one of ten equal rounds is simulated with connections") {
  const Folder folder;
  write_all(folder / "s.toml", kThreeSites);
  const auto report = [&](const std::string& options) {
    const Ran ran = run_in(folder.path(),
                           "fomoe simulate s.toml --traffic-plan " + kHubAndSpoke + options + " --output -");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return json::parse(ran.out);
  };
  const json ideal = report(""), connected = report(" --set network_model.host=linux");
  CHECK(connected["round"]["count"] == 10);
  CHECK(connected["sites"][0]["bytes_sent"] == ideal["sites"][0]["bytes_sent"]);
  const double longer = connected["wall_clock_s"].get<double>() / ideal["wall_clock_s"].get<double>();
  CHECK(longer > 1.05);  // headers alone take 5 % of the transfers
  CHECK(longer < 1.3);
}

TEST_CASE("options that cannot be combined with a plan from a file") {
  const Folder folder;
  write_all(folder / "s.toml", kThreeSites);
  json sample = json::parse(read_all(kHubAndSpoke));
  sample["classes"][0]["identical"] = false;
  write_all(folder / "sample.json", sample.dump());
  write_all(folder / "half.json", "{\n\"schema\": ");
  const auto expect = [&](const std::string& options, const std::string& message) {
    const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output a.json " + options);
    CHECK(ran.exit_status == 2);
    CHECK(ran.err.starts_with(message));
    CHECK_FALSE(std::filesystem::exists(folder / "a.json"));
  };
  expect("--traffic-plan sample.json --rounds 4",
         "fomoe: --rounds: got 4; expected at most 1, the number of rounds that the plan describes; for "
         "example");
  json idle = json::parse(read_all(kHubAndSpoke));
  idle["rounds"][0]["ops"] =
      json::array({{{"name", "nothing"}, {"compute", {{"work", "outer_step"}, {"nodes", {0}}}}}});
  write_all(folder / "idle.json", idle.dump());
  expect("--traffic-plan idle.json", "fomoe: --traffic-plan: got a plan that takes no time; expected");
  expect("--traffic-plan half.json",
         "half.json:2: plan: got text that is not valid JSON; expected a plan; for example");
  expect("--traffic-plan no.json", "no.json:1: plan: got no readable file; expected a plan");
  expect("--write-plan p.json --engine closed-form",
         "fomoe: --write-plan: got this option with --engine closed-form");
  expect("--traffic-plan sample.json --engine closed-form",
         "fomoe: --traffic-plan: got this option with --engine closed-form");
  expect("--write-plan -", "fomoe: --write-plan: got \"-\"; expected a file");
}
