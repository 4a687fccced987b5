#include "experiments/scenario/trainer_section.hpp"

#include <fmt/format.h>

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
  const auto or_zero = [&](const char* name) { return table.has(name) ? table.multiple(name) : 0; };

  TrainerSettings settings;
  settings.learning_rate = table.multiple("learning_rate");
  settings.warmup_steps = table.count("warmup_steps");
  settings.schedule = table.text("schedule");
  if (table.has("decay_steps")) settings.decay_steps = table.count("decay_steps");
  if (settings.schedule == "wsd" && settings.decay_steps == 0)
    table.refuse("schedule", "\"wsd\" without decay_steps", "the number of steps of the decay as well");
  settings.final_rate_share = table.share("final_rate_share");
  settings.beta1 = table.share("beta1");
  settings.beta2 = table.share("beta2");
  settings.epsilon = table.multiple("epsilon");
  settings.rate_transfer = table.text("rate_transfer");
  settings.weight_decay = or_zero("weight_decay");
  settings.clip_norm = or_zero("clip_norm");
  settings.balance_weight = or_zero("balance_weight");
  settings.rope_theta = table.multiple("rope_theta");
  settings.router_temperature = table.multiple("router_temperature");
  settings.restart_warmup_steps =
      table.has("restart_warmup_steps") ? table.count("restart_warmup_steps") : scenario.strategy.local_steps;
  const bool nesterov = scenario.strategy.outer_optimizer == costmodel::OuterOptimizer::nesterov;
  settings.outer_learning_rate = table.has("outer_learning_rate") ? table.multiple("outer_learning_rate")
                                 : nesterov                       ? 0.7
                                                                  : 0.1;
  settings.outer_momentum = table.share("outer_momentum");
  settings.kept_share = table.share("kept_share");
  if (table.has("data")) settings.data = document.beside(table.text("data"));
  settings.data_split = table.text("data_split");
  if (table.has("validation_data")) settings.validation_data = document.beside(table.text("validation_data"));
  settings.validation_sequences = table.count("validation_sequences");
  if (table.has("validation_rounds")) settings.validation_rounds = table.count("validation_rounds");
  settings.checkpoint_rounds = table.count("checkpoint_rounds");
  settings.device = table.text("device");
  if (table.has("dtype")) settings.dtype = table.text("dtype");
  settings.cuda_graph = table.text("cuda_graph");
  settings.deterministic = table.boolean("deterministic");
  if (table.has("initial_weights")) settings.initial_weights = document.beside(table.text("initial_weights"));
  settings.transport = table.text("transport");
  settings.on_divergence = table.text("on_divergence");
  settings.timeout_s = table.quantity("timeout");
  settings.on_lost_site_given = table.has("on_lost_site");
  if (settings.on_lost_site_given) settings.on_lost_site = table.text("on_lost_site");
  settings.lost_site_timeout_s = table.quantity("lost_site_timeout");
  settings.drop_after_s = table.has("drop_after") ? table.quantity("drop_after") : kDropAfterS;
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
  return out;
}

}  // namespace fomoe::scenario
