// All candidates by the closed form: what is dropped and why, and the few that are worth simulating.
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

/// The best of many candidates, in constant memory but for one for each level of quality.
class Shortlist {
 public:
  /// `by_perplexity`: levels are known perplexities; else what quality may be lost by.
  explicit Shortlist(bool by_perplexity) : by_perplexity_(by_perplexity) {}
  void offer(const Candidate& candidate);
  [[nodiscard]] bool empty() const { return of_method_.empty(); }
  [[nodiscard]] std::uint64_t offered() const { return offered_; }
  /// The best of each method, the best first.
  [[nodiscard]] std::vector<Candidate> of_methods(const Space& space) const;
  /// The best overall, the best first: at most `count` that differ in method or quality level.
  [[nodiscard]] std::vector<Candidate> best(std::size_t count) const;
  /// Those to which no other is preferable in both value and quality; by value.
  [[nodiscard]] std::vector<Candidate> frontier() const;

 private:
  using Level = std::array<double, 6>;
  struct Hash {
    std::size_t operator()(const Level& level) const;
  };
  [[nodiscard]] Level level_of(const Candidate& candidate) const;
  bool by_perplexity_;
  std::uint64_t offered_ = 0;
  std::map<std::uint32_t, Candidate> of_method_;  // by family
  std::unordered_map<Level, Candidate, Hash> of_level_;
};

struct Screening {
  std::uint64_t candidates = 0;
  std::map<std::string, Dropped> dropped;  // by reason
  Shortlist any{false};                    // all that keep the limits
  Shortlist known{true};                   // of these, whose perplexity is known
  Shortlist doubtful{false};  // would break a limit by the closed form, where it is too pessimistic to say so
};

struct ScreeningOptions {
  Measure minimise = Measure::time;
  Limits limits;
  /// Highest perplexity that a known candidate may have to be the choice.
  std::optional<double> target_perplexity;
  /// Of an element on the wire, in the scenario as it is. Quality models know nothing of coarser numbers:
  /// with them a perplexity counts as unknown.
  double known_bytes_per_element = 0;
  bool closed_form_is_pessimistic = false;  // sites differ
};

/// `progress` is called with the number of candidates that have been looked at.
Screening screen(const costmodel::Scenario& base, const Question& question, const Space& space,
                 const ScreeningOptions& options, const std::function<void(std::uint64_t)>& progress);

/// Of time and cost the one that is not minimised; 0 where it is unknown.
double other_amount(const Amounts& amounts, Measure minimise);

/// Whether a is preferred where the values are the same: what is safer, then what was tried first.
bool better(const Candidate& a, const Candidate& b);

}  // namespace fomoe::planner
