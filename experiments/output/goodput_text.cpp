#include "experiments/output/goodput_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/text/human.hpp"

namespace fomoe::commands {
namespace {

std::string time_or_never(double seconds) { return std::isfinite(seconds) ? human_time(seconds) : "never"; }

std::string rounds_text(std::int64_t rounds, const costmodel::RunReport& report) {
  return fmt::format("every {} round{} ({})", rounds, rounds == 1 ? "" : "s",
                     human_time(static_cast<double>(rounds) * report.round.duration_s));
}

}  // namespace

std::string goodput_text(const costmodel::RunReport& report) {
  if (!report.goodput) return "";
  const costmodel::Goodput& goodput = *report.goodput;
  const std::string currency = report.cost ? report.cost->currency : "";
  const auto cost = [&](const std::optional<double>& amount) {
    return amount ? human_money(*amount, currency) : std::string();
  };
  std::vector<Row> rows = {
      {goodput.own_pace ? "with failures, each site alone"
                        : fmt::format("with failures, policy {}", to_string(goodput.policy)),
       fmt::format("goodput {}", human_percent(goodput.goodput)),
       fmt::format("mean of {} samples; mean time between failures {}", goodput.samples,
                   time_or_never(goodput.system_mtbf_s))},
      {"  finish time, p50", time_or_never(goodput.finish_p50_s), cost(goodput.cost_p50)},
      {"  finish time, p95", time_or_never(goodput.finish_p95_s), cost(goodput.cost_p95)}};
  const std::string returning =
      goodput.policy == costmodel::FailurePolicy::wait
          ? fmt::format("all read their checkpoints in {}", human_time(goodput.transfer_s))
          : fmt::format("a returning site has the state after {}", human_time(goodput.transfer_s));
  std::vector<Row> of_policy = {
      {"  checkpoints", rounds_text(goodput.checkpoint_rounds, report),
       human_time(goodput.checkpoint_s) + " each"},
      {"  recommended checkpoints", rounds_text(goodput.recommended_rounds, report),
       fmt::format("goodput {}; Young {}, Daly {}", human_percent(goodput.recommended_goodput),
                   time_or_never(goodput.young_interval_s), time_or_never(goodput.daly_interval_s))},
      {"  recommended time-out", human_time(goodput.recommended_timeout_s), returning}};
  if (goodput.own_pace)
    of_policy = {{"  state of a returning site", human_time(goodput.transfer_s), "to send it"}};
  rows.insert(rows.end(), of_policy.begin(), of_policy.end());
  if (goodput.unfinished_share > 0)
    rows.push_back({"  CANNOT FINISH", human_percent(goodput.unfinished_share) + " of the samples", ""});
  return aligned(rows) + '\n';
}

std::string attendance_text(const costmodel::RunReport& report) {
  if (!report.attendance) return "";
  const costmodel::Attendance& attendance = *report.attendance;
  std::vector<Row> rows;
  if (attendance.added_rounds > 0)
    rows.push_back({"work of absent sites", human_percent(1 - attendance.trained_share) + " is lost",
                    fmt::format("trained later, in {} more round{}", attendance.added_rounds,
                                attendance.added_rounds == 1 ? "" : "s")});
  else
    rows.push_back({"trained on", human_percent(attendance.trained_share) + " of the sequences", ""});
  for (std::size_t s = 0; s < report.sites.size(); ++s) {
    if (attendance.missed_rounds[s] > 0)
      rows.push_back(
          {"  " + report.sites[s].name,
           fmt::format("missed {:.4g} of {} rounds", attendance.missed_rounds[s], report.round.count), ""});
  }
  if (attendance.repeated_rounds > 0)
    rows.push_back(
        {"  after failures", fmt::format("repeated {:.4g} rounds", attendance.repeated_rounds), ""});
  return aligned(rows) + '\n';
}

std::string replicas_text(const costmodel::RunReport& report) {
  if (!report.replicas) return "";
  const costmodel::Replicas& replicas = *report.replicas;
  const auto row = [](const char* name, const costmodel::Spread& spread, auto&& text) {
    return Row{name,
               text(spread.mean),
               fmt::format("{} to {}", text(spread.mean_low), text(spread.mean_high)),
               text(spread.p5),
               text(spread.p50),
               text(spread.p95)};
  };
  return aligned({{fmt::format("{} seeds from {}", replicas.count, replicas.first_seed), "mean",
                   "95 % confidence", "p5", "p50", "p95"},
                  row("  wall clock", replicas.wall_clock_s, human_time),
                  row("  compute utilisation", replicas.compute_utilization, human_percent)}) +
         '\n';
}

}  // namespace fomoe::commands
