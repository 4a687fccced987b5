// From the shortlist to an answer: the finalists are simulated, and what was simulated decides.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/planner/screening.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::planner {

/// One candidate, or the scenario as it is, by both engines.
struct Finalist {
  Candidate candidate;
  std::vector<std::string> settings;  // "strategy.method=fomoe", …: for --set
  costmodel::Scenario scenario;
  Amounts closed_form, simulated;
  double value = 0;  // simulated, as in Candidate
  double exposed_share = 0, compute_utilization = 0, gpu_memory_bytes = 0, bytes_sent_per_site_per_round = 0;
  std::string busiest_link;
  std::optional<double> perplexity, plus_minus, equal_loss_factor;
  std::string quality_reason;  // of an unknown perplexity
  std::string problem;         // empty, or why it is out: a limit that it breaks when simulated, or an error
  [[nodiscard]] const char* method() const { return scenario.strategy.method->name.c_str(); }
  [[nodiscard]] std::int64_t steps_per_round() const;
};

enum class Basis {
  equal_loss,  // a scaling law knows what reaches the same loss
  target,      // measured perplexities: the best of those that are low enough
  perplexity,  // measured perplexities and no target: a frontier
  unknown      // no quality model is valid: a frontier of what may cost quality
};

struct MethodBest {
  std::size_t finalist = 0;
  std::optional<std::size_t> loses_to;  // a finalist; none: it is among `chosen`
};

struct Answer {
  Basis basis = Basis::unknown;
  std::optional<double> target_perplexity;
  std::string why_unknown;          // of Basis::unknown and Basis::perplexity
  std::vector<Finalist> finalists;  // [0] is the scenario as it is
  std::vector<std::size_t> chosen;  // the choice and the runners-up, or the frontier; by value
  std::vector<MethodBest> methods;  // each method's best, by value
  std::size_t simulated = 0;
  bool with_collectives = false;  // finalists were simulated with every collective
  [[nodiscard]] bool has_choice() const {
    return (basis == Basis::equal_loss || basis == Basis::target) && !chosen.empty();
  }
};

struct AnswerOptions {
  ScreeningOptions screening;
  std::size_t top = 10;
  sim::RunOptions simulation;
};

/// The scenario as it is, by both engines. Throws where it cannot be simulated.
Finalist base_line(const costmodel::Scenario& base, const AnswerOptions& options);

Answer answer(const Question& question, const Space& space, const Screening& screening, Finalist base,
              const AnswerOptions& options,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace fomoe::planner
