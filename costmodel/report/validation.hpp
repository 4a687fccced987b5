// How far a prediction is from what was measured, of one run and of many.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// What is compared. All are predicted ÷ measured − 1, but for utilization, which is a share already:
/// predicted − measured.
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

/// By Compared.
///   compute          of the mean round
///   communication    of the mean round: first byte wanted to last byte received, hidden or not
///   synchronization  of the mean round: a site is in transfers to which another has come (seen_flows)
///   bytes            sent by a site in the mean round
///   first_round      its duration; connections and memory are new in it
///   later_rounds     what a long run consists of: the mean duration of all rounds but the first
/// Where nothing was measured, the error is 0 if nothing was predicted, else infinite. None where a report
/// does not list its rounds, or has but one.
using RunErrors = std::array<std::optional<double>, kComparedCount>;
RunErrors errors_of(const RunReport& predicted, const RunReport& measured);

/// What decides how long a run takes, by which errors are reported apart.
enum class Bound { compute, communication, overlapped };
const char* to_string(Bound bound);
/// overlapped: the plan lets transfers hide behind compute (α above 0 in the prediction); else communication
/// where it takes 30 % of the measured round or more.
Bound bound_of(const RunReport& predicted, const RunReport& measured);

/// Of the absolute values of one quantity's errors. p95: the smallest that 95 % do not exceed.
struct ErrorSummary {
  std::size_t runs = 0;
  double median = 0, p95 = 0, worst = 0;
  std::size_t worst_run = 0;  // its place
  double bias = 0;            // median with sign: above 0, predictions are too high
};
/// Throws std::invalid_argument where there are no errors.
ErrorSummary summary_of(const std::vector<double>& errors);

}  // namespace fomoe::costmodel
