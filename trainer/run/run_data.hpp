// The data of a run, opened as the scenario's [trainer] table says.
#pragma once
#include <optional>

#include "costmodel/plan/plan.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "trainer/data/batches.hpp"

namespace fomoe::trainer {

/// Opens the files without reading them, and deals the sequences to the sites of the plan. Throws FileError
/// and UsageError.
struct RunData {
  RunData(const costmodel::Scenario& scenario, const scenario::TrainerSettings& settings,
          const costmodel::Plan& plan);
  /// The data of a paced run, which reads none, of any model: a few tokens, whatever the scenario names.
  static RunData unread(costmodel::Scenario scenario, const costmodel::Plan& plan);

  Corpus corpus;
  std::optional<Corpus> validation_corpus;  // trainer.validation_data
  Batches batches;
};

}  // namespace fomoe::trainer
