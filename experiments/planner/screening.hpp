// Evaluates all candidates by the closed form, records which ones are dropped and why, and selects the few to
// simulate.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiments/planner/candidate.hpp"
#include "experiments/planner/space.hpp"

namespace fomoe::planner {

struct Dropped {
  std::uint64_t count = 0;
  std::string example;
};

/// Keeps the best of many candidates. Memory is constant except for one candidate for each quality level.
class Shortlist {
 public:
  /// `by_perplexity`: quality levels are known perplexities; otherwise they are the quality coordinates.
  explicit Shortlist(bool by_perplexity) : by_perplexity_(by_perplexity) {}
  void offer(const Candidate& candidate);
  [[nodiscard]] bool empty() const { return of_method_.empty(); }
  [[nodiscard]] std::uint64_t offered() const { return offered_; }
  /// The best candidate of each method, sorted by value.
  [[nodiscard]] std::vector<Candidate> of_methods(const Space& space) const;
  /// The best candidates overall, sorted by value: at most `count`, which differ in method or quality level.
  [[nodiscard]] std::vector<Candidate> best(std::size_t count) const;
  /// The Pareto frontier in value and quality, sorted by value.
  [[nodiscard]] std::vector<Candidate> frontier() const;

 private:
  using Level = std::array<double, 6>;
  struct Hash {
    std::size_t operator()(const Level& level) const;
  };
  [[nodiscard]] Level level_of(const Candidate& candidate) const;
  bool by_perplexity_;
  std::uint64_t offered_ = 0;
  std::map<std::uint32_t, Candidate> of_method_;  // best candidate by family
  std::unordered_map<Level, Candidate, Hash> of_level_;
};

struct Screening {
  std::uint64_t candidates = 0;
  std::map<std::string, Dropped> dropped;  // dropped candidates by reason
  Shortlist any{false};                    // all candidates that keep the limits
  Shortlist known{true};                   // those of `any` whose perplexity is known
  /// Candidates that break a limit by the closed form, in cases where the closed form is too pessimistic to
  /// decide.
  Shortlist doubtful{false};
};

struct ScreeningOptions {
  Measure minimise = Measure::time;
  Limits limits;
  /// The highest perplexity with which a candidate of known perplexity may be chosen.
  std::optional<double> target_perplexity;
  /// Bytes per element on the wire in the unchanged scenario. Quality models do not cover coarser numbers, so
  /// with coarser numbers a perplexity counts as unknown.
  double known_bytes_per_element = 0;
  bool closed_form_is_pessimistic = false;  // true if sites differ
};

/// Calls `progress` with the number of candidates evaluated so far.
Screening screen(const costmodel::Scenario& base, const Question& question, const Space& space,
                 const ScreeningOptions& options, const std::function<void(std::uint64_t)>& progress);

/// The one of time and cost that is not minimised; 0 if it is unknown.
double other_amount(const Amounts& amounts, Measure minimise);

/// Whether `a` precedes `b` at equal value: lower risk for quality first, then the earlier candidate.
bool better(const Candidate& a, const Candidate& b);

}  // namespace fomoe::planner
