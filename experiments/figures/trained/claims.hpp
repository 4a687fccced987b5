// Decides whether training runs support a statement, with the spread between seeds as the measure of chance.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/figures/figure.hpp"
#include "experiments/figures/trained/trained_runs.hpp"

namespace fomoe::figures {

/// A difference of losses in nats, which is the logarithm of a ratio of perplexities.
struct Effect {
  std::size_t comparisons = 0;
  double mean = 0;         // over the comparisons
  double half_width = -1;  // of the 95 % interval; negative: unknown, since no setting has two seeds
  std::size_t seeds = 0;   // the fewest of a setting that was compared
};

/// A setting and its weight in a sum of losses.
using Term = std::pair<Setting, double>;
/// Sums of losses, such as loss(first) − loss(second). All settings must have been trained.
using Comparisons = std::vector<std::vector<Term>>;

/// {{first, 1}, {second, −1}}
std::vector<Term> difference(const Setting& first, const Setting& second);

/// loss(setting) − loss(other(setting)) for all settings for which `other` names one that was trained too.
Comparisons differences(const Trained& trained,
                        const std::function<std::optional<Setting>(const Setting&)>& other);

/// For each setting of `of`, the setting for which among(setting, other) is true, that costs at most as much
/// and has the smallest loss: loss(setting) − loss(best). Settings for which there is none are left out. The
/// luckiest seeds decide among settings of equal quality, which favours `among`.
Comparisons against_best_within(const Trained& trained, const std::function<bool(const Setting&)>& of,
                                const std::function<bool(const Setting&, const Setting&)>& among,
                                double TrainedRuns::*cost);

/// The same with the two sides exchanged.
Comparisons negated(Comparisons comparisons);

/// The settings on the frontier of perplexity and cost of those for which `wanted` is true, for each number
/// of sites.
std::vector<Setting> frontier_of(const Trained& trained, const std::function<bool(const Setting&)>& wanted,
                                 double TrainedRuns::*cost);

/// The mean over the comparisons.
///
/// The losses of the seeds of a setting are taken as independent, with one standard deviation s for all
/// settings: s² = Σ(n − 1)·s_setting² ÷ Σ(n − 1), over settings with n ≥ 2 seeds. The mean is Σ c·loss over
/// settings with n seeds each, so that its variance is s²·Σ c²/n, and its interval is ± t·√variance with
/// Student's t of Σ(n − 1) degrees of freedom.
Effect effect_of(const Trained& trained, const Comparisons& comparisons,
                 OfSeeds values = &TrainedRuns::losses);

/// Half of the width of the 95 % interval of the difference between two settings with `seeds` seeds each;
/// negative if it is unknown.
double half_width_of_difference(const Trained& trained, std::size_t seeds);

enum class Verdict { holds, does_not_hold, cannot_be_told };

/// A statement of the paper, and what the runs say about it.
struct Claim {
  std::string sentence;
  std::string measure;  // what the effect is the mean of
  Effect effect;
  Verdict verdict = Verdict::cannot_be_told;
  std::string finding = {};  // what was found, in words, for a claim that is not about an effect
  double threshold = 0;      // nats: the claim is that the effect is above it,
  bool above = true;         // or at most as large
  std::optional<Effect> without_diverged = std::nullopt;  // if settings diverged
};

/// The statement that the effect is above 0: the verdict is that of the whole interval.
Claim claim_above_zero(std::string sentence, std::string measure, const Effect& effect);
/// The statement that the effect is at most `most` nats.
Claim claim_at_most(std::string sentence, std::string measure, const Effect& effect, double most);

/// The statement that the effect is above `least`.
Claim claim_above(std::string sentence, std::string measure, const Effect& effect, double least);

/// Who reaches a lower perplexity within the same bytes may depend on whose bytes are the budget: the other
/// side may then send much less.
struct Rivals {
  std::string first, second;  // "LocalAdamW runs"
  std::function<bool(const Setting&)> is_first, is_second;
  std::function<bool(const Setting&, const Setting&)> comparable;
  std::string which = {};  // what is compared, after both sentences: " (LocalAdamW, any K)"
};
/// The statement that the first side reaches a lower perplexity, once within the bytes of each setting of the
/// second side, and once within those of each setting of the first.
std::vector<Claim> within_same_bytes(const Trained& trained, const Rivals& rivals);

/// The claims that `claims_of` makes of printed means, whose spread is unknown: the mean effect alone
/// decides. A mean over settings of which some diverged says little, so the effect without them stands beside
/// it.
std::vector<Claim> by_sign(const Trained& printed,
                           const std::function<std::vector<Claim>(const Trained&)>& claims_of);

const char* to_string(Verdict verdict);
/// {"claim", "measure", "verdict", "claimed" (the threshold, "above" or "at_most"), "comparisons", "seeds",
/// "effect", "low", "high", "percent", "percent_without_diverged"}; without comparisons, only the first
/// three, and "finding" if there is one.
Json to_json(const Claim& claim);

/// The claims as JSON, and as lines of text for people.
Json to_json(const std::vector<Claim>& claims);
std::string text_of(const std::vector<Claim>& claims);

/// All claims of several figures in one table: what the paper's printed figures say, and what our runs say.
/// One row for each claim of the figures' findings, in their order. A claim that is made of the paper's
/// printed means and of our runs has one row. Effects and intervals of 95 % are in per cent; the seeds are
/// the fewest of a setting that was compared. Cells that are not known are empty.
Figure claims_table(const std::vector<Figure>& figures, const std::vector<std::string_view>& ids);

/// The table for people: the verdicts in columns, and the claim last.
std::string claims_text(const Figure& table);

/// Whether no other point has both a smaller or equal `cost` and a smaller loss.
std::vector<bool> on_frontier(const std::vector<std::pair<double, double>>& cost_and_loss);

}  // namespace fomoe::figures
