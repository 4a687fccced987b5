#include "trainer/run/run_data.hpp"

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "experiments/text/human.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::trainer {
namespace {

// Enough tokens for several passes to differ, and few enough to generate at once.
constexpr std::int64_t kSyntheticTokens = 1'000'000;

std::optional<Corpus> opened(const std::string& path, const costmodel::Scenario& scenario) {
  if (path.empty()) return std::nullopt;
  return Corpus::open(path, scenario.model.vocabulary);
}

Corpus training_corpus(const costmodel::Scenario& scenario, const std::string& path) {
  if (auto given = opened(path, scenario)) return *given;
  return Corpus::synthetic(scenario.model.vocabulary, kSyntheticTokens, scenario.seed);
}

Batches dealt(const costmodel::Scenario& scenario, const scenario::TrainerSettings& settings,
              const costmodel::Plan& plan, const Corpus& corpus, const std::optional<Corpus>& validation) {
  SiteData sites = {data_split(settings.data_split)};
  for (const costmodel::Node& node : plan.nodes)
    sites.sequences_per_step.push_back(static_cast<std::int64_t>(node.sequences));
  try {
    return {corpus,
            scenario.model.sequence_length,
            scenario.workload.global_batch_sequences,
            settings.validation_sequences,
            scenario.seed,
            sites,
            validation};
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

RunData::RunData(const costmodel::Scenario& scenario, const scenario::TrainerSettings& settings,
                 const costmodel::Plan& plan)
    : path(settings.data),
      vocabulary(scenario.model.vocabulary),
      corpus(training_corpus(scenario, settings.data)),
      validation_corpus(opened(settings.validation_data, scenario)),
      batches(dealt(scenario, settings, plan, corpus, validation_corpus)) {}

std::string RunData::description() const {
  if (path.empty()) {
    char loss[32];
    std::snprintf(loss, sizeof loss, "%.3f", Corpus::synthetic_loss(vocabulary));
    return std::string(
               "synthetic: a Markov chain, because the scenario names no trainer.data; the lowest loss "
               "that a model can reach is ") +
           loss + " nats per token";
  }
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "corpus/train/"
  const std::string folder = whole.parent_path().filename().string();
  return (folder.empty() ? "" : folder + '/') + whole.filename().string() + ", " +
         commands::human_whole(static_cast<double>(corpus.size())) + " tokens";
}

RunData RunData::unread(costmodel::Scenario scenario, const costmodel::Plan& plan) {
  scenario.model.vocabulary = 256;
  scenario.model.sequence_length = 1;
  return {scenario, {}, plan};
}

}  // namespace fomoe::trainer
