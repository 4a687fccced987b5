#include "experiments/planner/decision.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "experiments/planner/published_basis.hpp"
#include "experiments/planner/rules.hpp"

namespace fomoe::planner {

namespace {

bool before(const Finalist& a, const Finalist& b) {
  Candidate left = a.candidate, right = b.candidate;
  left.value = a.value;
  right.value = b.value;
  return better(left, right);
}

/// The entries at even distances, `count` at most, with the first and the last.
std::vector<std::size_t> spread(const std::vector<std::size_t>& list, std::size_t count) {
  if (list.size() <= count) return list;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < count; ++i)
    kept.push_back(list[count == 1 ? 0 : i * (list.size() - 1) / (count - 1)]);
  return kept;
}

class Decision {
 public:
  Decision(Answer& answer, const AnswerOptions& options) : answer_(answer), options_(options) {
    for (std::size_t i = 1; i < answer.finalists.size(); ++i) {
      if (answer.finalists[i].problem.empty()) by_value_.push_back(i);
    }
    std::sort(by_value_.begin(), by_value_.end(),
              [&](std::size_t a, std::size_t b) { return before(at(a), at(b)); });
  }

  void decide() {
    if (by_value_.empty()) return;
    bool choice = answer_.chooses();
    std::vector<std::size_t> kept = undominated(choice);
    if (answer_.basis == Basis::published && kept.empty()) {
      // The simulation left none of those that are covered.
      answer_.basis = Basis::unknown;
      answer_.why_unknown = "published runs cover no configuration that meets the limits";
      choice = false;
      kept = undominated(choice);
    }
    choice ? rank(kept) : lead(kept);
    if (answer_.basis == Basis::published) add_uncovered();
    // What published runs cover comes first: values of the others are those of their runs, not of equal loss.
    if (answer_.basis == Basis::published)
      std::stable_partition(by_value_.begin(), by_value_.end(), [&](std::size_t i) { return eligible(i); });
    std::set<std::string> seen;
    for (const std::size_t i : by_value_) {
      if (!seen.insert(at(i).method()).second) continue;
      MethodBest best;
      best.finalist = i;
      if (choice) {
        if (!answer_.chosen.empty() && i != answer_.chosen.front()) best.loses_to = answer_.chosen.front();
      } else {
        best.loses_to = losing_to(i);
      }
      answer_.methods.push_back(best);
    }
  }

 private:
  [[nodiscard]] const Finalist& at(std::size_t i) const { return answer_.finalists[i]; }
  /// The finalist's amount at equal loss that is not minimised: the cost if time is minimised, otherwise the
  /// time.
  [[nodiscard]] double other_value(std::size_t i) const {
    return other_amount(at(i).at_equal_loss(), options_.screening.minimise);
  }
  [[nodiscard]] bool eligible(std::size_t i) const {
    if (answer_.basis != Basis::target) return at(i).equal_loss_factor.has_value();
    return at(i).perplexity && *at(i).perplexity <= *answer_.target_perplexity;
  }
  /// Whether published runs say what the finalist's settings cost in loss.
  [[nodiscard]] bool priced(std::size_t i) const {
    return answer_.basis == Basis::published && at(i).equal_loss_factor.has_value();
  }
  /// The measured perplexity, by which finalists are compared if it is the basis; unknown ones come last.
  [[nodiscard]] double perplexity(std::size_t i) const {
    return at(i).perplexity.value_or(std::numeric_limits<double>::infinity());
  }
  [[nodiscard]] bool no_worse_quality(std::size_t a, std::size_t b) const {
    if (answer_.basis == Basis::perplexity) return perplexity(a) <= perplexity(b);
    return no_riskier(at(a).candidate.quality, at(b).candidate.quality);
  }
  [[nodiscard]] bool prefers_quality(std::size_t a, std::size_t b) const {
    if (answer_.basis == Basis::perplexity) return perplexity(a) < perplexity(b);
    return less_risky(at(a).candidate.quality, at(b).candidate.quality);
  }
  /// From less to more risk, and at equal risk from the lower to the higher product of both amounts.
  [[nodiscard]] bool preferred(std::size_t a, std::size_t b) const {
    // Published runs have put a number on the risk, which is in both amounts.
    if (!(priced(a) && priced(b))) {
      if (prefers_quality(a, b)) return true;
      if (prefers_quality(b, a)) return false;
    }
    // Amounts may be 0, as those of free GPUs are. What differs by rounding only is equal, and the less risky
    // configuration is then preferred. Whole numbers keep the order transitive, as sorting needs it.
    const auto grade = [&](std::size_t i) {
      constexpr double kSame = 1e-9, kLeast = 1e-150;
      const double product = std::max(at(i).value, kLeast) * std::max(other_value(i), kLeast);
      return std::round(std::log(product) / kSame);
    };
    if (grade(a) != grade(b)) return grade(a) < grade(b);
    if (prefers_quality(a, b) || prefers_quality(b, a)) return prefers_quality(a, b);
    return before(at(a), at(b));
  }
  [[nodiscard]] bool dominates(std::size_t a, std::size_t b) const {
    const bool no_worse =
        no_worse_quality(a, b) ||
        (priced(a) && priced(b) && at(a).scenario.strategy.method == at(b).scenario.strategy.method &&
         at(a).published->level.points <= at(b).published->level.points);
    return a != b && no_worse && at(a).value <= at(b).value * (1 + kTie) &&
           other_value(a) <= other_value(b) * (1 + kTie);
  }
  [[nodiscard]] std::optional<std::size_t> dominating(const std::vector<std::size_t>& kept,
                                                      std::size_t i) const {
    if (std::find(kept.begin(), kept.end(), i) != kept.end()) return std::nullopt;
    const auto found =
        std::find_if(kept.begin(), kept.end(), [&](std::size_t other) { return dominates(other, i); });
    return found == kept.end() ? std::nullopt : std::optional(*found);
  }

  /// A row of the answer with no more risk, as the plan orders it, and no larger amounts.
  [[nodiscard]] std::optional<std::size_t> losing_to(std::size_t i) const {
    for (const std::size_t row : answer_.chosen) {
      if (row == i) return std::nullopt;
    }
    for (const std::size_t row : answer_.chosen) {
      if (!prefers_quality(i, row) && at(row).value <= at(i).value * (1 + kTie) &&
          other_value(row) <= other_value(i) * (1 + kTie))
        return row;
    }
    return std::nullopt;
  }

  /// The finalists that none of the others dominates, in the order of preference. Whatever dominates a
  /// finalist by more than a tie is before it in this order, so that each one that is left out loses to one
  /// that is kept.
  [[nodiscard]] std::vector<std::size_t> undominated(bool choice) const {
    std::vector<std::size_t> order = by_value_, kept;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return preferred(a, b); });
    for (const std::size_t i : order) {
      if (choice && !eligible(i)) continue;
      if (!dominating(kept, i)) kept.push_back(i);
    }
    return kept;
  }

  /// Sorts by value what reaches the quality. The first is the preferred of those that tie with the best.
  void rank(std::vector<std::size_t> kept) {
    if (kept.empty()) return;
    std::sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) { return before(at(a), at(b)); });
    const double most = at(kept.front()).value * (1 + kTie);
    const auto tied =
        std::find_if(kept.begin(), kept.end(), [&](std::size_t i) { return at(i).value > most; });
    std::sort(kept.begin(), tied, [&](std::size_t a, std::size_t b) { return preferred(a, b); });
    if (kept.size() > options_.top) kept.resize(options_.top);
    answer_.chosen = kept;
  }

  /// The first is the preferred of those whose value is within the slack of the lowest; see Answer::chosen.
  void lead(const std::vector<std::size_t>& kept) {
    // If nothing else says what that costs.
    const auto enough = std::find_if(by_value_.begin(), by_value_.end(), [&](std::size_t i) {
      return answer_.basis != Basis::unknown || !trains_less(at(i).candidate.quality);
    });
    const std::size_t lowest = enough == by_value_.end() ? by_value_.front() : *enough;
    const double most = at(lowest).value * (1 + std::max(options_.slack, kTie));
    const auto recommended =
        std::find_if(kept.begin(), kept.end(), [&](std::size_t i) { return at(i).value <= most; });
    std::vector<std::size_t> safer(kept.begin(), recommended);
    std::vector<std::size_t> riskier =
        improvements(recommended + 1, kept.end(), at(*recommended).value, other_value(*recommended));
    const std::size_t rows = options_.top - 1;
    riskier = spread(riskier, std::max(rows - std::min(rows, safer.size()), (rows + 1) / 2));
    safer = spread(safer, rows - riskier.size());
    answer_.chosen = {*recommended};
    answer_.chosen.insert(answer_.chosen.end(), safer.begin(), safer.end());
    answer_.chosen.insert(answer_.chosen.end(), riskier.begin(), riskier.end());
    answer_.riskier = riskier.size();
  }

  /// Adds what no published run covers and what needs less time or cost in its run than all rows before it,
  /// from less to more risk, and compares the first row with those that are covered.
  void add_uncovered() {
    if (answer_.chosen.empty()) return;
    Finalist& first = answer_.finalists[answer_.chosen.front()];
    for (const std::size_t i : answer_.chosen) {
      if (i != answer_.chosen.front())
        answer_.finalists[i].first_needs_less =
            probability_less(first, answer_.finalists[i], options_.screening.minimise);
    }
    std::vector<std::size_t> order;
    for (const std::size_t i : by_value_)
      if (!eligible(i)) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return preferred(a, b); });
    const double first_value = first.simulated.of(options_.screening.minimise);
    const double first_other = other_amount(first.simulated, options_.screening.minimise);
    std::vector<std::size_t> found = improvements(order.begin(), order.end(), first_value, first_other);
    const std::size_t rows = options_.top;
    found = spread(found, std::max(rows - std::min(rows, answer_.chosen.size()), rows / 2));
    answer_.chosen.resize(std::min(answer_.chosen.size(), rows - found.size()));
    answer_.chosen.insert(answer_.chosen.end(), found.begin(), found.end());
    answer_.riskier = found.size();
  }

  using Iterator = std::vector<std::size_t>::const_iterator;
  /// The finalists, in the order of preference, of which none has both amounts at least as high as these two,
  /// or as those of one that is taken before it.
  [[nodiscard]] std::vector<std::size_t> improvements(Iterator begin, Iterator end, double first_value,
                                                      double first_other) const {
    std::vector<std::size_t> found;
    std::vector<std::pair<double, double>> taken = {{first_value, first_other}};
    for (auto i = begin; i < end; ++i) {
      const double value = at(*i).value, other = other_value(*i);
      if (std::any_of(taken.begin(), taken.end(), [&](const auto& amounts) {
            return value * (1 + kTie) >= amounts.first && other * (1 + kTie) >= amounts.second;
          }))
        continue;
      found.push_back(*i);
      taken.emplace_back(value, other);
    }
    return found;
  }

  Answer& answer_;
  const AnswerOptions& options_;
  std::vector<std::size_t> by_value_;  // indices of the finalists that keep all limits
};

}  // namespace

void decide(Answer& answer, const AnswerOptions& options) { Decision(answer, options).decide(); }

}  // namespace fomoe::planner
