// Tests of the errors of predictions and of their summaries, by hand.
#include "costmodel/report/validation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <utility>

using namespace fomoe::costmodel;

namespace {

RunReport report(double wall_clock_s, double compute_s, double communication_s) {
  RunReport out;
  out.wall_clock_s = wall_clock_s;
  out.round.duration_s = compute_s + communication_s;
  out.round.compute_s = compute_s;
  out.round.communication_s = out.round.transferring_s = communication_s;
  out.compute_utilization = compute_s / (compute_s + communication_s);
  out.bytes_sent_per_site_per_round = 1e6;
  return out;
}

double at(const RunErrors& errors, Compared what) { return errors[static_cast<std::size_t>(what)].value(); }

}  // namespace

TEST_CASE("errors are predicted ÷ measured − 1, but for utilisation, which is a share, the difference") {
  const RunErrors errors = errors_of(report(11, 6, 4), report(10, 8, 2));
  CHECK(at(errors, Compared::wall_clock) == doctest::Approx(11.0 / 10 - 1));
  CHECK(at(errors, Compared::compute) == doctest::Approx(6.0 / 8 - 1));
  CHECK(at(errors, Compared::communication) == doctest::Approx(4.0 / 2 - 1));
  CHECK(at(errors, Compared::utilization) == doctest::Approx(0.6 - 0.8));
  CHECK(at(errors, Compared::bytes) == 0);
}

TEST_CASE("if the measured value is zero the error is zero for a prediction of zero, else infinite") {
  CHECK(at(errors_of(report(10, 8, 0), report(10, 8, 0)), Compared::communication) == 0);
  CHECK(std::isinf(at(errors_of(report(10, 8, 1), report(10, 8, 0)), Compared::communication)));
}

TEST_CASE("the first round and the mean of the later ones, where both reports list their rounds") {
  RunReport predicted = report(10, 8, 2), measured = report(13, 8, 5);
  const auto known = [&] {
    const RunErrors errors = errors_of(predicted, measured);
    return std::pair(errors[static_cast<std::size_t>(Compared::first_round)].has_value(),
                     errors[static_cast<std::size_t>(Compared::later_rounds)].has_value());
  };
  CHECK(known() == std::pair(false, false));
  predicted.round_durations_s = {4, 3, 3};
  CHECK(known() == std::pair(false, false));
  measured.round_durations_s = {5, 4, 4};
  const RunErrors errors = errors_of(predicted, measured);
  CHECK(at(errors, Compared::first_round) == doctest::Approx(4.0 / 5 - 1));
  CHECK(at(errors, Compared::later_rounds) == doctest::Approx(3.0 / 4 - 1));
  predicted.round_durations_s = measured.round_durations_s = {5};
  CHECK(known() == std::pair(false, false));
}

TEST_CASE(
    "a run is bounded by communication from a share of 30 %, and overlapped if the prediction hides any") {
  CHECK(bound_of(report(10, 7.1, 2.9), report(10, 7.1, 2.9)) == Bound::compute);
  CHECK(bound_of(report(10, 7, 3), report(10, 7, 3)) == Bound::communication);
  RunReport hides = report(10, 7, 3);
  hides.round.overlap_achieved = 0.5;
  CHECK(bound_of(hides, report(10, 7, 3)) == Bound::overlapped);
}

TEST_CASE("median, 95th percentile by nearest rank, worst case and bias") {
  std::vector<double> errors;
  for (int i = 1; i <= 40; ++i) errors.push_back((i % 2 == 0 ? 1 : -1) * i / 100.0);
  const ErrorSummary of = summary_of(errors);
  CHECK(of.runs == 40);
  CHECK(of.median == doctest::Approx(0.205));  // between 0.20 and 0.21
  CHECK(of.p95 == doctest::Approx(0.38));      // the 38th of 40
  CHECK(of.worst == doctest::Approx(0.40));
  CHECK(of.worst_run == 39);
  CHECK(of.bias == doctest::Approx(0.005));  // between −0.01 and 0.02
  CHECK(summary_of({-0.1}).p95 == doctest::Approx(0.1));
  CHECK(summary_of({-0.1}).bias == doctest::Approx(-0.1));
  CHECK_THROWS_AS(summary_of({}), std::invalid_argument);
}
