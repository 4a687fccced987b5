// Tests the notes of traffic plans: what a method ignores, and how it reads a scenario. Each note appears
// where it holds, and nowhere else.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

using Notes = std::vector<std::string>;

Notes notes_of(const Scenario& scenario) { return make_plan(scenario).notes; }

std::ptrdiff_t count(const Notes& notes, const std::string& part) {
  return std::count_if(notes.begin(), notes.end(),
                       [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

/// Whether a changed scenario of a method has one note more than the method's usual one, which begins so.
bool adds(const std::string& method, const std::string& begin, const std::function<void(Scenario&)>& change) {
  Scenario scenario = tests::ideal_scenario(method, 4);
  const Notes before = notes_of(scenario);
  change(scenario);
  Notes more = notes_of(scenario);
  for (const std::string& note : before) std::erase(more, note);
  CAPTURE(method);
  CAPTURE(begin);
  return more.size() == 1 && more.front().starts_with(begin);
}

}  // namespace

TEST_CASE(
    "notes: a method that synchronises in every step says that it ignores local_steps, and no other does") {
  for (const Method& method : methods()) {
    if (method.one_site) continue;  // it does not synchronise
    CAPTURE(method.name);
    Scenario scenario = tests::ideal_scenario(std::string(method.name), 2);
    scenario.strategy.local_steps = 1;
    CHECK(count(notes_of(scenario), "local_steps is ignored") == 0);
    scenario.strategy.local_steps = 2;
    CHECK(count(notes_of(scenario), "local_steps is ignored") == (method.every_step ? 1 : 0));
  }
}

TEST_CASE("notes: what each method assumes about the sites") {
  const auto usual = [](const char* method) { return notes_of(tests::ideal_scenario(method, 4)); };
  CHECK(count(usual("fedavg"), "fedavg: the server is at the first site") == 1);
  CHECK(count(usual("async_diloco"), "the server is at the first site, and its memory is not counted") == 1);
  CHECK(count(usual("pipeline_wan"), "all pipeline stages are assumed to take the same time") == 1);
  CHECK(count(usual("remote_experts"), "sites wait for the results of remote experts") == 1);
  CHECK(count(usual("fsdp"), "so a step of fsdp has one micro-batch") == 1);
  CHECK(count(usual("fomoe"), "expert_overlap equals the number of sites") == 1);
  CHECK(count(usual("centralised"), "the other sites are idle") == 1);
  CHECK(count(usual("centralised"), "the given step time is used as the time of the whole global batch") ==
        1);
  for (const char* method : {"diloco", "local_sgd", "gossip", "noloco", "des_loc", "diloco_x", "di_paco"}) {
    CAPTURE(method);
    CHECK(usual(method).empty());
  }
  CHECK(notes_of(tests::ideal_scenario("fomoe", 4, 2)).empty());
  Scenario device = tests::ideal_scenario("centralised", 4);
  device.compute = AssumedDevice{1e12, 0.4, 0};
  CHECK(notes_of(device).size() == 1);
  Scenario passes = tests::ideal_scenario("fsdp", 4);
  passes.gpus.micro_batch_sequences = 1;
  CHECK(count(notes_of(passes), "one micro-batch") == 0);
}

TEST_CASE("notes: options that change what a method does") {
  CHECK(adds("ddp", "compute.micro_batch_sequences is not given",
             [](Scenario& x) { x.strategy.fragments = 2; }));
  CHECK_FALSE(adds("ddp", "compute.micro_batch_sequences is not given", [](Scenario& x) {
    x.strategy.fragments = 2;
    x.gpus.micro_batch_sequences = 1;
  }));
  CHECK(adds("expert_parallel_wan", "tokens reach the experts of all sites, so skip_token is ignored",
             [](Scenario& x) { x.strategy.skip_token = true; }));
  CHECK(adds("expert_parallel_wan", "the capacity factor drops 50",
             [](Scenario& x) { x.strategy.capacity_factor = 0.5; }));
  CHECK(adds("diloco", "ring order site-0", [](Scenario& x) {
    // The given ring passes the slow paths from 0 to 1 and from 2 to 3. Only 0, 2, 1, 3 avoids both, either
    // way round.
    for (const auto& [a, b] : {std::pair(0, 1), std::pair(2, 3)}) {
      x.platform.set_latency(a, b, 1);
      x.platform.set_latency(b, a, 1);
    }
  }));
}

TEST_CASE("notes: the number format of parameters, where it is not that of the differences") {
  const auto wire = [](ElementType type, std::optional<ElementType> parameters) {
    return [=](Scenario& x) {
      x.strategy.wire = plain_format(type);
      x.strategy.parameter_dtype = parameters;
    };
  };
  CHECK(adds(
      "fedavg",
      "int8 holds for differences; where the method sends parameters, moments or outer state, they are bf16",
      wire(ElementType::int8, {})));
  CHECK(adds("fedavg", "parameters, moments and outer state are rounded to int8 on the wire",
             wire(ElementType::int8, ElementType::int8)));
  CHECK_FALSE(adds("fedavg", "", wire(ElementType::int8, ElementType::bf16)));
  CHECK_FALSE(adds("fedavg", "", wire(ElementType::fp32, {})));
  CHECK_FALSE(adds("ddp", "", wire(ElementType::int8, {})));  // it sends no parameters
}

TEST_CASE("notes: traffic beside the method's") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  ExtraTraffic& traffic = scenario.traffic;
  traffic.data_site = 0;
  traffic.data_bytes_per_token = 4;
  CHECK(notes_of(scenario).empty());
  traffic.checkpoint_site = 0;
  traffic.checkpoint_rounds = 7;
  CHECK(notes_of(scenario) ==
        Notes{"checkpoints: the upload of every 7 rounds is spread evenly over these rounds"});
  traffic.rejoin_site = 1;
  traffic.rejoin_rounds = 9;
  REQUIRE(notes_of(scenario).size() == 2);
  CHECK(notes_of(scenario).back() ==
        "rejoin: the state fetched every 9 rounds is spread evenly over these rounds");
}

TEST_CASE(
    "notes of a report: keys that the method does not have, and its plan's notes only in the simulation") {
  Scenario scenario = tests::ideal_scenario("local_sgd", 4);
  CHECK(closed_form(scenario).notes.empty());
  scenario.strategy.gossip_peers = 3;
  scenario.strategy.stage_sites = 2;
  CHECK(closed_form(scenario).notes == Notes{"local_sgd does not use gossip_peers, so its value is ignored",
                                             "local_sgd does not use stage_sites, so its value is ignored"});
  scenario = tests::ideal_scenario("local_sgd", 4);
  scenario.strategy.expert_overlap = 2;
  CHECK(closed_form(scenario).notes ==
        Notes{"local_sgd keeps every expert at every site, so expert_overlap is ignored"});
  scenario.strategy.expert_overlap = 0;
  CHECK(closed_form(scenario).notes.empty());
  scenario.strategy.dispatch_dtype = ElementType::fp8;
  CHECK(closed_form(scenario).notes ==
        Notes{"local_sgd does not use dispatch_dtype, so its value is ignored"});
  scenario = tests::ideal_scenario("ddp", 4);
  scenario.strategy.parameter_dtype = ElementType::bf16;
  CHECK(count(closed_form(scenario).notes, "ddp sends no parameters, so parameter_dtype is ignored") == 1);
}
