#include "experiments/scenario/scenario_reader.hpp"

#include "costmodel/compose/check.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::scenario {
namespace {

/// Checks the keys together and refuses contradictions, at the line of the key that the cost model names.
void check(const costmodel::Scenario& scenario, const Document& document, bool compute_required) {
  try {
    if (compute_required) {
      costmodel::check(scenario);
    } else {
      // The profile is not checked against the scenario, because the caller is about to measure it.
      costmodel::Scenario with_any_compute = scenario;
      with_any_compute.compute = costmodel::GivenStepTime{1.0};
      costmodel::check(with_any_compute);
    }
  } catch (const InputError& error) {
    throw CombinationError(document.place(error.key()), error.what());
  }
}

}  // namespace

costmodel::Scenario read_scenario(const std::string& path, const ReadOptions& options) {
  Document document = Document::read(path, "scenario", "experiments/scenarios/two-sites.toml");
  for (const std::string& assignment : options.overrides) document.override_key(assignment);
  displace_alternatives(document);
  refuse_unknown_tables(document, scenario_keys(), {});

  const TableReader top(document, scenario_keys(), "", &document.root());
  for (const char* title : {"name", "description"}) {
    if (top.has(title)) (void)top.text(title);
  }
  costmodel::Scenario scenario;
  scenario.seed = static_cast<std::uint64_t>(top.count("seed"));
  if (options.seed) scenario.seed = *options.seed;
  scenario.model = read_model(document);
  scenario.workload = read_workload(document, scenario.model.sequence_length);
  scenario.network = read_network_model(document);
  scenario.platform = read_platform(document, scenario.seed);
  scenario.traffic = read_traffic(document, scenario.platform);
  scenario.prices = read_prices(document, scenario.platform);
  scenario.power = read_energy(document, scenario.catalogue);
  scenario.quality = read_quality(document);
  scenario.failures = read_failures(document);
  // Only the names of the keys of [trainer] are checked here; trainer_section.hpp reads their values.
  (void)TableReader(document, scenario_keys(), "trainer", find_table(document, "trainer"));
  scenario.strategy = read_strategy(document, scenario.model, scenario.platform);
  scenario.gpus = read_site_gpus(document, scenario.catalogue);
  scenario.compute = read_compute(document, options.compute_required, scenario.catalogue);
  scenario.variation = read_step_variation(document);
  if (options.check_together) check(scenario, document, options.compute_required);
  return scenario;
}

}  // namespace fomoe::scenario
