#include "experiments/step_profiles/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/scenario/toml/document.hpp"

namespace fomoe::step_profiles {
namespace {

constexpr double kMostDifference = 0.02;

std::string with_commas(double count) {
  std::string text = fmt::format("{:.0f}", count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

struct Compared {
  double logged = 0, rounding = 0, model = 0;
  bool part = false;  // what is logged may be a part of the model
};

/// What the ranks state together. The experts on the GPUs of an expert-parallel rank are a part of all.
Compared of_ranks(const StatedFacts& stated, const costmodel::ModelShape& shape) {
  std::int64_t tensor = 1, stages = 1;
  Compared compared;
  for (const auto& [rank, parameters] : stated.parameters_of_ranks) {
    tensor = std::max(tensor, rank.first + 1);
    stages = std::max(stages, rank.second + 1);
    compared.logged += static_cast<double>(parameters);
  }
  const bool stated_degrees = (stated.tensor_parallel && stated.pipeline_parallel) || stated.gpus == 1;
  tensor = stated.tensor_parallel.value_or(tensor);
  stages = stated.pipeline_parallel.value_or(stages);
  // Without the degrees, the log may be an excerpt with the first rank of many.
  compared.part = static_cast<std::int64_t>(stated.parameters_of_ranks.size()) < tensor * stages ||
                  (!stated_degrees && tensor * stages == 1) ||
                  (shape.experts > 0 && !stated.expert_parallel && !stated_degrees);
  const costmodel::ParameterCounts counts = costmodel::count_parameters(shape);
  const auto experts = static_cast<double>(counts.expert), total = static_cast<double>(counts.total());
  compared.model = total - experts + experts / static_cast<double>(stated.expert_parallel.value_or(1));
  // Every tensor-parallel rank has the norms, and the last stage a copy of a tied embedding table.
  compared.model += static_cast<double>(counts.norm) * static_cast<double>(tensor - 1);
  if (stages > 1 && shape.tied_embeddings) compared.model += static_cast<double>(counts.embedding);
  // Each embedding table has a multiple of 128 · t rows.
  compared.rounding = 128.0 * static_cast<double>(tensor * shape.d_model) * (shape.tied_embeddings ? 1 : 2);
  return compared;
}

/// A preset with as many parameters, if there is one.
std::string example_for(double logged) {
  for (const costmodel::ModelShape& preset : costmodel::presets()) {
    const auto total = static_cast<double>(costmodel::count_parameters(preset).total());
    if (std::abs(logged / total - 1) <= kMostDifference) return "--model " + preset.name;
  }
  return "fomoe list models";
}

}  // namespace

void check_parameters(const Log& log, const std::string& path, const costmodel::ModelShape& model) {
  Compared compared;
  if (log.stated.parameters) {
    compared = {log.stated.parameters->count, log.stated.parameters->rounding,
                static_cast<double>(costmodel::count_parameters(model).total()), false};
  } else if (!log.stated.parameters_of_ranks.empty()) {
    compared = of_ranks(log.stated, model);
  }
  if (compared.logged == 0) return;
  const double most = std::max(kMostDifference * compared.model, compared.rounding);
  if (std::abs(compared.logged - compared.model) <= most) return;
  if (compared.part && compared.logged < compared.model) return;
  scenario::fail(
      fmt::format("{}:{}", path, std::max<std::int64_t>(log.first_line, 1)), "parameters",
      fmt::format("{} in the log and {} in the model {}", with_commas(compared.logged),
                  with_commas(compared.model), model.name),
      "the model that was trained, with at most 2 % more or fewer parameters: a preset, or --scenario with "
      "a [model] that has the run's hf_config",
      example_for(compared.logged));
}

}  // namespace fomoe::step_profiles
