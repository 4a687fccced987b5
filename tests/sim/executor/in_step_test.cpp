// Tests methods that send inside a step, and modules that only some sites share. In the ideal case the
// simulation agrees with the closed form to 1e-9, if all sites do the same work.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::Scenario;

using tests::check_close, tests::check_equal_reports;

TEST_CASE("ideal: fsdp and experts on other sites, simulated = closed form") {
  for (const char* method : {"fsdp", "expert_parallel_wan", "remote_experts"}) {
    for (const int sites : {2, 4, 8}) {
      for (const Collective collective : {Collective::ring, Collective::direct}) {
        CAPTURE(method);
        CAPTURE(sites);
        Scenario scenario = tests::ideal_scenario(method, sites);
        scenario.strategy.collective = collective;
        check_equal_reports(scenario);
      }
    }
  }
}

TEST_CASE("ideal: padded buffers and a repeated forward pass of experts, simulated = closed form") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  scenario.model.vocabulary = 100000;  // the unembedding, a third of the FLOPs, is not repeated
  scenario.strategy.capacity_factor = 1.5;
  for (const bool checkpointing : {false, true}) {
    scenario.gpus.activation_checkpointing = checkpointing;
    check_equal_reports(scenario);
  }
}

TEST_CASE("latency is paid once for each of the 4·L exchanges of a step, simulated as in closed form") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  scenario.platform = platforms::uniform(4, 1e9, 1e9, 0.010);
  check_equal_reports(scenario);
}

TEST_CASE("a capacity factor and a limit of sites, simulated = closed form") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  scenario.strategy.capacity_factor = 1.25;
  check_equal_reports(scenario);
  scenario.strategy.max_sites_per_token = 1;
  check_equal_reports(scenario);
}

TEST_CASE("uneven experts on two sites: both wait for the busier one, simulated = closed form") {
  // With two sites each port carries one flow. With more sites the formula is only a bound: it counts the
  // busiest port of every transfer, while flows into idle sites leave capacity unused.
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 2);
  scenario.strategy.routing_counts = costmodel::make_routing_counts(2, 8, 1);
  for (int layer = 0; layer < 2; ++layer) {
    for (int expert = 0; expert < 8; ++expert)
      scenario.strategy.routing_counts.at(layer, expert, 0) = expert < 4 ? 3 : 1;
  }
  check_equal_reports(scenario, false);
}

TEST_CASE("ideal: pipeline, links faster and slower than compute, simulated = closed form") {
  for (const int sites : {2, 4, 8}) {
    for (const int micro_batches : {1, 2, 8}) {
      for (const double bytes_per_s : {1e4, 1e6, 3e6, 1e9}) {
        CAPTURE(sites);
        CAPTURE(micro_batches);
        CAPTURE(bytes_per_s);
        Scenario scenario = tests::ideal_scenario("pipeline_wan", sites);
        scenario.workload.global_batch_sequences = 8;
        scenario.workload.tokens = 60 * 8 * 10;
        scenario.strategy.micro_batches = micro_batches;
        scenario.platform = platforms::uniform(sites, bytes_per_s, bytes_per_s, 0);
        check_equal_reports(scenario, false);
      }
    }
  }
}

TEST_CASE(
    "ideal: di_paco, simulated = closed form, direct; with a ring where all sites have like neighbours") {
  for (const int choices : {1, 2, 4}) {
    for (const int levels : {1, 2}) {
      CAPTURE(choices);
      CAPTURE(levels);
      Scenario scenario = tests::ideal_scenario("di_paco", 4);
      scenario.strategy.module_levels = levels;
      scenario.strategy.module_choices = choices;
      scenario.strategy.collective = Collective::direct;
      check_equal_reports(scenario);
      // With two levels of two choices on a ring, site 0 sends to two neighbours and site 1 to three.
      if (choices == 2 && levels == 2) continue;
      scenario.strategy.collective = Collective::ring;
      check_equal_reports(scenario);
    }
  }
}

TEST_CASE("ideal: hierarchical all-reduces and masked sums, simulated = closed form") {
  for (const char* method : {"ddp", "diloco", "local_adamw", "fomoe"}) {
    for (const int regions : {2, 4}) {
      CAPTURE(method);
      CAPTURE(regions);
      Scenario scenario = tests::ideal_scenario(method, 8);
      scenario.strategy.collective = Collective::hierarchical;
      scenario.strategy.regions = regions;
      check_equal_reports(scenario);
      scenario.platform = platforms::uniform(8, 1e9, 1e9, 0.010);
      check_equal_reports(scenario);  // also with equal latencies, of which there are 2(n−1) + 2(R−1)
      scenario.strategy.secure_aggregation = true;
      check_equal_reports(scenario);
    }
  }
}

namespace {

// A sequence takes 1 s in all layers, in place of a given step time, which holds for any batch.
Scenario with_batch(const std::string& method, int sites, std::int64_t batch) {
  Scenario scenario = tests::ideal_scenario(method, sites);
  scenario.model.layers = 8;
  scenario.workload.global_batch_sequences = batch;
  scenario.workload.tokens = 4 * batch * scenario.model.sequence_length;
  scenario.compute = costmodel::AssumedDevice{
      2 * costmodel::flops_per_token(scenario).total() * static_cast<double>(scenario.model.sequence_length),
      0.5, 0};
  scenario.platform = platforms::uniform(sites, 1e18, 1e18, 0);
  return scenario;
}

void check_step_s(const Scenario& scenario, double expected) {
  CHECK(tests::simulated_wholly(scenario).round.duration_s == doctest::Approx(expected).epsilon(1e-6));
  CHECK(costmodel::closed_form(scenario).round.duration_s == doctest::Approx(expected).epsilon(1e-6));
}

}  // namespace

TEST_CASE("a batch that is no multiple of the sites: every stage of a pipeline computes all of it") {
  for (const int sites : {2, 4, 8}) {
    for (const int batch : {8, 9, 11}) {
      Scenario scenario = with_batch("pipeline_wan", sites, batch);
      scenario.strategy.micro_batches = batch;
      // (n + M − 1)/n · B·f/M
      check_step_s(scenario, (batch + sites - 1.0) / sites);
    }
  }
}

TEST_CASE("a batch that is no multiple of the sites: experts have an equal part of it at every site") {
  for (const char* method : {"expert_parallel_wan", "remote_experts"}) {
    for (const int batch : {8, 9, 11}) {
      const Scenario scenario = with_batch(method, 8, batch);
      const costmodel::FlopsPerToken flops = costmodel::flops_per_token(scenario);
      const double experts = flops.expert / flops.total(), again = method[0] == 'r' ? 4.0 / 3 : 1;
      check_step_s(scenario, std::ceil(batch / 8.0) * (1 - experts) + batch / 8.0 * experts * again);
      // A given step time is that of the site, whatever its part of the batch.
      Scenario given = scenario;
      given.compute = costmodel::GivenStepTime{1.0};
      check_step_s(given, 1 - experts + experts * again);
    }
  }
}

TEST_CASE("the last micro-batch is smaller: only its backward pass hides the buckets of ddp") {
  Scenario scenario = with_batch("ddp", 2, 10);  // 5 sequences of a site: 4 and 1
  scenario.strategy.fragments = 4;
  scenario.gpus.micro_batch_sequences = 4;
  const double all = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  scenario.platform = platforms::uniform(2, all / 3, all / 3, 0);  // 3 s for all buckets
  // They leave after 4 s, the last forward pass, and the last backward pass of the unembedding and two
  // layers.
  const double head =
      costmodel::unembedding_flops(scenario.model) / costmodel::flops_per_token(scenario).total();
  check_step_s(scenario, 4 + 1.0 / 3 + 2.0 / 3 * (head + (1 - head) / 4) + 3);
}

TEST_CASE(
    "fsdp and layerwise fragments: the unembedding after the forward pass of all layers, before the "
    "backward pass of all") {
  for (const char* method : {"fsdp", "ddp", "diloco", "streaming_diloco"}) {
    for (const bool again : {false, true}) {
      for (const double seconds : {0.3, 1.0, 3.0}) {
        Scenario scenario = with_batch(method, 2, 10);
        scenario.model.vocabulary = 40000;  // a fifth of the FLOPs
        scenario.model.tied_embeddings = false;
        scenario.strategy.local_steps = 4;
        scenario.strategy.fragments = std::string(method) == "diloco" ? 1 : 4;
        scenario.strategy.layerwise = true;
        scenario.gpus.activation_checkpointing = again;
        scenario.gpus.micro_batch_sequences = std::string(method) == "fsdp" ? 5 : 4;
        const double all = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
        scenario.platform = platforms::uniform(2, all / seconds, all / seconds, 0);
        CAPTURE(method);
        CAPTURE(seconds);
        check_step_s(scenario, costmodel::closed_form(scenario).round.duration_s);
      }
    }
  }
}

TEST_CASE("ideal: ddp in buckets, simulated = closed form, with slow links, fast links and micro-batches") {
  for (const int buckets : {2, 3, 6}) {
    for (const double bytes_per_s : {1e7, 3e9, 1e13}) {
      for (const std::int64_t micro_batch : {0, 1}) {
        CAPTURE(buckets);
        CAPTURE(bytes_per_s);
        CAPTURE(micro_batch);
        Scenario scenario = tests::ideal_scenario("ddp", 4);
        scenario.model.layers = 6;
        scenario.strategy.fragments = buckets;
        scenario.workload.global_batch_sequences = 16;  // 4 per site
        scenario.gpus.micro_batch_sequences = micro_batch;
        scenario.platform = platforms::uniform(4, bytes_per_s, bytes_per_s, 0);
        check_equal_reports(scenario);
      }
    }
  }
}

TEST_CASE("buckets behind the backward pass shorten a step, and never below its compute or its bytes") {
  Scenario scenario = tests::ideal_scenario("ddp", 4);
  scenario.model.layers = 12;
  const auto payload = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  const double bytes_per_s = 2 * 0.75 * payload / 0.5;  // half of the step's second
  scenario.platform = platforms::uniform(4, bytes_per_s, bytes_per_s, 0);
  double before = 1.5 + 1e-9;
  for (const int buckets : {1, 2, 3, 4, 6, 12}) {
    scenario.strategy.fragments = buckets;
    const double step_s = sim::simulate_scenario(scenario).report.round.duration_s;
    CHECK(step_s < before);
    CHECK(step_s > 1);
    before = step_s;
  }
  CHECK(before < 1.1);  // a twelfth of the 0.5 s (0.04 s) and the embedding tables are exposed
}

TEST_CASE("two halves in turn: each one computes while the other one's activations travel") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 2);
  scenario.workload.global_batch_sequences = 4;
  scenario.strategy.overlap_dispatch = true;
  const auto wall_clock_s = [&](std::int64_t layers, double latency_s) {
    scenario.model.layers = layers;
    scenario.workload.tokens = scenario.workload.global_batch_sequences * scenario.model.sequence_length;
    scenario.compute =
        costmodel::GivenStepTime{0.6 * static_cast<double>(layers)};   // 0.2 s and 0.4 s a layer
    scenario.platform = platforms::uniform(2, 1e18, 1e18, latency_s);  // transfers take their latency
    return sim::simulate_scenario(scenario).report.wall_clock_s;
  };
  for (const std::int64_t d_expert : {16, 3000, 200'000}) {
    scenario.model.d_expert = d_expert;
    scenario.model.layers = 20;
    const double experts = costmodel::fixed_of(scenario).expert_compute_share;
    for (const double t : {0.0, 0.01, 0.05, 0.09, 0.2, 0.5}) {
      const auto cycle_s = [&](double layer_s) {
        const double d = layer_s * (1 - experts) / 2, e = layer_s * experts / 2;
        return 2 * std::max(d, t) + 2 * std::max(e, t);
      };
      CAPTURE(t);
      CAPTURE(experts);
      const double both_passes_s = cycle_s(0.2) + cycle_s(0.4);
      CHECK(wall_clock_s(60, t) - wall_clock_s(20, t) == doctest::Approx(40 * both_passes_s).epsilon(0.002));
      scenario.model.layers = 60;
      CHECK(costmodel::closed_form(scenario).wall_clock_s <= wall_clock_s(60, t) * (1 + 1e-9));
    }
  }
}

TEST_CASE("ideal: pipelines side by side, simulated = closed form") {
  for (const bool tied : {true, false}) {
    for (const int stage_sites : {1, 2, 4, 8}) {
      for (const double bytes_per_s : {1e6, 1e8, 1e18}) {
        Scenario scenario = tests::ideal_scenario("pipeline_wan", 8);
        scenario.model.layers = 8;
        scenario.model.tied_embeddings = tied;
        scenario.workload.global_batch_sequences = 32;
        scenario.workload.tokens = 60LL * 32 * scenario.model.sequence_length;
        scenario.strategy.micro_batches = 4;
        scenario.strategy.stage_sites = stage_sites;
        scenario.platform = platforms::uniform(8, bytes_per_s, bytes_per_s, 0.01);
        CAPTURE(tied);
        CAPTURE(stage_sites);
        check_equal_reports(scenario, false);
      }
    }
  }
}
