#include "experiments/analysis/loss_contrast.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/files/published/published_quality.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::commands {

std::optional<costmodel::LossEstimate> loss_contrast(const costmodel::RunReport& base,
                                                     const costmodel::RunReport& other) {
  const auto asked = [](const costmodel::RunReport& report) {
    return report.quality && report.quality->published;
  };
  if (!asked(base) || !asked(other)) return std::nullopt;
  return scenario::published_losses()->contrast(base.quality->published->setting,
                                                other.quality->published->setting);
}

std::string contrast_text(const costmodel::LossEstimate& contrast) {
  if (!contrast.known()) return "unknown: " + scenario::joined(contrast.reasons, "; ");
  if (contrast.half == 0) return "the same setting";
  return fmt::format("{}{:+.2f} ± {:.2f} %, P(higher) {:.2f}{}", contrast.equal() ? "= " : "",
                     contrast.points, contrast.half, contrast.probability_above_0(),
                     contrast.studies > 0 ? fmt::format(", {} studies", contrast.studies) : "");
}

std::string contrast_table(const std::vector<Case>& cases) {
  std::vector<Row> rows = {{"case", "K", "O_e"}};
  std::vector<std::string> texts = {"loss against the first case, by published runs"};
  std::vector<std::string> notes;
  bool equal = false;
  for (const Case& one : cases) {
    const auto contrast = loss_contrast(cases.front().report, one.report);
    if (!contrast) return "";
    const bool first = &one == &cases.front();
    rows.push_back({one.name, std::to_string(one.steps_per_round()), std::to_string(one.expert_overlap)});
    texts.push_back(first ? "-" : contrast_text(*contrast));
    equal = equal || (!first && contrast->known() && contrast->half > 0 && contrast->equal());
    for (const std::string& note : contrast->notes)
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  std::string text = aligned_before(rows, texts);
  if (equal) text += "\"=\": 0 lies inside of the 80 % interval.\n";
  for (const std::string& note : notes) text += "Note: " + note + ".\n";
  return text;
}

}  // namespace fomoe::commands
