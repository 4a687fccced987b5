// What the rows cover, and the answers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "costmodel/published/losses.hpp"
#include "costmodel/published/statistics.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kTolerance = 1.01;  // covers rounding to whole steps, and norms that are counted or not

struct Range {
  double low, high;
  [[nodiscard]] bool has(double value) const {
    return low / kTolerance <= value && value <= high * kTolerance;
  }
};
constexpr Range kLevelParameters = {3.4e7, 1e10}, kContrastParameters = {2e7, 3e10};  // active
// Tokens of an active parameter: from 2502.12996 (100M) to 2509.10439 (150M), and to 2311.08105 (150M).
constexpr Range kLevelTokens = {15, 340}, kContrastTokens = {15, 1900};
constexpr double kLargestOfEight = 2.4e9;
constexpr double kSurfaceTokens = 20, kFarFromSurface = 3 * kSurfaceTokens;  // of an active parameter

std::string g(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void add_new(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& one : more)
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
}

}  // namespace

const PublishedRun* PublishedLosses::most_steps(double parameters) const {
  const PublishedRun* best = nullptr;
  for (const PublishedRun* run : usable_) {
    constexpr double kMissing = std::numeric_limits<double>::infinity();
    if (run->family == "nesterov" && 2 * run->parameters_active.value_or(kMissing) >= parameters &&
        run->rounds.value_or(kMissing) >= kLeastRounds &&
        (best == nullptr || run->local_steps > best->local_steps))
      best = run;
  }
  return best;
}

std::vector<std::string> PublishedLosses::refusals(const LossSetting& s, bool level) const {
  std::vector<std::string> reasons;
  if (s.method == "ddp") return reasons;
  const std::string what = level ? "the level" : "a difference";
  const Range& sizes = level ? kLevelParameters : kContrastParameters;
  const Range& budgets = level ? kLevelTokens : kContrastTokens;
  const auto refuse = [&](bool holds, const std::string& reason) {
    if (holds) reasons.push_back(reason);
  };
  const bool covered = s.method == "diloco" || s.method == "streaming_diloco" || s.method == "eager_diloco";
  const PublishedRun* longest = most_steps(s.parameters);
  refuse(!covered, "method " + s.method + "; the rows cover ddp, diloco, streaming_diloco, eager_diloco");
  refuse(s.mixture && s.refuse_mixtures, "a mixture of experts; the rows are of dense models");
  refuse(s.inner_optimizer != "adamw", "inner optimizer " + s.inner_optimizer + "; the rows have adamw");
  refuse(s.expert_overlap != 0 && s.expert_overlap != s.replicas,
         std::to_string(s.expert_overlap) + " of " + std::to_string(s.replicas) +
             " sites hold an expert; in the rows all sites hold the whole model");
  refuse(!s.same_data, "sites with different data; the rows are of sites that draw from one distribution");
  refuse(s.wire_bits < 4, g(s.wire_bits) + " bits on the wire; at least 4 are covered");
  refuse(s.density < 1,
         "a share of " + g(s.density) + " of the values on the wire; only all of them are covered");
  refuse(s.replicas > kMostReplicas,
         std::to_string(s.replicas) + " replicas; at most " + std::to_string(kMostReplicas) + " are covered");
  refuse(!sizes.has(s.parameters), g(s.parameters) + " active parameters; " + what + " is covered from " +
                                       g(sizes.low) + " to " + g(sizes.high));
  refuse(!budgets.has(s.tokens / s.parameters),
         g(s.tokens / s.parameters) + " tokens per active parameter; " + what + " is covered from " +
             g(budgets.low) + " to " + g(budgets.high));
  refuse(s.rounds() < kLeastRounds, g(s.rounds()) + " rounds; at least " + std::to_string(kLeastRounds) +
                                        " are covered (16 rounds cost +6.2 % in forgather-34M-1x-M2-K500)");
  if (longest != nullptr)
    refuse(longest->local_steps < s.local_steps,
           "local_steps " + std::to_string(s.local_steps) + "; runs of at least half this size reach " +
               std::to_string(longest->local_steps) + " (" + longest->id + ")");
  return reasons;
}

std::vector<std::string> PublishedLosses::notes(const LossSetting& s) {
  std::vector<std::string> notes;
  if (s.mixture) notes.emplace_back("the rows are of dense models, taken at equal active parameters");
  if (s.parameters > kLevelParameters.high * kTolerance)
    notes.emplace_back("the surface of 1e+10 active parameters is kept above this size");
  if (s.replicas > 4 && s.parameters > kLargestOfEight)
    notes.emplace_back(
        "8 replicas were measured up to 2.4e+09 active parameters; what they cost more than 4 "
        "there is kept");
  if (const double each = s.tokens / s.parameters; each > kFarFromSurface)
    notes.push_back(std::to_string(std::lround(each)) +
                    " tokens per active parameter, where the surface has " + g(kSurfaceTokens) +
                    "; the loss is kept, and what it costs in tokens is much less certain");
  if (s.local_steps < kLeastSteps) notes.emplace_back("the level of K = 20 is kept below it");
  return notes;
}

void PublishedLosses::add_slope_rows(std::vector<std::string>& rows) const {
  for (const Study& study : slopes_) add_new(rows, study.rows);
}

LossEstimate PublishedLosses::level(const LossSetting& setting) const {
  LossEstimate estimate;
  estimate.reasons = refusals(setting, true);
  if (!estimate.reasons.empty() || setting.method == "ddp") return estimate;
  const Terms own = terms(setting);
  const double x = doublings_of_steps(setting.local_steps);
  estimate.points = own.value.points;
  estimate.half = std::sqrt(std::pow(level_half_, 2) + std::pow(slope_half_ * x, 2) +
                            std::pow(own.halves[0], 2) + std::pow(own.halves[1], 2));
  estimate.rows = own.value.ids;
  estimate.studies = static_cast<int>(x == 0 ? level_studies_ : slopes_.size());
  if (x != 0) add_slope_rows(estimate.rows);
  estimate.notes = notes(setting);
  return estimate;
}

LossEstimate PublishedLosses::contrast(const LossSetting& a, const LossSetting& b) const {
  const auto alike = [](double one, double other) { return Range{one, one}.has(other); };
  if (alike(a.tokens, b.tokens) && !alike(a.steps, b.steps)) {
    LossEstimate unknown;
    unknown.reasons = {"two batches; a difference is covered for the same number of tokens in each step"};
    return unknown;
  }
  if (a.method == "ddp" || b.method == "ddp") {
    LossEstimate estimate = level(b.method == "ddp" ? a : b);
    if (b.method == "ddp") estimate.points = -estimate.points;
    return estimate;
  }
  LossEstimate estimate;
  add_new(estimate.reasons, refusals(a, false));
  add_new(estimate.reasons, refusals(b, false));
  if (!alike(a.parameters, b.parameters) || !alike(a.tokens, b.tokens))
    add_new(estimate.reasons,
            {"two models or numbers of tokens; a difference is covered for the same model and tokens"});
  const std::int64_t most = std::max(a.local_steps, b.local_steps);
  if (a.replicas != b.replicas && most > kMostStepsOfReplicas)
    add_new(estimate.reasons,
            {"other numbers of replicas at local_steps " + std::to_string(most) + "; covered up to " +
             std::to_string(kMostStepsOfReplicas) +
             " (at 500, 8 replicas cost more than the rows at 30 say: distrain-162M-M8-K500)"});
  if (!estimate.reasons.empty() || a == b) return estimate;
  const Terms first = terms(a), second = terms(b);
  const double x = doublings_of_steps(b.local_steps) - doublings_of_steps(a.local_steps);
  const double noise = t_90(kMostDegrees) * std::sqrt(2) * run_deviation_;
  double squares = std::pow(noise, 2) + std::pow(slope_half_ * x, 2);
  if (a.replicas != b.replicas) squares += std::pow(replica_half_, 2);
  // A term that both have cancels.
  for (std::size_t i = 0; i < first.halves.size(); ++i) {
    if (first.halves[i] != second.halves[i])
      squares += std::pow(first.halves[i], 2) + std::pow(second.halves[i], 2);
  }
  estimate.points = second.value.points - first.value.points;
  estimate.half = std::sqrt(squares);
  estimate.studies = static_cast<int>(x != 0                     ? slopes_.size()
                                      : a.replicas != b.replicas ? replica_studies_
                                                                 : 0);
  add_new(estimate.rows, first.value.ids);
  add_new(estimate.rows, second.value.ids);
  if (x != 0) add_slope_rows(estimate.rows);
  estimate.notes = notes(a);
  add_new(estimate.notes, notes(b));
  return estimate;
}

std::vector<std::string> PublishedLosses::nearest(const LossSetting& setting, std::size_t count) const {
  std::vector<const PublishedRun*> runs;
  for (const PublishedRun* run : diloco_) {
    if (run->baseline_kind == "data_parallel" && !run->independent() &&
        (!run->rounds || *run->rounds >= kLeastRounds))
      runs.push_back(run);
  }
  runs = by_distance(std::move(runs), setting.parameters, setting.replicas, setting.local_steps);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < std::min(count, runs.size()); ++i) ids.push_back(runs[i]->id);
  return ids;
}

}  // namespace fomoe::costmodel
