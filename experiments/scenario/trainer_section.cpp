#include "experiments/scenario/trainer_section.hpp"

#include <fmt/format.h>

#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

namespace {
constexpr double kDropAfterS = 60;
}

TrainerSettings read_trainer_settings(const std::string& path, const ReadOptions& options,
                                      const costmodel::Scenario& scenario) {
  Document document = Document::read(path, "scenario", "experiments/scenarios/two-sites.toml");
  for (const std::string& assignment : options.overrides) document.override_key(assignment);
  const TableReader table(document, scenario_keys(), "trainer", find_table(document, "trainer"));

  TrainerSettings settings;
  settings.restart_warmup_steps = scenario.strategy.local_steps;
  settings.warmup_steps =
      costmodel::optimizer_steps(scenario) / 4;  // the paper's appendix on training settings
  settings.warmup_given = table.has("warmup_steps");
  const bool nesterov = scenario.strategy.outer_optimizer == costmodel::OuterOptimizer::nesterov;
  settings.outer_learning_rate = nesterov ? 0.7 : 0.1;
  settings.outer_momentum = scenario.strategy.method->without_outer_momentum ? 0 : 0.9;
  settings.drop_after_s = kDropAfterS;
  table.set_members(settings);
  if (settings.schedule == "wsd" && settings.decay_steps == 0)
    table.refuse("schedule", "\"wsd\" without decay_steps", "the number of steps of the decay as well");
  const auto path_of = [&](const char* key) {
    return table.has(key) ? document.beside(table.text(key)) : std::string();
  };
  settings.data = path_of("data");
  settings.validation_data = path_of("validation_data");
  settings.initial_weights = path_of("initial_weights");
  settings.on_lost_site_given = table.has("on_lost_site");
  if (scenario.failures) {
    if (!settings.on_lost_site_given) settings.on_lost_site = costmodel::to_string(scenario.failures->policy);
    if (!table.has("drop_after")) settings.drop_after_s = scenario.failures->timeout_s.value_or(kDropAfterS);
  }

  const TableReader compute(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (compute.has("micro_batch_sequences"))
    settings.micro_batch_sequences = compute.count("micro_batch_sequences");
  return settings;
}

std::vector<std::pair<std::string, std::string>> weight_settings(const TrainerSettings& s) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  std::vector<std::pair<std::string, std::string>> out = {
      {"trainer.learning_rate", number(s.learning_rate)},
      {"trainer.warmup_steps", number(s.warmup_steps)},
      {"trainer.schedule", s.schedule},
      {"trainer.decay_steps", number(s.decay_steps)},
      {"trainer.final_rate_share", number(s.final_rate_share)},
      {"trainer.beta1", number(s.beta1)},
      {"trainer.beta2", number(s.beta2)},
      {"trainer.epsilon", number(s.epsilon)},
      {"trainer.rate_transfer", s.rate_transfer},
      {"trainer.weight_decay", number(s.weight_decay)},
      {"trainer.clip_norm", number(s.clip_norm)},
      {"trainer.balance_weight", number(s.balance_weight)},
      {"trainer.restart_warmup_steps", number(s.restart_warmup_steps)},
      {"trainer.outer_learning_rate", number(s.outer_learning_rate)},
      {"trainer.outer_momentum", number(s.outer_momentum)},
      {"trainer.kept_share", number(s.kept_share)},
      {"trainer.data_split", s.data_split},
      {"trainer.validation_sequences", number(s.validation_sequences)},
      {"trainer.on_divergence", s.on_divergence},
      {"compute.micro_batch_sequences", number(s.micro_batch_sequences)}};
  // Only other values than the defaults are listed, so that checkpoints from before these keys can be used.
  const TrainerSettings usual;
  if (s.rope_theta != usual.rope_theta) out.emplace_back("trainer.rope_theta", number(s.rope_theta));
  if (s.router_temperature != usual.router_temperature)
    out.emplace_back("trainer.router_temperature", number(s.router_temperature));
  if (s.error_feedback_decay != usual.error_feedback_decay)
    out.emplace_back("trainer.error_feedback_decay", number(s.error_feedback_decay));
  if (s.inner_moments != usual.inner_moments) out.emplace_back("trainer.inner_moments", s.inner_moments);
  return out;
}

}  // namespace fomoe::scenario
