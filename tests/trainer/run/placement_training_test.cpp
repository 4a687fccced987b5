// Tests partial replicas in training: which sites hold which experts, and that all holders of an expert
// agree.
#include <algorithm>
#include <cmath>
#include <set>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/trainer/run/training_case.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

constexpr int kSites = 4;

costmodel::Scenario partial_replicas(int overlap, costmodel::PlacementKind placement, bool skip_token) {
  costmodel::Scenario scenario = training_scenario("fomoe", kSites, overlap);
  scenario.strategy.placement = placement;
  scenario.strategy.skip_token = skip_token;
  return scenario;
}

std::vector<int> held(Training& training, int node, int layer) {
  return local_experts(training.scenario.model, training.executor.worker(node).model().options().experts,
                       layer);
}

/// The part of a node's tensor that belongs to one expert.
at::Tensor part(Training& training, int node, int layer, int expert, const std::string& role,
                const std::string& state = "") {
  const std::vector<int> local = held(training, node, layer);
  const auto row = std::find(local.begin(), local.end(), expert) - local.begin();
  const at::Tensor whole = training.tensor(node, "layers." + std::to_string(layer) + "." + role + state);
  return whole.select(role == "router" ? 1 : 0, row);
}

}  // namespace

TEST_CASE("after every round each expert lives on O_e sites, which agree on its weights and outer state") {
  for (const int overlap : {1, 2, 3}) {
    for (const bool skip_token : {false, true}) {
      for (const auto optimizer :
           {costmodel::OuterOptimizer::nesterov, costmodel::OuterOptimizer::local_adamw}) {
        CAPTURE(overlap);
        CAPTURE(skip_token);
        costmodel::Scenario scenario =
            partial_replicas(overlap, costmodel::PlacementKind::random, skip_token);
        scenario.strategy.outer_optimizer = optimizer;
        Training training(scenario, real_options());
        const int layers = static_cast<int>(scenario.model.layers);
        const int experts = static_cast<int>(scenario.model.experts);
        for (std::int64_t round = 0; round < training.plan.rounds; ++round) {
          training.run(1);
          const costmodel::Placement placement = training.plan.placement(round + 1);
          for (int layer = 0; layer < layers; ++layer) {
            for (int expert = 0; expert < experts; ++expert) {
              std::vector<int> owners;
              for (int node = 0; node < kSites; ++node) {
                const std::vector<int> local = held(training, node, layer);
                if (std::find(local.begin(), local.end(), expert) != local.end()) owners.push_back(node);
              }
              const auto planned = placement.owners(layer, expert);
              REQUIRE(owners == std::vector<int>(planned.begin(), planned.end()));
              REQUIRE(static_cast<int>(owners.size()) == overlap);
              for (const int owner : owners) {
                for (const char* role : {"up", "down"}) {
                  CHECK(at::equal(part(training, owner, layer, expert, role),
                                  part(training, owners[0], layer, expert, role)));
                  if (optimizer == costmodel::OuterOptimizer::nesterov) {
                    CHECK(at::equal(part(training, owner, layer, expert, role, ".outer1"),
                                    part(training, owners[0], layer, expert, role, ".outer1")));
                    CHECK(at::equal(part(training, owner, layer, expert, role, ".anchor"),
                                    part(training, owner, layer, expert, role)));
                  }
                }
              }
            }
          }
          for (int node = 1; node < kSites; ++node)
            CHECK(at::equal(training.tensor(node, "embedding"), training.tensor(0, "embedding")));
        }
      }
    }
  }
}

TEST_CASE("outer state that migrates: every owner has the old owners', on a coarse wire as it was read") {
  using enum costmodel::OuterStateOnMigration;
  for (const auto optimizer : {costmodel::OuterOptimizer::nesterov, costmodel::OuterOptimizer::adam}) {
    for (const auto type :
         {costmodel::ElementType::fp32, costmodel::ElementType::bf16, costmodel::ElementType::int8}) {
      CAPTURE(to_string(optimizer));
      CAPTURE(to_string(type));
      costmodel::Scenario scenario = partial_replicas(2, costmodel::PlacementKind::random, false);
      scenario.strategy.outer_optimizer = optimizer;
      scenario.strategy.outer_state_on_migration = transfer;
      scenario.strategy.wire = costmodel::plain_format(type);
      costmodel::Scenario later = scenario;  // the same round of a plan that does not reshuffle yet
      later.strategy.reshuffle_rounds = 100;
      TrainingOptions options = real_options();
      options.outer.kind = optimizer;
      Training training(scenario, options), before(later, options);
      training.run(1);
      before.run(1);
      const costmodel::Placement from = training.plan.placement(0), to = training.plan.placement(1);
      const bool adam = optimizer == costmodel::OuterOptimizer::adam;
      int moved = 0;
      for (int layer = 0; layer < 2; ++layer) {
        for (int expert = 0; expert < 4; ++expert) {
          const auto old_owners = from.owners(layer, expert), owners = to.owners(layer, expert);
          const bool moves = !std::equal(old_owners.begin(), old_owners.end(), owners.begin());
          for (const char* state : {"", ".anchor", ".outer1", ".outer2"}) {
            if (std::string(state) == ".outer2" && !adam) continue;
            const at::Tensor was = part(before, old_owners[0], layer, expert, "up", state);
            CHECK(was.abs().max().item<double>() > 0);
            for (const int owner : owners) {
              const at::Tensor is = part(training, owner, layer, expert, "up", state);
              CHECK(at::equal(is, part(training, owners[0], layer, expert, "up", state)));
              const bool exact = type == costmodel::ElementType::fp32 || !moves;
              if (exact) CHECK(at::equal(is, was));
              // bf16 keeps 8 bits, and int8 an integer multiple of 1/127 of the largest value of a block.
              CHECK(largest_difference(is, was) <= was.abs().max().item<double>() / 100);
            }
          }
          moved += moves;
        }
      }
      CHECK(moved > 0);
      // The migration sends as many more values as there are outer moments.
      std::int64_t migrated = 0, others = 0;
      costmodel::Scenario resets = scenario;
      resets.strategy.outer_state_on_migration = reset_all_owners;
      Training reset(resets, options);
      reset.run(1);
      for (int node = 0; node < kSites; ++node) {
        migrated += training.transport.traffic(node).sent[2];
        others += reset.transport.traffic(node).sent[2];
      }
      CHECK(migrated == (adam ? 3 : 2) * others);
      training.run();  // training continues after a migration
    }
  }
}

TEST_CASE("outer state that is not sent starts anew at all owners, also at those that stay") {
  Training training(partial_replicas(2, costmodel::PlacementKind::random, false), real_options());
  training.run(1);
  const costmodel::Placement from = training.plan.placement(0), to = training.plan.placement(1);
  int kept = 0, reset = 0;
  for (int layer = 0; layer < 2; ++layer) {
    for (int expert = 0; expert < 4; ++expert) {
      const auto old_owners = from.owners(layer, expert), owners = to.owners(layer, expert);
      const bool moves = !std::equal(old_owners.begin(), old_owners.end(), owners.begin());
      for (const int owner : owners) {
        const at::Tensor state = part(training, owner, layer, expert, "up", ".outer1");
        CHECK((state.count_nonzero().item<std::int64_t>() == 0) == moves);
      }
      (moves ? reset : kept) += 1;
    }
  }
  CHECK(reset > 0);
  CHECK(kept > 0);
}

TEST_CASE("after a synchronisation all sites hold the same weights, exactly where the method says so") {
  std::set<std::string> agreeing, differing;
  for (const costmodel::Method& method : costmodel::methods()) {
    costmodel::Scenario scenario = training_scenario(std::string(method.name), kSites);
    scenario.strategy.module_choices = 2;  // otherwise all sites are on one path
    scenario.strategy.regions = kSites;    // one region would have all sites
    try {
      (void)needs_of(scenario, costmodel::make_plan(scenario));
    } catch (const fomoe::InputError&) {
      continue;
    }
    CAPTURE(method.name);
    Training training(scenario, real_options());
    training.run(1);
    bool same = true;
    for (int node = 1; node < static_cast<int>(training.plan.nodes.size()); ++node)
      same = same && at::equal(training.weights(node), training.weights(0));
    CHECK(same == method.averages_everything);
    (same ? agreeing : differing).insert(std::string(method.name));
  }
  for (const char* known : {"ddp", "diloco", "local_sgd", "local_adamw", "fomoe", "streaming_diloco"})
    CHECK(agreeing.contains(known));
  CHECK(differing.contains("dept"));
}

TEST_CASE("what an outer step updates: all that a node holds, or what averages arrived of") {
  // DEPT keeps the embeddings as their sites trained them; the outer step covers the body alone.
  TrainingOptions options = exact_options();
  Training dept(training_scenario("dept", 2), options);
  Training average(training_scenario("local_sgd", 2), options);
  const at::Tensor start = dept.tensor(0, "layers.0.qkv").clone();
  dept.run(1);
  average.run(1);
  const at::Tensor mean =
      // mean of the locally trained embeddings
      (dept.tensor(0, "embedding") + dept.tensor(1, "embedding")) / 2;
  CHECK(largest_difference(mean, average.tensor(0, "embedding")) < 1e-13);
  const at::Tensor body = start - 0.7 * 1.9 * (start - average.tensor(0, "layers.0.qkv"));
  CHECK(largest_difference(dept.tensor(0, "layers.0.qkv"), body) < 1e-13);
  // With one owner per expert, no other site averages the expert, and the outer step uses the owner's own
  // difference.
  costmodel::Scenario alone = training_scenario("fomoe", 2, 1);
  costmodel::Scenario plain = alone;
  plain.strategy.outer_optimizer = costmodel::OuterOptimizer::average;
  Training fomoe(alone, options), trained(plain, options);
  const at::Tensor before = fomoe.tensor(0, "layers.0.up").clone();
  fomoe.run(1);
  trained.run(1);
  const at::Tensor after = before - 0.7 * 1.9 * (before - trained.tensor(0, "layers.0.up"));
  CHECK(largest_difference(fomoe.tensor(0, "layers.0.up"), after) < 1e-13);
}

TEST_CASE("a migrated expert arrives with its weights, zero moments and an own warm-up") {
  costmodel::Scenario scenario = partial_replicas(2, costmodel::PlacementKind::random, false);
  TrainingOptions options = real_options();
  options.inner.restart_warmup_steps = 8;
  Training training(scenario, options);
  // Stop before migration: use the same round of a plan that does not reshuffle yet.
  costmodel::Scenario later = scenario;
  later.strategy.reshuffle_rounds = 100;
  Training before(later, options);
  training.run(1);
  before.run(1);
  const costmodel::Placement from = training.plan.placement(0), to = training.plan.placement(1);
  int moved = 0, stayed = 0;
  for (int layer = 0; layer < 2; ++layer) {
    for (int expert = 0; expert < 4; ++expert) {
      const auto old_owners = from.owners(layer, expert);
      for (const int owner : to.owners(layer, expert)) {
        const bool kept = std::find(old_owners.begin(), old_owners.end(), owner) != old_owners.end();
        const std::vector<int> local = held(training, owner, layer);
        const auto row =
            static_cast<std::size_t>(std::find(local.begin(), local.end(), expert) - local.begin());
        const ExpertSteps steps =
            training.executor.worker(owner).inner().experts()[static_cast<std::size_t>(layer)][row];
        for (const char* role : {"router", "up", "down"}) {
          CHECK(at::equal(part(training, owner, layer, expert, role),
                          part(before, old_owners[0], layer, expert, role)));
          const at::Tensor moment = part(training, owner, layer, expert, role, ".moment2");
          if (kept) {
            CHECK(at::equal(moment, part(before, owner, layer, expert, role, ".moment2")));
          } else {
            CHECK(moment.count_nonzero().item<std::int64_t>() == 0);
          }
        }
        CHECK(steps.moments == (kept ? 4 : 0));
        CHECK(steps.since_restart == (kept ? -1 : 0));
        (kept ? stayed : moved) += 1;
      }
    }
  }
  CHECK(moved > 0);
  CHECK(stayed > 0);
  training.run(1);  // training continues with experts of unequal age
}

TEST_CASE("AdamW updates experts of unequal age as if each were alone") {
  Model model(tiny_shape(), {{}, at::kCPU, at::kDouble, 42});
  Model twin(tiny_shape(), {{}, at::kCPU, at::kDouble, 42});
  AdamWOptions options;
  options.learning_rate = 0.01;
  options.restart_warmup_steps = 4;
  AdamWOptions quarter;  // the rate in the first of four steps of the warm-up
  quarter.learning_rate = 0.01 / 4;
  AdamW mixed(model, options), alone(twin, quarter);
  at::manual_seed(1);
  const at::Tensor tokens = at::randint(17, {2, 6}, at::kLong);
  // Expert 1 of layer 0 has restarted. The twin is new and has the rate with which the restarted expert
  // begins.
  mixed.set_experts(0, {{50, -1}, {0, 0}, {50, -1}, {50, -1}});
  model.loss(tokens, tokens.roll(-1, 1)).backward();
  twin.loss(tokens, tokens.roll(-1, 1)).backward();
  mixed.step();
  alone.step();
  for (const Role role : {Role::router, Role::up, Role::down}) {
    const std::size_t index = parameter_index(0, role);
    const std::int64_t dim = role == Role::router ? 1 : 0;
    const auto row = [&](const Model& of, std::int64_t expert) {
      return of.parameters()[index].master.detach().select(dim, expert);
    };
    CHECK(largest_difference(row(model, 1), row(twin, 1)) < 1e-15);
    CHECK(largest_difference(row(model, 2), row(twin, 2)) > 1e-6);
  }
  CHECK(mixed.experts()[0][1] == ExpertSteps{1, 1});
  CHECK(mixed.experts()[0][2] == ExpertSteps{51, -1});
}

TEST_CASE("averaging second moments of unequal age: one bias correction for all owners") {
  MomentAges ages(3, 1, 1, /*beta2=*/0.95);
  ages.trained(0, 40);
  ages.trained(1, 40);
  ages.trained(2, 8);
  const double bias = (2 * (1 - std::pow(0.95, 40)) + 1 - std::pow(0.95, 8)) / 3;
  const double age = ages.averaged({0, 1, 2}, 0, 0);
  CHECK(1 - std::pow(0.95, age) == doctest::Approx(bias).epsilon(1e-12));
  CHECK(ages.averaged({0, 1, 2}, 0, 0) == age);  // equal ages stay exactly equal
}

TEST_CASE("bytes counted at the calls are the plan's, for every method that is trained") {
  std::set<std::string> trained;
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const auto placement : {costmodel::PlacementKind::fixed, costmodel::PlacementKind::random}) {
      for (const auto collective : {costmodel::Collective::ring, costmodel::Collective::direct}) {
        for (const bool skip_token : {false, true}) {
          costmodel::Scenario scenario =
              training_scenario(std::string(method.name), kSites, method.partial_experts ? 2 : 0);
          scenario.strategy.placement = placement;
          scenario.strategy.collective = collective;
          scenario.strategy.skip_token = skip_token;
          scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
          const costmodel::Plan plan = costmodel::make_plan(scenario);
          try {
            (void)needs_of(scenario, plan);
          } catch (const fomoe::InputError&) {
            continue;
          }
          trained.insert(std::string(method.name));
          CAPTURE(method.name);
          Training training(scenario, real_options());
          costmodel::SentBytes planned;
          for (std::int64_t round = 0; round < plan.rounds; ++round) {
            const auto sent = fomoe::tests::sent_in_round(plan, kSites, round);
            planned.dense += sent.dense;
            planned.expert_sync += sent.expert_sync;
            planned.migration += sent.migration;
          }
          training.run();
          training.executor.finish();
          BytesByClass counted{}, received{};
          for (int node = 0; node < static_cast<int>(plan.nodes.size()); ++node) {
            for (std::size_t c = 0; c < kTrafficClasses; ++c) {
              counted[c] += training.transport.traffic(node).sent[c];
              received[c] += training.transport.traffic(node).received[c];
            }
          }
          CHECK(counted == received);
          CHECK(static_cast<double>(counted[0]) == doctest::Approx(planned.dense * kSites).epsilon(1e-12));
          CHECK(static_cast<double>(counted[1]) ==
                doctest::Approx(planned.expert_sync * kSites).epsilon(1e-12));
          CHECK(static_cast<double>(counted[2]) ==
                doctest::Approx(planned.migration * kSites).epsilon(1e-12));
        }
      }
    }
  }
  for (const char* core : {"ddp", "centralised", "local_sgd", "diloco", "local_adamw", "fomoe"})
    CHECK(trained.contains(core));
}

TEST_CASE(
    "one owner each, fixed: only dense bytes move, and experts differ from site to site only by owner") {
  Training training(partial_replicas(1, costmodel::PlacementKind::fixed, false), real_options());
  training.run();
  for (int node = 0; node < kSites; ++node) {
    CHECK(training.transport.traffic(node).sent[0] > 0);
    CHECK(training.transport.traffic(node).sent[1] == 0);
    CHECK(training.transport.traffic(node).sent[2] == 0);
    CHECK(held(training, node, 0).size() == 1);
  }
}

TEST_CASE("what routers chose is counted: all slots without skip-token, ghosts among them with it") {
  for (const bool skip_token : {false, true}) {
    Training training(partial_replicas(2, costmodel::PlacementKind::fixed, skip_token), real_options());
    int steps = 0;
    training.executor.on_step = [&](const StepRecord& step) {
      ++steps;
      REQUIRE(step.routing->counts.size() == 2);
      for (const at::Tensor& counts : step.routing->counts) {
        CHECK(counts.numel() == (skip_token ? 4 : 2));
        CHECK(counts.sum().item<std::int64_t>() == step.tokens * 2);  // k = 2
      }
    };
    training.run(1);
    CHECK(steps == 4 * kSites);
  }
}
