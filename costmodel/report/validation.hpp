// Errors of predictions against measurements, for one run and for many.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Quantities that are compared. The error is predicted ÷ measured − 1, except for utilization, which is a
/// share: predicted − measured.
enum class Compared : std::size_t {
  wall_clock,
  compute,
  communication,
  synchronization,
  utilization,
  bytes,
  first_round,
  later_rounds
};
inline constexpr std::size_t kComparedCount = 8;
inline constexpr std::array<std::string_view, kComparedCount> kComparedNames = {
    "wall_clock",  "compute", "communication", "synchronization",
    "utilization", "bytes",   "first_round",   "later_rounds"};

/// Errors of one run, indexed by Compared. The wall clock, the utilisation and the rounds are those that the
/// training would have had without what it does between its rounds (MeanRound::upkeep_delay_s), of which
/// predictions have nothing; all of it is part of the later rounds. The quantities are:
///   compute          compute time in the mean round
///   communication    time in the mean round from readiness for the first byte to receipt of the last byte,
///                    whether or not compute hides it
///   synchronization  time in the mean round in which a site is in a transfer that another site has entered
///                    too (see seen_flows.hpp)
///   bytes            bytes that a site sends in the mean round
///   first_round      duration of the first round, in which connections and memory are new
///   later_rounds     mean duration of all rounds except the first; in a long run, these rounds dominate
/// If a measured value is 0, the error is 0 if the predicted value is 0 too, and infinite otherwise. An error
/// is empty if it needs a list of rounds and a report does not list its rounds or has only one.
using RunErrors = std::array<std::optional<double>, kComparedCount>;
RunErrors errors_of(const RunReport& predicted, const RunReport& measured);
/// The errors that a run can tell whose sites worked one after the other in one process: those of compute and
/// bytes. Its times of transfers and rounds are not those of sites that work at the same time.
RunErrors errors_in_turn(const RunReport& predicted, const RunReport& measured);

/// The resource that determines the duration of a run. Errors are reported separately for each.
enum class Bound { compute, communication, overlapped };
const char* to_string(Bound bound);
/// The bound of a run. overlapped: the plan hides transfers behind compute (the predicted overlap_achieved is
/// above 0). communication: communication takes 30 % of the measured round or more. compute: all other runs.
Bound bound_of(const RunReport& predicted, const RunReport& measured);

/// Statistics of the absolute errors of one quantity. p95 is the smallest value that 95 % of them do not
/// exceed.
struct ErrorSummary {
  std::size_t runs = 0;
  double median = 0, p95 = 0, worst = 0;
  std::size_t worst_run = 0;  // index of the run with the worst error
  double bias = 0;            // median with sign; above 0, predictions are too high
};
/// Throws std::invalid_argument if `errors` is empty.
ErrorSummary summary_of(const std::vector<double>& errors);

}  // namespace fomoe::costmodel
