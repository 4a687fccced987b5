// The rows of keys set members of a Scenario, and of TrainerSettings.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/results/json_values.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using scenario::TrainerSettings;

namespace {

const std::string kScenario = tests::source_dir() + "/tests/ideal/two-sites.toml";

TrainerSettings read(const std::vector<std::string>& overrides) {
  scenario::ReadOptions options;
  options.overrides = overrides;
  return scenario::read_trainer_settings(kScenario, options, scenario::read_scenario(kScenario, options));
}

}  // namespace

TEST_CASE("no two keys set the same member") {
  scenario::ReadOptions options;
  options.overrides = {"energy.gpu_power=700W", "energy.idle_share=0.2", "failures.checkpoint_cost=20s"};
  const costmodel::Scenario plain = scenario::read_scenario(kScenario, options);
  for (const scenario::Key& key : scenario::scenario_keys()) {
    if (key.member.set == nullptr || !scenario::is_number(key.kind)) continue;
    costmodel::Scenario changed = plain;
    const std::string example(key.example);
    (void)key.member.set(changed, 0.5 * *scenario::read_single_key(dotted(key) + '=' + example).number);
    for (const scenario::Key& other : scenario::scenario_keys()) {
      CAPTURE(dotted(key) + " and " + dotted(other));
      // Two keys give the batch, and data_parallel is a quotient of others.
      if (&key == &other || other.name == "data_parallel" || key.name == "global_batch_tokens") continue;
      if (other.member.get != nullptr) CHECK(other.member.get(changed) == other.member.get(plain));
    }
  }
}

TEST_CASE("a bucket below one byte is one byte, because 0 stands for no limit") {
  costmodel::Scenario scenario;
  CHECK(scenario::find_key("strategy.bucket_bytes")->member.set(scenario, 0.5));
  CHECK(scenario.strategy.bucket_bytes == 1);
}

TEST_CASE(
    "the members of [network_model], which host = linux leaves as they are, have the defaults of the rows") {
  CHECK(scenario::members_json("network_model", scenario::read_scenario(kScenario, {})) ==
        scenario::members_json("network_model", costmodel::Scenario()));
}

TEST_CASE("settings of the trainer have the defaults of their rows, or those that follow from the scenario") {
  const TrainerSettings settings = read({"strategy.local_steps=7"});
  CHECK(settings.learning_rate == 0.01);
  CHECK(settings.beta2 == 0.95);
  CHECK(settings.schedule == "constant");
  CHECK(settings.weight_decay == 0);
  CHECK(settings.restart_warmup_steps == 7);   // strategy.local_steps
  CHECK(settings.outer_learning_rate == 0.7);  // of nesterov
  CHECK(settings.dtype.empty());
  CHECK(settings.timeout_s == 300);
  CHECK(settings.drop_after_s == 60);
  CHECK_FALSE(settings.on_lost_site_given);
  CHECK(read({"strategy.outer_optimizer=adam"}).outer_learning_rate == 0.1);
}

TEST_CASE("settings of the trainer: numbers, times, flags, choices and paths") {
  const TrainerSettings settings =
      read({"trainer.learning_rate=0.02", "trainer.warmup_steps=160", "trainer.schedule=wsd",
            "trainer.decay_steps=2000", "trainer.error_feedback_decay=0.95", "trainer.weight_decay=0.1",
            "trainer.restart_warmup_steps=32", "trainer.deterministic=true", "trainer.dtype=bf16",
            "trainer.timeout=30s", "trainer.on_lost_site=drop", "trainer.drop_after=10s",
            "trainer.data=corpus.bin"});
  CHECK(settings.learning_rate == 0.02);
  CHECK(settings.warmup_steps == 160);
  CHECK(settings.schedule == "wsd");
  CHECK(settings.decay_steps == 2000);
  CHECK(settings.error_feedback_decay == 0.95);
  CHECK(settings.weight_decay == 0.1);
  CHECK(settings.restart_warmup_steps == 32);
  CHECK(settings.deterministic);
  CHECK(settings.dtype == "bf16");
  CHECK(settings.timeout_s == 30);
  CHECK(settings.on_lost_site == "drop");
  CHECK(settings.on_lost_site_given);
  CHECK(settings.drop_after_s == 10);
  CHECK(settings.data.ends_with("corpus.bin"));
}
