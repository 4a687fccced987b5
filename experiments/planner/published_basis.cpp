#include "experiments/planner/published_basis.hpp"

#include <cmath>

#include "costmodel/plan/site_shares.hpp"
#include "costmodel/published/losses.hpp"
#include "costmodel/value/published_quality.hpp"
#include "experiments/planner/rules.hpp"

namespace fomoe::planner {

namespace {

const costmodel::PublishedQuality* asked(const costmodel::Scenario& scenario) {
  return scenario.quality ? std::get_if<costmodel::PublishedQuality>(&*scenario.quality) : nullptr;
}

}  // namespace

std::optional<costmodel::PublishedLoss> published_loss(const costmodel::Scenario& scenario) {
  const costmodel::PublishedQuality* published = asked(scenario);
  if (published == nullptr) return std::nullopt;
  return costmodel::published_quality(
             *published, costmodel::loss_setting(scenario.model, scenario.strategy, scenario.sites(),
                                                 scenario.workload.global_batch_sequences,
                                                 costmodel::optimizer_steps(scenario)))
      .published;
}

std::optional<double> probability_less(const Finalist& first, const Finalist& other, Measure measure) {
  if (!first.published || !other.published) return std::nullopt;
  const costmodel::LossSetting& setting = first.published->setting;
  const costmodel::LossEstimate difference =
      asked(first.scenario)->losses->contrast(setting, other.published->setting);
  if (!difference.known()) return std::nullopt;
  // `other` needs more if its loss is above the points at which both need the same amount.
  const double own_points = first.published->level.points;
  for (const Finalist* one : {&first, &other})  // an amount is 0, or a run never ends
    if (!(one->simulated.of(measure) > 0) || !std::isfinite(one->simulated.of(measure))) return std::nullopt;
  double sum = 0;
  for (const costmodel::TokenLaw& law : costmodel::kTokenLaws) {
    const auto own = costmodel::tokens_factor(law, setting.parameters, setting.tokens, own_points);
    if (!own) return std::nullopt;
    const double same =
        factor_of_amount(other.simulated, measure, to_equal_loss(first.simulated, *own).of(measure));
    if (!(same > 0)) return std::nullopt;
    const double even =
        costmodel::points_of_factor(law, setting.parameters, setting.tokens, same) - own_points;
    costmodel::LossEstimate above = difference;
    above.points -= even;
    sum += above.half > 0 ? above.probability_above_0() : (above.points > 0 ? 1 : above.points < 0 ? 0 : 0.5);
  }
  return sum / static_cast<double>(costmodel::kTokenLaws.size());
}

}  // namespace fomoe::planner
