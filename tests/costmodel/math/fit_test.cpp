// Tests of fit_terms() against models whose terms are known: it must recover the terms within their
// intervals, and leave out or refuse the terms that the data do not determine.
#include "costmodel/math/fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace fomoe::costmodel;

namespace {

/// One observation of the model t = bytes ÷ (efficiency · rate) + hops · latency · factor + calls · overhead.
struct Case {
  double bytes, hops, calls;
};
constexpr double kRate = 1e8, kLatency_s = 0.02;

FitModel model_of(const std::vector<Case>& cases) {
  return [cases](const std::vector<double>& theta) {
    std::vector<double> times;
    for (const Case& c : cases)
      times.push_back(c.bytes / (theta[0] * kRate) + c.hops * kLatency_s * theta[1] + c.calls * theta[2]);
    return times;
  };
}

const std::vector<FitTerm> kTerms = {
    {"efficiency", 1, 1, 0.02, 0.05, 1}, {"latency", 1, 1, 0.05, 0.1, 50}, {"overhead", 0, 0, 1e-3, 0, 60}};

std::vector<Case> spread(int count) {
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i)
    cases.push_back({1e5 * std::pow(2.0, i % 8), 1.0 + i % 3, 1.0 + (i * 7) % 5});
  return cases;
}

/// Multiplies the times by errors with a standard deviation of 1 %; equal seeds give equal errors.
std::vector<double> noisy(std::vector<double> times, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 0.01);
  for (double& time : times) time *= 1 + normal(random);
  return times;
}

}  // namespace

TEST_CASE("exact data: the fit recovers the terms to 1e-4 of their effect") {
  const auto model = model_of(spread(24));
  const Fit fit = fit_terms(kTerms, model, model({0.93, 1.2, 0.004}));
  REQUIRE(fit.refused.empty());
  CHECK(fit.terms[0].value == doctest::Approx(0.93).epsilon(1e-4));
  CHECK(fit.terms[1].value == doctest::Approx(1.2).epsilon(1e-4));
  CHECK(fit.terms[2].value == doctest::Approx(0.004).scale(0).epsilon(1e-3));
  CHECK(fit.relative_s < 1e-5);
}

TEST_CASE("noisy data: the 95 % intervals hold the truth in about 95 % of 200 repetitions") {
  const std::vector<double> truth = {0.93, 1.2, 0.004};
  const auto model = model_of(spread(24));
  int held = 0, all = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Fit fit = fit_terms(kTerms, model, noisy(model(truth), seed));
    REQUIRE(fit.refused.empty());
    for (std::size_t i = 0; i < truth.size(); ++i) {
      REQUIRE(fit.terms[i].supported);
      held += fit.terms[i].low95 <= truth[i] && truth[i] <= fit.terms[i].high95;
      ++all;
    }
  }
  // `held` is binomial. The limits are four standard deviations from the mean: 0.95 ± 4 · √(0.95 · 0.05 ÷
  // 600) = 0.914 … 0.986.
  CHECK(held > 0.914 * all);
  CHECK(held < 0.986 * all);
}

TEST_CASE("one observation is refused; with few observations, the first terms are fitted") {
  const auto one = model_of(spread(1));
  CHECK(fit_terms(kTerms, one, one({1, 1, 0})).refused == "too few observations: 1; at least 2 are needed");
  const auto model = model_of(spread(3));
  const Fit fit = fit_terms(kTerms, model, model({0.5, 1, 0}));
  REQUIRE(fit.refused.empty());
  CHECK(fit.terms[0].supported);
  CHECK(fit.terms[2].why_not == "there are only 3 observations, which suffice for 2 of 3 terms");
}

TEST_CASE("two observations of one term: a large effect is fitted, a small one is doubtful") {
  const FitModel model = [](const std::vector<double>& terms) {
    return std::vector<double>{1 / terms[0], 3 / terms[0]};
  };
  const std::vector<FitTerm> efficiency = {{"efficiency", 1, 0.9, 0.01, 0.01, 1}};
  // Times of 2.00 and 6.06 s: s = 0.7 % of the mean, so the half-width is t·s/√2 = 12.7 · 0.7 % / 1.4 = 6 %.
  const Fit half = fit_terms(efficiency, model, {2.00, 6.06});
  REQUIRE(half.terms[0].supported);
  CHECK(half.terms[0].value == doctest::Approx(0.4975).epsilon(1e-3));
  CHECK(half.terms[0].high95 - half.terms[0].value == doctest::Approx(0.064 * 0.4975).scale(0).epsilon(0.05));
  const Fit nearly = fit_terms(efficiency, model, {1.01, 3.06});
  CHECK(!half.terms[0].doubtful);
  // 0.985 ± 6 %: the best value, but its interval includes 1.
  REQUIRE(nearly.terms[0].supported);
  CHECK(nearly.terms[0].doubtful);
  CHECK(nearly.terms[0].value == doctest::Approx(0.985).epsilon(2e-3));
  CHECK(nearly.terms[0].high95 == 1);  // the largest value that the term may have
  // With more observations, such a term is left out.
  const FitModel many = [](const std::vector<double>& terms) {
    return std::vector<double>{1 / terms[0], 3 / terms[0], 2 / terms[0], 4 / terms[0]};
  };
  CHECK(!fit_terms(efficiency, many, {1.01, 2.97, 2.02, 3.97}).terms[0].supported);
}

TEST_CASE(
    "one payload size and one number of hops: the fit names the terms whose effects are indistinguishable") {
  const std::vector<Case> equal(12, Case{1e6, 2, 3});
  const Fit fit = fit_terms(kTerms, model_of(equal), noisy(model_of(equal)({0.9, 1, 0}), 1));
  REQUIRE(fit.refused.empty());
  for (const std::size_t i : {1, 2}) {
    CHECK(!fit.terms[i].supported);
    CHECK(fit.terms[i].why_not.find("cannot be distinguished from that of ") != std::string::npos);
  }
  // The one supported term explains the times. It need not be the true one, since these data cannot tell them
  // apart.
  CHECK(fit.relative_s < 0.02);
}

TEST_CASE("a term without effect, and a term whose interval holds its off value, are not fitted") {
  std::vector<Case> no_hops = spread(24);
  for (Case& c : no_hops) c.hops = 0;
  const Fit without = fit_terms(kTerms, model_of(no_hops), noisy(model_of(no_hops)({0.9, 1, 0.004}), 1));
  CHECK(without.terms[1].why_not == "it does not change any of the observed times");
  CHECK(without.terms[0].supported);

  const auto model = model_of(spread(24));
  const Fit off = fit_terms(kTerms, model, noisy(model({0.9, 1.3, 0}), 3));
  CHECK(!off.terms[2].supported);
  CHECK(off.terms[2].value == 0);
  CHECK(off.terms[0].low95 <= 0.9);
  CHECK(off.terms[0].high95 >= 0.9);
}

TEST_CASE("any one of the terms is without effect: it alone is left out, and the others are recovered") {
  const std::vector<double> truth = {0.9, 1.5, 0.004};
  for (std::size_t without = 0; without < truth.size(); ++without) {
    CAPTURE(without);
    std::vector<Case> cases = spread(24);
    for (Case& c : cases) (without == 0 ? c.bytes : without == 1 ? c.hops : c.calls) = 0;
    const auto model = model_of(cases);
    const Fit fit = fit_terms(kTerms, model, model(truth));
    REQUIRE(fit.refused.empty());
    for (std::size_t i = 0; i < truth.size(); ++i) {
      CAPTURE(i);
      CHECK(fit.terms[i].supported == (i != without));
      if (i == without)
        CHECK(fit.terms[i].value == kTerms[i].off);
      else
        CHECK(fit.terms[i].value == doctest::Approx(truth[i]).scale(0).epsilon(1e-3));
      CHECK(fit.terms[i].why_not == (i == without ? "it does not change any of the observed times" : ""));
    }
  }
}

TEST_CASE(
    "the model is asked for no value outside of a term's limits, also where the best value is a limit") {
  const auto model = model_of(spread(24));
  for (const std::vector<double>& truth :
       {std::vector<double>{0.93, 1.2, 0.004}, {1, 0.1, 0}, {1.2, 1, 0.004}}) {
    int outside = 0;
    const FitModel watched = [&](const std::vector<double>& theta) {
      for (std::size_t i = 0; i < theta.size(); ++i)
        outside += theta[i] < kTerms[i].low || theta[i] > kTerms[i].high ? 1 : 0;
      return model(theta);
    };
    const Fit fit = fit_terms(kTerms, watched, model(truth));
    CHECK(outside == 0);
    for (std::size_t i = 0; i < truth.size(); ++i) CHECK(fit.terms[i].value <= kTerms[i].high);
  }
}

TEST_CASE("better_than_chance accepts one more term only if it reduces the residuals enough") {
  Fit with, without;
  with.degrees_of_freedom = 21;
  with.sum_of_squares = 1;
  without.sum_of_squares = 1.1;  // t² ÷ 20 = 2.086² ÷ 20 = 0.218
  CHECK(!better_than_chance(with, without));
  without.sum_of_squares = 1.3;
  CHECK(better_than_chance(with, without));
}
