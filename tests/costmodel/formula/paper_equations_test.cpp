// Tests of the paper's equations by hand, of the paper's predictions, and of our closed form against the
// paper's master equation where its assumptions hold.
#include "costmodel/formula/paper_equations.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/placement.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using paper::Symbols;

TEST_CASE("paper: every equation by hand") {
  Symbols s;
  s.M = 4;
  s.O_e = 2;
  s.K = 10;
  s.gamma = 0.5;
  s.rho = 0.25;
  s.alpha = 0.2;
  s.S_dense = 1000;
  s.S_expert = 8000;
  s.N_tok = 1e6;
  s.B_g = 400;
  s.B_eff = 100;
  s.F_token = 6;
  s.MFU = 0.5;
  s.Phi_peak = 120;
  CHECK(paper::R(2) == 1);                   // 2·1/2
  CHECK(paper::R(1) == 0);                   // disjoint experts are not averaged
  CHECK(paper::P(2, 4, 0.5) == 0.25);        // 0.5·(1 − 2/4)
  CHECK(paper::B_dense(s) == 1500);          // 2·3/4·1000
  CHECK(paper::B_sparse(s) == 1.25 * 4000);  // (1 + 0.25)·(2/4)·8000
  CHECK(paper::BPT(s) == 4 * 6500.0 / (10 * 400));
  CHECK(paper::t_comp(s) == 10);  // 6·100/(0.5·120)
  CHECK(paper::t_comm(s) == 0.25 * 6500 / 100);
  CHECK(paper::rounds(s) == 250);  // 1e6/(10·400)
  CHECK(paper::T_tot(s) == doctest::Approx(250 * (10 * 10 + 0.8 * 16.25)).epsilon(1e-15));
  // LocalAdamW averages three times as many bytes, and migrates parameters alone: 3R + P.
  s.state_factor = 3;
  CHECK(paper::B_dense(s) == 4500);
  CHECK(paper::B_sparse(s) == (3 * 1 + 0.25) * 4000);
}

TEST_CASE(
    "paper: with every expert at every site experts cost as much as dense parameters and never migrate") {
  Symbols s;
  s.M = s.O_e = 8;
  s.gamma = 1;
  s.S_dense = s.S_expert = 1000;
  CHECK(paper::B_sparse(s) == paper::B_dense(s));
  CHECK(paper::P(8, 8, 1) == 0);
}

TEST_CASE("paper: the master equation is our closed form where α = 0, ρ = 1, no latency and whole rounds") {
  struct Case {
    const char* method;
    int sites, overlap;
    PlacementKind placement;
    std::int64_t reshuffle_rounds;
    double state_factor;
  };
  const Case cases[] = {
      {"diloco", 4, 4, PlacementKind::fixed, 1, 1}, {"local_adamw", 8, 8, PlacementKind::fixed, 1, 3},
      {"fomoe", 8, 1, PlacementKind::fixed, 1, 1},  {"fomoe", 8, 4, PlacementKind::fixed, 1, 1},
      {"fomoe", 8, 2, PlacementKind::random, 1, 1}, {"fomoe", 4, 1, PlacementKind::random, 3, 1},
      {"ddp", 4, 4, PlacementKind::fixed, 1, 1}};
  for (const Case& one : cases) {
    CAPTURE(one.method);
    CAPTURE(one.overlap);
    Scenario scenario = tests::ideal_scenario(one.method, one.sites, one.overlap);
    scenario.strategy.placement = one.placement;
    scenario.strategy.reshuffle_rounds = one.reshuffle_rounds;
    scenario.compute = AssumedDevice{1e15, 0.4};
    const RunReport ours = closed_form(scenario);

    const Fixed fixed = fixed_of(scenario);
    Symbols s;
    s.M = one.sites;
    s.O_e = one.overlap;
    s.K = std::string(one.method) == "ddp" ? 1 : 5;
    // 12 rounds of 5 steps. The paper's γ is 1/T; nothing moves after the last round.
    s.gamma = one.placement == PlacementKind::random ? (one.reshuffle_rounds == 1 ? 11.0 : 3.0) / 12.0 : 0;
    s.S_dense = 2 * fixed.dense_elements;  // bf16
    s.S_expert = 2 * fixed.expert_elements;
    s.N_tok = static_cast<double>(scenario.workload.tokens);
    s.B_g = static_cast<double>(scenario.workload.global_batch_sequences * scenario.model.sequence_length);
    s.B_eff = 1e9;
    s.F_token = flops_per_token(scenario.model, expert_shares(scenario).of_layer(0), false,
                                FlopsAccounting::mechanism)
                    .total();
    s.MFU = 0.4;
    s.Phi_peak = 1e15;
    s.state_factor = one.state_factor;
    CHECK(ours.wall_clock_s == doctest::Approx(paper::T_tot(s)).epsilon(1e-12));
    CHECK(ours.bytes_sent_per_site_per_round == doctest::Approx(paper::B_per_site(s)).epsilon(1e-12));
    // The bytes of all sites per token of all sites equal one site's bytes per its tokens.
    CHECK(ours.bytes_per_token == doctest::Approx(paper::BPT(s)).epsilon(1e-12));
  }
}

TEST_CASE("paper: the four regions") {
  Symbols s;
  s.M = 8;
  s.S_dense = 1e9;
  s.S_expert = 8e9;
  s.B_eff = 1e9;
  s.F_token = 1;
  s.B_g = 8;
  s.Phi_peak = 1;  // t_comp = 1 s
  s.K = 1;
  s.O_e = 8;  // 2·7/8·9 s of communication, 1 s of compute
  CHECK(paper::region(s) == paper::Region::communication_bound);
  s.K = 100;
  CHECK(paper::region(s) == paper::Region::memory_constrained);
  s.O_e = 1;  // 1.75 s for the dense part
  CHECK(paper::region(s) == paper::Region::sweet_spot);
  s.K = 1;
  s.alpha = 0.5;  // 1 s of compute covers half of 1.75 s, but not 1.5 times that
  CHECK(paper::region(s) == paper::Region::sweet_spot);
  s.alpha = 0;
  s.K = 2;
  s.gamma = 1;  // migration adds (1/8)·(7/8)·8 = 0.875 s: 2 s of compute no longer cover it
  CHECK(paper::region(s) == paper::Region::placement_collapse);
}

TEST_CASE("Prediction 1: the migrated fraction falls linearly, but the migrated volume peaks at O_e = M/2") {
  const double M = 16, S = 1e9;
  for (double O_e = 1; O_e < M; ++O_e) {
    CHECK(paper::migrated_fraction(O_e, M) - paper::migrated_fraction(O_e + 1, M) == doctest::Approx(1 / M));
    const double change = paper::migrated_bytes(S, O_e + 1, M) - paper::migrated_bytes(S, O_e, M);
    CHECK((change > 0) == (O_e < M / 2));
  }
  CHECK(paper::migrated_bytes(S, M / 2, M) == S / 4);
  CHECK(paper::migrated_bytes(S, M, M) == 0);
}

TEST_CASE("Prediction 1: the fraction and the volume, counted from drawn placements") {
  const int layers = 4, experts = 16, sites = 8, draws = 60;
  for (const int overlap : {1, 2, 4, 6}) {
    CAPTURE(overlap);
    double moved = 0;
    for (std::uint64_t epoch = 0; epoch < draws; ++epoch) {
      moved += static_cast<double>(migrations(random_placement(layers, experts, sites, overlap, 7, epoch),
                                              random_placement(layers, experts, sites, overlap, 7, epoch + 1))
                                       .size());
    }
    const double held = layers * experts * overlap;  // (expert, site) pairs
    const double mean_moved = moved / draws;
    // Each of `held · draws` pairs moves with probability 1 − O_e/M. They are not independent; the tolerance
    // is therefore six standard deviations of independent ones.
    const double p = 1 - overlap / 8.0;
    const double tolerance = 6 * std::sqrt(p * (1 - p) / (held * draws));
    CHECK(std::abs(mean_moved / held - paper::migrated_fraction(overlap, sites)) < tolerance);
    // Each expert counts as one byte: a site receives mean_moved / M.
    CHECK(mean_moved / sites ==
          doctest::Approx(paper::migrated_bytes(layers * experts, overlap, sites)).epsilon(tolerance / p));
  }
}

TEST_CASE(
    "(R + P)·O_e/M rises with O_e for every γ up to 1: it is not convex, and O_e = 1 always sends least") {
  const bool ok = rc::check("monotone", [] {
    const int M = *rc::gen::inRange(2, 257);
    const int O_e = *rc::gen::inRange(1, M);
    const double gamma = *rc::gen::inRange(0, 1001) / 1000.0;
    RC_ASSERT(paper::sparse_factor(O_e + 1, M, gamma) > paper::sparse_factor(O_e, M, gamma));
  });
  CHECK(ok);
}

TEST_CASE("Prediction 2: throughput against 1/O_e, with local batches that fill the memory") {
  // 80 GB hold 18 B for each of 1e8 dense parameters and for O_e/M of 4e9 expert parameters. Activations fill
  // the rest.
  const double M = 8;
  const auto throughput = [&](double O_e, double B_eff) {
    Symbols s;
    s.M = M;
    s.O_e = O_e;
    s.K = 32;
    s.S_dense = 2 * 1e8;
    s.S_expert = 2 * 4e9;
    s.B_eff = B_eff;
    s.F_token = 6e9;
    s.MFU = 0.4;
    s.Phi_peak = 1e15;
    return paper::throughput(s, paper::largest_local_batch(80e9, 1e8, 4e9, O_e, M, 18, 1e6));
  };
  // 18 · (1e8 + 4e9) = 73.8 GB leave 6.2 GB, which are 6200 tokens. Half of the experts leave 42.2 GB.
  CHECK(paper::largest_local_batch(80e9, 1e8, 4e9, 8, M, 18, 1e6) == doctest::Approx(6200));
  CHECK(paper::largest_local_batch(80e9, 1e8, 4e9, 4, M, 18, 1e6) == doctest::Approx(42200));
  CHECK(paper::largest_local_batch(40e9, 1e8, 4e9, 8, M, 18, 1e6) == 0);
  // The prediction holds where memory is tight and the link is slow: half the overlap gives more than twice
  // the throughput.
  CHECK(throughput(4, 1e8) > 2 * throughput(8, 1e8));
  // It does not hold in general: it fails if the batch fills the memory anyway, or if the link no longer
  // matters.
  CHECK(throughput(1, 1e8) < 2 * throughput(2, 1e8));
  CHECK(throughput(4, 1e15) < 1.01 * throughput(8, 1e15));
}
