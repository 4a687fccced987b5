// The data of a run, opened as the scenario's [trainer] table says.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/plan/plan.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "trainer/data/batches.hpp"

namespace fomoe::trainer {

/// Whether a RunData::description() is that of synthetic tokens, which are no text.
inline bool is_synthetic(const std::string& description) { return description.starts_with("synthetic"); }

/// Opens the files without reading them, and deals the sequences to the sites of the plan. Throws FileError
/// and UsageError.
struct RunData {
  RunData(const costmodel::Scenario& scenario, const scenario::TrainerSettings& settings,
          const costmodel::Plan& plan);
  /// The data of a paced run, which reads none, of any model: a few tokens, whatever the scenario names.
  static RunData unread(costmodel::Scenario scenario, const costmodel::Plan& plan);

  /// What is trained on, in words: "corpus/train, 5,123,456 tokens" with the last two names of the path, or
  /// "synthetic: …" if the scenario names no data.
  [[nodiscard]] std::string description() const;

  std::string path;  // trainer.data; empty: synthetic tokens
  std::int64_t vocabulary = 0;
  Corpus corpus;
  std::optional<Corpus> validation_corpus;  // trainer.validation_data
  Batches batches;
};

}  // namespace fomoe::trainer
