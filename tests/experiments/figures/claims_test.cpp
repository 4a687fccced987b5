// Tests of the verdicts on trained runs, with cases that are computed by hand.
#include "experiments/figures/trained/claims.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "platforms/support/input_error.hpp"

using namespace fomoe::figures;

namespace {

Setting setting(const char* outer, int overlap, const char* placement = "fixed") {
  Setting s;
  s.outer = outer;
  s.local_steps = 32;
  s.sites = 8;
  s.overlap = overlap;
  s.placement = placement;
  return s;
}

TrainedRuns runs(std::vector<double> losses, double bytes = 0) {
  TrainedRuns r;
  r.losses = r.site_losses = std::move(losses);
  r.bytes_per_site = bytes;
  return r;
}

std::optional<Setting> fixed_of(Setting s) {
  if (s.placement != "random") return {};
  s.placement = "fixed";
  return s;
}

constexpr const char* kHeader =
    "run,method,sites,local_steps,expert_overlap,placement,outer_optimizer,skip_token,d_model,layers,experts,"
    "tokens,global_batch_sequences,trainer.learning_rate,seed,parameters,flops_per_token,flops,bytes_per_"
    "site,"
    "perplexity,site_perplexity,loss,site_loss,router_entropy,load_cv,ghost_share,seconds,resumed,device,"
    "code\n";

std::string row(const char* method, const char* overlap, const char* placement, const char* outer,
                const char* seed, const char* loss) {
  return std::string("0123456789ab,") + method + ",8,32," + overlap + ',' + placement + ',' + outer +
         ",false,64,4,16,1024,32,0.004," + seed + ",1,1,7,9,1,1," + loss +
         ",3,2,0.5,0.25,1,false,cpu,\"a, b\"\n";
}

}  // namespace

TEST_CASE("the interval of a mean difference follows from the pooled spread of seeds") {
  Trained trained;
  trained[setting("x", 1, "random")] = runs({3.0, 3.2});  // mean 3.1, squares 0.02
  trained[setting("x", 1)] = runs({2.8, 2.9, 3.0});       // mean 2.9, squares 0.02
  trained[setting("x", 2, "random")] = runs({2.5});       // one seed: its spread is unknown, its loss counts
  trained[setting("x", 2)] = runs({2.4});
  trained[setting("x", 4, "random")] = runs({9});  // its partner was not trained
  const Effect effect = effect_of(trained, differences(trained, fixed_of));
  CHECK(effect.comparisons == 2);
  CHECK(effect.mean == doctest::Approx((0.2 + 0.1) / 2));
  // s² = 0.04 / 3; coefficients ±½: Σ c²/n = ¼·(½ + ⅓ + 1 + 1); t of 3 degrees of freedom is 3.1824
  CHECK(effect.half_width ==
        doctest::Approx(3.1824 * std::sqrt(0.04 / 3 * 0.25 * (0.5 + 1.0 / 3 + 2))).epsilon(1e-4));
}

TEST_CASE("runs that diverged do not hide the spread of the others") {
  Trained trained;
  trained[setting("x", 1, "random")] = runs({3.0, 3.2});
  trained[setting("x", 1)] = runs({2.8, 2.9, 3.0});
  trained[setting("x", 4)] = runs({HUGE_VAL, HUGE_VAL});
  const Effect effect = effect_of(trained, differences(trained, fixed_of));
  CHECK(effect.half_width == doctest::Approx(3.1824 * std::sqrt(0.04 / 3 * (0.5 + 1.0 / 3))).epsilon(1e-4));
}

TEST_CASE("a setting that stands in several comparisons counts once") {
  Trained trained;
  trained[setting("x", 1, "random")] = runs({3, 3.1});
  trained[setting("x", 2, "random")] = runs({3, 3.1});
  trained[setting("x", 8, "")] = runs({2, 2.1});
  const auto full = [](const Setting& s) -> std::optional<Setting> {
    if (s.overlap == 8) return {};
    return setting("x", 8, "");
  };
  const Effect effect = effect_of(trained, differences(trained, full));
  CHECK(effect.mean == doctest::Approx(1));
  // coefficients ½, ½ and −1 with two seeds each: Σ c²/n = 0.75. Independent partners would give 0.5.
  CHECK(effect.half_width == doctest::Approx(3.1824 * std::sqrt(0.015 / 3 * 0.75)).epsilon(1e-4));
}

TEST_CASE("verdicts need the whole interval on one side, and one seed alone decides nothing") {
  const auto verdict = [](double mean, double half) {
    return claim_above_zero("", "", {1, mean, half}).verdict;
  };
  CHECK(verdict(0.2, 0.1) == Verdict::holds);
  CHECK(verdict(-0.2, 0.1) == Verdict::does_not_hold);
  CHECK(verdict(0.2, 0.3) == Verdict::cannot_be_told);
  CHECK(verdict(5, -1) == Verdict::cannot_be_told);
  CHECK(claim_above_zero("", "", {}).verdict == Verdict::cannot_be_told);
  CHECK(claim_at_most("", "", {1, 0.005, 0.01}, 0.02).verdict == Verdict::holds);
  CHECK(claim_at_most("", "", {1, 0.05, 0.01}, 0.02).verdict == Verdict::does_not_hold);
  CHECK(claim_at_most("", "", {1, 0.015, 0.01}, 0.02).verdict == Verdict::cannot_be_told);

  Trained trained;
  trained[setting("x", 1, "random")] = runs({3.0});
  trained[setting("x", 1)] = runs({2.0});
  const Effect effect = effect_of(trained, differences(trained, fixed_of));
  CHECK(effect.half_width < 0);
  CHECK(to_json(claim_above_zero("", "", effect))["verdict"] == "cannot be told");
}

TEST_CASE(
    "the best setting within a budget is compared, and settings without an affordable one are left out") {
  Trained trained;
  trained[setting("a", 1)] = runs({3.0}, 10);
  trained[setting("a", 2)] = runs({2.5}, 20);
  trained[setting("b", 1)] = runs({2.9}, 10);
  trained[setting("b", 2)] = runs({2.0}, 15);
  trained[setting("b", 4)] = runs({1.0}, 100);
  trained[setting("a", 4)] = runs({9.0}, 5);  // nothing costs at most 5
  const auto of = [](const char* outer) { return [outer](const Setting& s) { return s.outer == outer; }; };
  const Comparisons list = against_best_within(
      trained, of("a"), [](const Setting&, const Setting& other) { return other.outer == "b"; },
      &TrainedRuns::bytes_per_site);
  REQUIRE(list.size() == 2);
  CHECK(effect_of(trained, list).mean == doctest::Approx(((3.0 - 2.9) + (2.5 - 2.0)) / 2));
}

TEST_CASE("within the same bytes, each side sets the budget once") {
  Trained trained;
  trained[setting("a", 1)] = runs({3.0}, 10);
  trained[setting("a", 2)] = runs({2.5}, 20);
  trained[setting("b", 1)] = runs({2.9}, 10);
  trained[setting("b", 2)] = runs({2.0}, 15);
  trained[setting("b", 4)] = runs({1.0}, 100);
  const auto of = [](const char* outer) { return [outer](const Setting& s) { return s.outer == outer; }; };
  const std::vector<Claim> claims = within_same_bytes(
      trained, {"Bs", "As", of("b"), of("a"), [](const Setting&, const Setting&) { return true; }, " (all)"});
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].sentence == "within the bytes of As, the best Bs reach a lower perplexity (all)");
  CHECK(claims[0].effect.mean == doctest::Approx(((3.0 - 2.9) + (2.5 - 2.0)) / 2));
  CHECK(claims[1].sentence == "within the bytes of Bs, the best As reach a higher perplexity (all)");
  CHECK(claims[1].effect.mean == doctest::Approx(((3.0 - 2.9) + (3.0 - 2.0) + (2.5 - 1.0)) / 3));
  const auto all = [](const Setting&) { return true; };
  CHECK(frontier_of(trained, all, &TrainedRuns::bytes_per_site) ==
        std::vector<Setting>{setting("b", 1), setting("b", 2), setting("b", 4)});
}

TEST_CASE("printed means: a claim of at most some effect holds below it") {
  Trained printed;
  printed[setting("x", 1, "random")] = runs({2.01});
  printed[setting("x", 1)] = runs({2.0});
  const auto claims_of = [](const Trained& trained) {
    const Effect effect = effect_of(trained, differences(trained, fixed_of));
    return std::vector<Claim>{claim_at_most("", "", effect, 0.02), claim_at_most("", "", effect, 0.005),
                              claim_above("", "", effect, 0.005), claim_above("", "", effect, 0.02)};
  };
  std::string verdicts;
  for (const Claim& claim : by_sign(printed, claims_of))
    verdicts += std::string(to_string(claim.verdict)) + "; ";
  CHECK(verdicts == "holds; does not hold; holds; does not hold; ");
}

TEST_CASE("the frontier has the points that no other point beats") {
  CHECK(on_frontier({{1, 5}, {2, 4}, {3, 4}, {3, 3}, {4, 6}}) ==
        std::vector<bool>{true, true, false, true, false});
  CHECK(on_frontier({{1, 5}, {1, 5}}) == std::vector<bool>{true, true});
}

TEST_CASE("rows are grouped by setting; full replicas have one name and a seed counts once") {
  const Trained trained = trained_runs(kHeader + row("local_adamw", "8", "", "", "42", "2.5") +
                                           row("fomoe", "8", "", "local_adamw", "42", "2.5") +
                                           row("fomoe", "8", "", "local_adamw", "123", "2.7") +
                                           row("diloco", "8", "", "nesterov", "42", "3") +
                                           row("fomoe", "2", "random", "nesterov", "42", "inf"),
                                       "rows.csv");
  REQUIRE(trained.size() == 3);
  Setting full = setting("local_adamw", 8, "");
  full.d_model = 64;
  full.layers = 4;
  full.experts = 16;
  full.others["trainer.learning_rate"] = "0.004";
  REQUIRE(trained.contains(full));
  CHECK(trained.at(full).losses == std::vector<double>{2.5, 2.7});
  CHECK(trained.at(full).router_entropy == 2);
  CHECK(trained.at(full).ghost_share == 0.25);
  CHECK(trained.at(full).bytes_per_site == 9);
}

TEST_CASE("wrong tables of rows are refused with the line and the column") {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      trained_runs(text, "rows.csv");
      return "accepted";
    } catch (const fomoe::FileError& error) {
      return error.what();
    }
  };
  CHECK(refused(kHeader + row("diloco", "8", "", "nesterov", "42", "low"))
            .starts_with("rows.csv:2: loss: got \"low\""));
  CHECK(refused(std::string(kHeader) + "a,b\n").starts_with("rows.csv:2: row: got 2 cells"));
  CHECK(refused("run,method\n0,diloco\n").starts_with("rows.csv:2: sites: got no such column"));
}

TEST_CASE("printed claims stand beside what they are without settings that diverged") {
  Trained trained;
  for (const int sites : {2, 8}) {
    for (const char* placement : {"fixed", "random"}) {
      Setting one = setting("x", 1, placement);
      one.sites = sites;
      trained[one] = runs({*placement == 'f' ? 4.0 : 4.1});
    }
  }
  const auto claims_of = [](const Trained& of) {
    return std::vector<Claim>{claim_above_zero("", "", effect_of(of, differences(of, fixed_of)))};
  };
  CHECK_FALSE(by_sign(trained, claims_of)[0].without_diverged.has_value());
  Setting diverged = setting("x", 1, "random");
  diverged.sites = 2;
  trained[diverged] = runs({4.8});  // e^0.8 > 2
  const Claim claim = by_sign(trained, claims_of)[0];
  CHECK(claim.effect.mean == doctest::Approx((0.8 + 0.1) / 2));
  REQUIRE(claim.without_diverged.has_value());
  CHECK(claim.without_diverged->mean == doctest::Approx(0.1));
  CHECK(claim.without_diverged->comparisons == 1);
  trained[diverged] = runs({4.69});  // below twice: it counts
  CHECK_FALSE(by_sign(trained, claims_of)[0].without_diverged.has_value());
}

TEST_CASE("the table of claims joins what the paper's means and our runs say of the same statement") {
  Trained ours, printed;
  ours[setting("x", 1, "random")] = runs({3.0, 3.2, 3.1});
  ours[setting("x", 1)] = runs({2.8, 2.9});
  printed[setting("x", 1, "random")] = runs({2.5});
  printed[setting("x", 1)] = runs({2.4});
  const auto claims = [](const Trained& trained) {
    return std::vector<Claim>{
        claim_above_zero("fixed is better", "ratio", effect_of(trained, differences(trained, fixed_of)))};
  };
  Figure figure, other;
  figure.findings["claims_paper"] = to_json(by_sign(printed, claims));
  figure.findings["claims_proxy"] = to_json(claims(ours));
  figure.findings["something_else"] = 1;
  Claim told{"steps are faster", "", {}, Verdict::holds};
  told.finding = "by half";
  other.findings["claims_measured"] = to_json(std::vector<Claim>{told});
  const Figure table = claims_table({figure, other}, {"fig-a", "fig-b"});
  REQUIRE(table.rows.size() == 2);
  const auto& row = table.rows[0];
  CHECK(std::get<std::string>(row[0]) == "fig-a");
  CHECK(std::get<std::string>(row[2]) == "holds");
  CHECK(std::get<double>(row[3]) == doctest::Approx(100 * std::expm1(0.1)));
  CHECK(std::get<double>(row[5]) == doctest::Approx(100 * std::expm1(0.25)));
  CHECK(std::get<double>(row[6]) < std::get<double>(row[5]));
  CHECK(std::get<double>(row[7]) > std::get<double>(row[5]));
  CHECK(std::get<std::int64_t>(row[8]) == 2);
  CHECK(std::get<std::string>(table.rows[1][4]) == "holds");
  CHECK(std::get<std::string>(table.rows[1][5]).empty());
  CHECK(claims_text(table).find("steps are faster (by half)") != std::string::npos);
}
