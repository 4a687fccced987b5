// Simulates the finalists of the shortlist and chooses the answer by the simulated results.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/planner/screening.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::planner {

/// A candidate, or the unchanged scenario, with the results of both engines.
struct Finalist {
  Candidate candidate;
  std::vector<std::string> settings;  // settings for --set: "strategy.method=fomoe", …
  costmodel::Scenario scenario;
  Amounts closed_form, simulated;
  double without_failures_s = 0;  // the simulated wall clock if nothing fails
  double value = 0;               // the value (see Candidate::value) computed from the simulated amounts
  double exposed_share = 0, compute_utilization = 0, bytes_sent_per_site_per_round = 0;
  costmodel::GpuMemory gpu_memory;
  std::string busiest_link;
  std::optional<double> perplexity, plus_minus;
  std::optional<double> equal_loss_factor;  // the centre, if only a range is known
  std::optional<costmodel::EqualLossRange> equal_loss_range;
  std::optional<costmodel::PublishedLoss> published;  // if the scenario asks published runs
  std::optional<double>
      first_needs_less;        // of a row: the probability that the first row needs less to equal loss
  std::string quality_reason;  // the reason why the perplexity is unknown
  /// The reason why the finalist is excluded: a limit that the simulated run breaks, or an error. Empty if
  /// the finalist is not excluded.
  std::string problem;
  [[nodiscard]] const char* method() const { return scenario.strategy.method->name.c_str(); }
  [[nodiscard]] std::int64_t steps_per_round() const;
  [[nodiscard]] std::int64_t rounds() const;  // synchronisations of the whole run
  /// The simulated amounts, or those to the loss of data-parallel training where the factor is known.
  [[nodiscard]] Amounts at_equal_loss() const;
};

enum class Basis {
  published,   // published runs give the amount for equal loss of some candidates; others follow at the end
  equal_loss,  // a scaling law gives the amount that each candidate needs for equal loss
  target,      // perplexities were measured and a target is given: the best candidate that reaches it
  perplexity,  // perplexities were measured and no target is given: a frontier
  unknown      // no quality model is valid: a frontier over the settings that may cost quality
};

struct MethodBest {
  std::size_t finalist = 0;
  std::optional<std::size_t> loses_to;  // index of a better finalist; empty if none is better
};

struct Answer {
  Basis basis = Basis::unknown;
  std::optional<double> target_perplexity;
  std::string why_unknown;          // why no choice is made, for Basis::unknown and Basis::perplexity
  std::vector<Finalist> finalists;  // [0] is the unchanged scenario
  /// The choice and the runners-up, sorted by value, and with Basis::published the `riskier` rows, of which
  /// no published run says anything; or the frontier: first what is recommended, then what takes less risk,
  /// then the `riskier` rows, each of which needs less time or cost than each one before it. Both parts go
  /// from less to more risk.
  std::vector<std::size_t> chosen;
  std::size_t riskier = 0;
  std::vector<MethodBest> methods;  // the best finalist of each method, sorted by value
  std::size_t simulated = 0;
  bool with_collectives = false;  // whether finalists were simulated with every collective algorithm
  /// Whether the quality of candidates is known well enough to rank them by one amount.
  [[nodiscard]] bool chooses() const {
    return basis == Basis::equal_loss || basis == Basis::target || basis == Basis::published;
  }
  [[nodiscard]] bool has_choice() const { return chooses() && !chosen.empty(); }
};

struct AnswerOptions {
  ScreeningOptions screening;
  std::size_t top = 10;
  /// Without a choice by quality, the least risky finalist is recommended whose value is at most this share
  /// above the lowest.
  double slack = 0.05;
  /// Why published runs, which answer for scenarios without a quality model, do not; empty if they do.
  std::string why_not_published;
  /// Of each finalist, to choose among them; the rows of the answer are then simulated as `fomoe simulate`
  /// does.
  sim::RunOptions simulation = {.rounds = {}, .most_flows = 20'000, .fewest_rounds = 4, .precision = 0.01};
};

/// The unchanged scenario with the results of both engines. Throws if it cannot be simulated.
Finalist base_line(const costmodel::Scenario& base, const AnswerOptions& options);

Answer answer(const Question& question, const Space& space, const Screening& screening, Finalist base,
              const AnswerOptions& options,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace fomoe::planner
