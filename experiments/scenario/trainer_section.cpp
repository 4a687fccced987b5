#include "experiments/scenario/trainer_section.hpp"

#include <fmt/format.h>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

TrainerSettings read_trainer_settings(const std::string& path, const ReadOptions& options,
                                      const costmodel::Scenario& scenario) {
  Document document = Document::read(path, "scenario", "experiments/scenarios/two-sites.toml");
  for (const std::string& assignment : options.overrides) document.override_key(assignment);
  const TableReader table(document, scenario_keys(), "trainer", find_table(document, "trainer"));
  const auto or_zero = [&](const char* name) { return table.has(name) ? table.multiple(name) : 0; };

  TrainerSettings settings;
  settings.learning_rate = table.multiple("learning_rate");
  settings.warmup_steps = table.count("warmup_steps");
  settings.weight_decay = or_zero("weight_decay");
  settings.clip_norm = or_zero("clip_norm");
  settings.balance_weight = or_zero("balance_weight");
  settings.restart_warmup_steps =
      table.has("restart_warmup_steps") ? table.count("restart_warmup_steps") : scenario.strategy.local_steps;
  const bool nesterov = scenario.strategy.outer_optimizer == costmodel::OuterOptimizer::nesterov;
  settings.outer_learning_rate = table.has("outer_learning_rate") ? table.multiple("outer_learning_rate")
                                 : nesterov                       ? 0.7
                                                                  : 0.1;
  settings.outer_momentum = table.share("outer_momentum");
  settings.kept_share = table.share("kept_share");
  if (table.has("data")) settings.data = document.beside(table.text("data"));
  settings.validation_sequences = table.count("validation_sequences");
  if (table.has("validation_rounds")) settings.validation_rounds = table.count("validation_rounds");
  settings.checkpoint_rounds = table.count("checkpoint_rounds");
  settings.device = table.text("device");
  if (table.has("dtype")) settings.dtype = table.text("dtype");
  settings.cuda_graph = table.text("cuda_graph");
  settings.timeout_s = table.quantity("timeout");

  const TableReader compute(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (compute.has("micro_batch_sequences"))
    settings.micro_batch_sequences = compute.count("micro_batch_sequences");
  return settings;
}

std::string to_text(const TrainerSettings& s) {
  return fmt::format(
      "learning_rate {} warmup_steps {} weight_decay {} clip_norm {} balance_weight {} restart_warmup_steps "
      "{} "
      "outer_learning_rate {} outer_momentum {} kept_share {} validation_sequences {} dtype {} "
      "micro_batch_sequences {}",
      s.learning_rate, s.warmup_steps, s.weight_decay, s.clip_norm, s.balance_weight, s.restart_warmup_steps,
      s.outer_learning_rate, s.outer_momentum, s.kept_share, s.validation_sequences, s.dtype,
      s.micro_batch_sequences);
}

}  // namespace fomoe::scenario
