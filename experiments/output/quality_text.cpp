#include "experiments/output/quality_text.hpp"

#include <fmt/format.h>

#include "costmodel/value/goodput.hpp"
#include "experiments/cli/equal_loss.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/files/published/published_quality.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::commands {

namespace {

/// Tokens, time, money and rounds up to the loss of data-parallel training.
std::string to_equal_loss(const costmodel::RunReport& report) {
  const costmodel::EqualLossRange& range = *report.quality->equal_loss_range;
  const auto amount = [&](double whole, const std::function<std::string(double)>& text) {
    return range_text(range, [&](double factor) { return text(factor * whole); });
  };
  std::string text =
      fmt::format("to the same loss: {} times the tokens, {}",
                  range_text(range, [](double factor) { return fmt::format("{:.3g}", factor); }),
                  time_to_equal_loss(report));
  if (const costmodel::RunAmounts of_run = costmodel::amounts_of(report); of_run.cost)
    text += ", " + range_text(range, [&](double factor) {
              return human_money(*of_run.cost_of_more_tokens(factor), report.cost->currency);
            });
  return text + ", " + amount(static_cast<double>(report.round.count), human_whole) + " rounds";
}

std::string published_text(const costmodel::RunReport& report) {
  const costmodel::PublishedLoss& loss = *report.quality->published;
  const costmodel::LossEstimate& level = loss.level;
  const std::string nearest = "nearest of the published runs: " + scenario::joined(loss.nearest);
  if (!level.known()) {
    std::string text =
        "loss against data-parallel training: UNKNOWN, because published runs do not cover it:\n";
    for (const std::string& reason : level.reasons) text += "  " + reason + '\n';
    return text + nearest + "\n\n";
  }
  if (report.quality->equal_loss_factor)
    return "loss: that of data-parallel training, which this method is\n\n";
  std::string text =
      fmt::format("loss {} against tuned data-parallel training of the same model on the same tokens; {}\n",
                  points_text(level), nearest);
  text += to_equal_loss(report) + '\n';
  text += "not covered: ";
  for (const std::string& note : level.notes) text += note + "; ";
  return text + "other data, tokenizers and sequence lengths than those of the rows\n\n";
}

}  // namespace

std::string quality_text(const costmodel::RunReport& report) {
  const costmodel::Quality& quality = *report.quality;
  if (quality.published) return published_text(report);
  if (!quality.known && !quality.equal_loss_factor)
    return fmt::format(
        "perplexity: UNKNOWN, because the scenario is outside the range of the quality model: {}\n  {}\n\n",
        quality.reason, quality.source);
  std::string text = quality.known
                         ? fmt::format("perplexity {}\n  {}\n", perplexity_text(report), quality.source)
                         : fmt::format("perplexity unknown: {}\n", quality.reason);
  if (quality.equal_loss_range) text += "  " + to_equal_loss(report) + '\n';
  if (quality.equal_loss_factor) {
    const double factor = *quality.equal_loss_factor;
    text += fmt::format("  to reach the loss of data-parallel training: {:.3g} times the compute, {}", factor,
                        time_to_equal_loss(report));
    if (const auto cost = costmodel::amounts_of(report).cost_of_more_tokens(factor))
      text += ", " + human_money(*cost, report.cost->currency);
    text += '\n';
  }
  return text + '\n';
}

std::string published_quality_table(const costmodel::LossSetting* near) {
  std::vector<const costmodel::PublishedRun*> runs;
  for (const costmodel::PublishedRun& run : scenario::published_losses()->runs()) runs.push_back(&run);
  if (near != nullptr)
    runs = costmodel::by_distance(std::move(runs), near->parameters, near->replicas, near->local_steps);
  std::vector<Row> table = {{"id", "method", "active", "M", "K", "tokens", "rounds", "bits", "metric",
                             "value", "baseline", "loss", "used"}};
  std::vector<std::string> sources = {"source"};
  const auto count = [](const std::optional<double>& value) {
    return value ? human_count(*value) : std::string("-");
  };
  const auto plain = [](const std::optional<double>& value) {
    return value ? fmt::format("{:g}", *value) : std::string("-");
  };
  const auto whole = [](std::int64_t value) { return value > 0 ? std::to_string(value) : std::string("-"); };
  for (const costmodel::PublishedRun* run : runs) {
    const auto loss = run->nats(), baseline = run->baseline_nats();
    table.push_back({run->id, run->method, count(run->parameters_active), whole(run->replicas),
                     whole(run->local_steps), count(run->tokens), plain(run->rounds), plain(run->wire_bits),
                     run->metric, plain(run->value), plain(run->baseline_value),
                     loss && baseline ? signed_points(costmodel::points_above(*loss, *baseline)) : "-",
                     run->usable() ? "yes" : "no"});
    sources.push_back(run->paper + (run->arxiv.empty() ? "" : " (arXiv " + run->arxiv + ")") +
                      (run->place.empty() ? "" : ", " + run->place));
  }
  return aligned_before(table, sources) +
         "\nLosses of local-update training that others published; experiments/data/published_quality.md "
         "explains them.\nquality.model = \"published\" answers from the rows that are used: of finished "
         "runs, "
         "compared with their first-hand\nsource. \"loss\": above that of the row's baseline. \"-\": not "
         "stated.\n";
}

}  // namespace fomoe::commands
