// Evaluates all candidates by the closed form and selects the few candidates to simulate. Records how many
// candidates are dropped for each reason.
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

/// Keeps only the best candidate of each method and the best candidate of each quality level, so that memory
/// does not grow with the number of candidates offered.
class Shortlist {
 public:
  /// If `by_perplexity` is true, candidates with the same number of sites and the same perplexity are on the
  /// same quality level; each candidate must then have a known perplexity. If it is false, the number of
  /// sites and the quality coordinates determine the level.
  explicit Shortlist(bool by_perplexity) : by_perplexity_(by_perplexity) {}
  void offer(const Candidate& candidate);
  [[nodiscard]] bool empty() const { return of_method_.empty(); }
  [[nodiscard]] std::uint64_t offered() const { return offered_; }
  /// The best candidate of each method, sorted by value.
  [[nodiscard]] std::vector<Candidate> of_methods(const Space& space) const;
  /// The best candidates overall, sorted by value. Returns at most `count` candidates; any two of them differ
  /// in method or in quality level.
  [[nodiscard]] std::vector<Candidate> best(std::size_t count) const;
  /// The two least risky candidates whose value is at most the slack above the lowest; also for half of the
  /// slack and twice of it, because a simulation decides which of them are within it.
  [[nodiscard]] std::vector<Candidate> prudent(double slack) const;
  /// The Pareto frontier in value and quality, sorted by value.
  [[nodiscard]] std::vector<Candidate> frontier() const;

 private:
  using Level = std::array<double, 7>;
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
  Shortlist known{true};                   // the candidates in `any` whose perplexity or loss is known
  std::uint64_t in_range = 0;  // those of them for which a range of the factor to equal loss is known
  /// Candidates that break a limit according to the closed form, but that may keep the limit in a simulation.
  /// There are such candidates only if the sites differ, because some closed forms then overestimate times.
  Shortlist doubtful{false};
};

struct ScreeningOptions {
  Measure minimise = Measure::time;
  Limits limits;
  /// The highest perplexity with which a candidate of known perplexity may be chosen.
  std::optional<double> target_perplexity;
  /// Bytes per element on the wire in the unchanged scenario. Quality models do not cover number formats with
  /// fewer bytes, so the perplexity of a candidate with such a format counts as unknown.
  double known_bytes_per_element = 0;
  bool sites_differ = false;   // some closed forms then overestimate the time
  double ports_per_month = 0;  // of a site, in the mean over those of the scenario
};

/// Calls `progress` with the number of candidates evaluated so far.
Screening screen(const costmodel::Scenario& base, const Question& question, const Space& space,
                 const ScreeningOptions& options, const std::function<void(std::uint64_t)>& progress);

/// Returns the cost if time is minimised, otherwise the time; 0 if that amount is unknown.
double other_amount(const Amounts& amounts, Measure minimise);

/// Whether `a` comes before `b` in the order of candidates. The candidate with the lower value comes first.
/// At equal value, the candidate with the lower risk for quality comes first, and at equal risk the candidate
/// that was generated first.
bool better(const Candidate& a, const Candidate& b);

}  // namespace fomoe::planner
