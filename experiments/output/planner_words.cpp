#include "experiments/output/planner_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/cli/equal_loss.hpp"
#include "experiments/output/simulate_line.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::commands {

std::string ratio_text(double ratio) {
  if (ratio < 1.1) return human_percent(ratio - 1) + " more than";
  return fmt::format("{:.3g} times as much as", ratio);
}

const char* const kRisks =
    "Fewer synchronisations (larger K), fewer copies of each expert (smaller O_e/M), a less precise wire "
    "format\n"
    "and delayed updates can reduce quality by an unknown amount. Each row after the first is better than "
    "every row\n"
    "above it in risk, time or cost; values within 1 % of each other count as equal. Methods also differ in "
    "other\n"
    "ways that affect quality.\n";

std::string details(const PlannerAnswer& plan, const planner::Finalist& finalist) {
  const costmodel::Strategy& strategy = finalist.scenario.strategy;
  const costmodel::Method& method = *strategy.method;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (method.partial_experts && costmodel::effective_overlap(finalist.scenario) < finalist.scenario.sites()) {
    add(to_string(strategy.placement));
    if (strategy.placement == costmodel::PlacementKind::random)
      text += fmt::format(" T={}", strategy.reshuffle_rounds);
  }
  if (costmodel::has_axis(method, "fragments") && strategy.fragments > 1)
    add(fmt::format("{} fragments", strategy.fragments));
  if (costmodel::has_axis(method, "overlap_steps") && strategy.overlap_steps > 0)
    add(fmt::format("{} overlap steps", strategy.overlap_steps));
  if (!finalist.scenario.workload.batch_shares.empty() && !method.one_site) add("unequal batch");
  for (const sweep::Axis& axis : plan.question.vary) {
    static const std::vector<std::string> shown = {
        "strategy.method",    "strategy.local_steps",   "strategy.expert_overlap",   "strategy.placement",
        "strategy.fragments", "strategy.overlap_steps", "strategy.collective",       "strategy.payload_dtype",
        "platform.use_sites", "platform.sites",         "strategy.reshuffle_rounds", "workload.batch"};
    if (std::find(shown.begin(), shown.end(), axis.key) != shown.end()) continue;
    for (const std::string& setting : finalist.settings) {
      if (setting.starts_with(axis.key + '=')) add(shell_word(setting));
    }
  }
  return text;
}

std::string by_published_runs(const planner::Answer& answer) {
  const planner::Finalist& first = answer.finalists[answer.chosen.front()];
  std::vector<std::string> sentences;
  if (first.published && first.published->level.half > 0)
    sentences.push_back(fmt::format("Loss of row 1 against it: {}.", points_text(first.published->level)));
  if (answer.chosen.size() > answer.riskier + 1) {
    const planner::Finalist& second = answer.finalists[answer.chosen[1]];
    if (second.first_needs_less)
      sentences.push_back(
          fmt::format("Row 1 needs less than row 2 with a probability of {:.2f}.", *second.first_needs_less));
  }
  if (first.published && !first.published->level.notes.empty())
    sentences.push_back("Not covered: " + scenario::joined(first.published->level.notes, "; ") + ".");
  if (answer.riskier > 0)
    sentences.emplace_back(
        "No published run says what the last rows cost in loss; each takes less time or cost for its run "
        "than row 1.");
  return " This is the amount to reach the loss of tuned data-parallel training, at the centre of what "
         "published "
         "runs say\n(quality.model = \"published\", the default of plan). The times and costs in the table "
         "are "
         "those of the configured runs, and so are limits (--within).\n" +
         scenario::joined(sentences, "\n") + (sentences.empty() ? "" : "\n");
}

}  // namespace fomoe::commands
