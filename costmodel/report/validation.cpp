#include "costmodel/report/validation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "costmodel/math/quantiles.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kCommunicationBound = 0.3;  // share of the round
// An overlap below this is rounding, not a plan that overlaps.
constexpr double kHidden = 1e-6;

double relative(double predicted, double measured) {
  if (measured == 0) return predicted == 0 ? 0 : std::numeric_limits<double>::infinity();
  return predicted / measured - 1;
}

/// Seconds by which a training is longer because of what it does between its rounds. Reports of earlier
/// versions have only the sites' mean.
double upkeep_of_run_s(const RunReport& report) {
  return report.round.upkeep_delay_s.value_or(report.round.upkeep_s) *
         static_cast<double>(report.round.count);
}

double wall_clock_s(const RunReport& report) { return report.wall_clock_s - upkeep_of_run_s(report); }

double utilization(const RunReport& report) {
  return report.compute_utilization * report.wall_clock_s / wall_clock_s(report);
}

}  // namespace

RunErrors errors_of(const RunReport& predicted, const RunReport& measured) {
  RunErrors errors{};
  const auto at = [&](Compared what) -> std::optional<double>& {
    return errors[static_cast<std::size_t>(what)];
  };
  at(Compared::wall_clock) = relative(wall_clock_s(predicted), wall_clock_s(measured));
  at(Compared::compute) = relative(predicted.round.compute_s, measured.round.compute_s);
  at(Compared::communication) = relative(predicted.round.communication_s, measured.round.communication_s);
  at(Compared::synchronization) = relative(predicted.round.transferring_s, measured.round.transferring_s);
  at(Compared::utilization) = utilization(predicted) - utilization(measured);
  at(Compared::bytes) =
      relative(predicted.bytes_sent_per_site_per_round, measured.bytes_sent_per_site_per_round);
  const std::vector<double>&p = predicted.round_durations_s, &m = measured.round_durations_s;
  if (p.size() > 1 && m.size() == p.size()) {
    const auto later_s = [](const RunReport& report) {
      const std::vector<double>& all = report.round_durations_s;
      return std::accumulate(all.begin() + 1, all.end(), 0.0) - upkeep_of_run_s(report);
    };
    at(Compared::first_round) = relative(p.front(), m.front());
    at(Compared::later_rounds) = relative(later_s(predicted), later_s(measured));
  }
  return errors;
}

RunErrors errors_in_turn(const RunReport& predicted, const RunReport& measured) {
  const RunErrors all = errors_of(predicted, measured);
  RunErrors told{};
  for (const Compared what : {Compared::compute, Compared::bytes})
    told[static_cast<std::size_t>(what)] = all[static_cast<std::size_t>(what)];
  return told;
}

const char* to_string(Bound bound) {
  switch (bound) {
    case Bound::compute:
      return "compute-bound";
    case Bound::communication:
      return "communication-bound";
    case Bound::overlapped:
      return "overlapped";
  }
  return "";
}

Bound bound_of(const RunReport& predicted, const RunReport& measured) {
  if (predicted.round.overlap_achieved > kHidden) return Bound::overlapped;
  return measured.round.communication_s < kCommunicationBound * measured.round.duration_s
             ? Bound::compute
             : Bound::communication;
}

ErrorSummary summary_of(const std::vector<double>& errors) {
  if (errors.empty()) throw std::invalid_argument("no errors to summarise");
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  ErrorSummary summary;
  summary.runs = errors.size();
  summary.worst_run = static_cast<std::size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
  summary.worst = sizes[summary.worst_run];
  summary.median = median(sizes);
  summary.bias = median(errors);
  std::sort(sizes.begin(), sizes.end());
  summary.p95 = quantile(sizes, 0.95);
  return summary;
}

}  // namespace fomoe::costmodel
