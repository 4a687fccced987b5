// The loss of a scenario by published runs (costmodel/published): what the scenario is in the terms of their
// rows.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// `tokens` are those of all sites, `steps` the optimiser steps of one.
LossSetting loss_setting(const ModelShape& model, const Strategy& strategy, int sites,
                         std::int64_t global_batch_sequences, std::int64_t steps);

/// The answer of the rows. The perplexity itself stays unknown.
Quality published_quality(const PublishedQuality& published, LossSetting setting);

}  // namespace fomoe::costmodel
