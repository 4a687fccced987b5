// Tests the names of the operations of the model-parallel methods, which timelines and critical paths show.
// A name must say which part of the model and of the batch an operation belongs to.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

using Names = std::vector<std::string>;

RoundPlan round_of(const Scenario& scenario) { return tests::plan_of(scenario).round(0); }

Names names_of(const Scenario& scenario) {
  Names names;
  for (const Op& op : round_of(scenario).ops) names.push_back(op.name);
  return names;
}

Scenario pipeline(int sites, int stage_sites) {
  Scenario scenario = tests::ideal_scenario("pipeline_wan", sites);
  scenario.workload.global_batch_sequences = 4;
  scenario.strategy.micro_batches = 2;
  scenario.strategy.stage_sites = stage_sites;
  return scenario;
}

/// Two layers, of which the second has experts.
Scenario experts(const char* method) {
  Scenario scenario = tests::ideal_scenario(method, 2);
  scenario.model.moe_layer_list = {1};
  scenario.model.d_ffn = 48;
  scenario.workload.global_batch_sequences = 4;
  return scenario;
}

}  // namespace

TEST_CASE("names of a pipeline of two stages: micro-batch, stage and sender, and no number of a pipeline") {
  Scenario scenario = pipeline(2, 1);
  // Forward passes first; the first stage must wait for the gradients of the second one.
  const Names passes = {"forward 0 of stage 0",  "forward 0: transfer from stage 0",
                        "forward 1 of stage 0",  "forward 1: transfer from stage 0",
                        "forward 0 of stage 1",  "forward 1 of stage 1",
                        "backward 0 of stage 1", "backward 0: transfer from stage 1",
                        "backward 1 of stage 1", "backward 1: transfer from stage 1",
                        "backward 0 of stage 0", "backward 1 of stage 0"};
  Names expected = passes;
  expected.insert(expected.end(), {"all-reduce embedding gradients", "optimizer"});
  CHECK(names_of(scenario) == expected);
  scenario.model.tied_embeddings = false;  // each table is at one stage
  expected = passes;
  expected.emplace_back("optimizer");
  CHECK(names_of(scenario) == expected);
  // 1F1B: the last stage has a backward pass after each forward pass, the others as many as gpipe.
  scenario.strategy.schedule = PipelineSchedule::one_f_one_b;
  Names same = names_of(scenario);
  CHECK(std::find(same.begin(), same.end(), "backward 0 of stage 1") + 2 ==
        std::find(same.begin(), same.end(), "forward 1 of stage 1"));
  std::sort(same.begin(), same.end());
  std::sort(expected.begin(), expected.end());
  CHECK(same == expected);
}

TEST_CASE("names of pipelines side by side say which pipeline, and agree with the sites of the operations") {
  for (const int stage_sites : {2, 3}) {
    const int stages = 2, sites = stages * stage_sites;
    Scenario scenario = pipeline(sites, stage_sites);
    scenario.workload.global_batch_sequences = 2LL * stage_sites;
    const std::regex pass("(forward|backward) ([01]) of pipeline (\\d)(: transfer from| of) stage (\\d)");
    Names names, others;
    for (const Op& op : round_of(scenario).ops) {
      std::smatch found;
      if (!std::regex_match(op.name, found, pass)) {
        others.push_back(op.name);
        continue;
      }
      CAPTURE(op.name);
      names.push_back(op.name);
      // Stage i consists of the sites from i·W, and pipeline j has the j-th of them.
      const int pipeline = std::stoi(found[3]), stage = std::stoi(found[5]);
      if (const auto* compute = std::get_if<Compute>(&op.what)) {
        CHECK(found[4] == " of");
        CHECK(compute->nodes == std::vector<NodeId>{stage * stage_sites + pipeline});
        CHECK((compute->work == Work::forward) == (found[1] == "forward"));
      } else {
        CHECK(found[4] == ": transfer from");
        const int to = stage + (found[1] == "forward" ? 1 : -1);
        CHECK(std::get<Transfer>(op.what).exchanges.front().nodes ==
              std::vector<NodeId>{stage * stage_sites + pipeline, to * stage_sites + pipeline});
      }
    }
    // Each pipeline computes two micro-batches at two stages, twice, and sends each of them forth and back.
    CHECK(names.size() == static_cast<std::size_t>(stage_sites * (2 * 2 * 2 + 2 * 2)));
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    CHECK(others ==
          Names{"all-reduce gradients of each stage", "all-reduce embedding gradients", "optimizer"});
  }
}

TEST_CASE("names of fsdp: each unit is gathered for its pass, computed and reduced, as sharding says") {
  Scenario scenario = tests::ideal_scenario("fsdp", 4);
  scenario.strategy.fragments = 2;
  const auto names = [&](Sharding sharding) {
    scenario.strategy.sharding = sharding;
    return names_of(scenario);
  };
  const Names full = {"gather for forward of unit 0",
                      "gather for forward of unit 1",
                      "forward of unit 0",
                      "forward of unit 1",
                      "gather for backward of unit 1",
                      "gather for backward of unit 0",
                      "backward of unit 1",
                      "reduce gradients of unit 1",
                      "backward of unit 0",
                      "reduce gradients of unit 0",
                      "optimizer"};
  CHECK(names(Sharding::full_shard) == full);
  CHECK(names(Sharding::full_shard_no_sync) == full);  // with one micro-batch
  const auto without = [&](const std::string& part) {
    Names some = full;
    std::erase_if(some, [&](const std::string& name) { return name.starts_with(part); });
    return some;
  };
  CHECK(names(Sharding::shard_grad_op) == without("gather for backward"));
  CHECK(names(Sharding::hybrid_shard) == without("gather"));
}

TEST_CASE("names of expert parallelism: both passes of each layer, and of each half of the batch") {
  Scenario scenario = experts("expert_parallel_wan");
  const Names before = {"forward layer 0", "forward layer 1", "dispatch layer 1", "experts forward layer 1",
                        "combine layer 1"};
  const Names again = {"dispatch again layer 1", "combine again layer 1"};
  const Names after = {"combine backward layer 1", "experts backward layer 1", "dispatch backward layer 1",
                       "backward layer 1", "backward layer 0"};
  const Names end = {"all-reduce dense gradients", "optimizer"};
  const auto joined = [](const std::vector<Names>& parts) {
    Names all;
    for (const Names& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  CHECK(names_of(scenario) == joined({before, after, end}));
  scenario.gpus.activation_checkpointing = true;
  CHECK(names_of(scenario) == joined({before, again, after, end}));

  scenario.gpus.activation_checkpointing = false;
  scenario.strategy.overlap_dispatch = true;
  Names halves;
  for (const std::string& name : joined({before, after}))
    for (const char* half : {", first half", ", second half"}) halves.push_back(name + half);
  CHECK(names_of(scenario) == joined({halves, end}));

  Scenario remote = experts("remote_experts");
  Names stateless = after;
  stateless.insert(stateless.begin() + 1, "experts forward again layer 1");
  CHECK(names_of(remote) == joined({before, stateless, end}));
  remote.gpus.activation_checkpointing = true;
  CHECK(names_of(remote) == joined({before, again, stateless, end}));
}
