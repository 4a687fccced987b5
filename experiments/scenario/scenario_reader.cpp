#include "experiments/scenario/scenario_reader.hpp"

#include <functional>

#include "costmodel/compose/check.hpp"
#include "experiments/scenario/every_key.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::scenario {
namespace {

/// Runs `step`, whose mistakes concern several keys together; the message has the line of the key that it
/// names.
void at_its_line(const Document& document, const std::function<void()>& step) {
  try {
    step();
  } catch (const InputError& error) {
    throw CombinationError(document.place(error.key()), error.what());
  }
}

/// Checks the keys together.
void check(const costmodel::Scenario& scenario, bool compute_required) {
  if (compute_required) return costmodel::check(scenario);
  // The profile is not checked against the scenario, because the caller is about to measure it.
  costmodel::Scenario with_any_compute = scenario;
  with_any_compute.compute = costmodel::GivenStepTime{1.0};
  for (costmodel::SiteCompute& site : with_any_compute.site_compute)
    site.compute = costmodel::GivenStepTime{1.0};
  costmodel::check(with_any_compute);
}

}  // namespace

costmodel::Scenario read_scenario(const std::string& path, const ReadOptions& options) {
  Document document = Document::read(path, "scenario", "experiments/scenarios/two-sites.toml");
  for (const std::string& assignment : options.overrides) document.override_key(assignment);
  displace_alternatives(document);
  // A mistake in one key or table does not hide those in others.
  Mistakes mistakes;
  check_every_key(document, mistakes);
  mistakes.throw_if_any();

  costmodel::Scenario scenario;
  const TableReader root(document, scenario_keys(), "", &document.root());
  if (root.has("name")) scenario.name = root.text("name");
  root.set_members(scenario);
  if (options.seed) scenario.seed = *options.seed;
  const bool model = mistakes.collect([&] { read_model(document, scenario); });
  if (model) mistakes.collect([&] { read_workload(document, scenario); });
  mistakes.collect([&] { read_network_model(document, scenario); });
  const bool platform = mistakes.collect([&] { read_platform(document, scenario); });
  if (platform) {
    set_terms_of_packets(document, scenario);
    mistakes.collect([&] { read_traffic(document, scenario); });
    mistakes.collect([&] { scenario.prices = read_prices(document, scenario.platform); });
    mistakes.collect([&] { read_failures(document, scenario); });
  }
  const std::vector<Provenance> notes_of_all_sites = scenario.catalogue;  // not of the GPUs of some
  mistakes.collect([&] { read_energy(document, scenario); });
  mistakes.collect([&] { scenario.quality = read_quality(document); });
  if (model && platform) mistakes.collect([&] { read_strategy(document, scenario); });
  if (mistakes.collect(
          [&] { scenario.compute = read_compute(document, scenario.model, options.compute_required); })) {
    mistakes.collect([&] { read_site_gpus(document, scenario); });
    mistakes.collect([&] { add_peak(document, scenario); });
  }
  mistakes.collect([&] { check_step_variation(document); });
  mistakes.throw_if_any();
  at_its_line(document,
              [&] { read_sites(document, scenario, notes_of_all_sites, options.compute_required); });
  add_measured_payload_rate(scenario);
  if (options.check_together) at_its_line(document, [&] { check(scenario, options.compute_required); });
  return scenario;
}

costmodel::ModelShape read_model_of(const std::string& path, const std::vector<std::string>& overrides) {
  Document document = Document::read(path, "scenario", "experiments/scenarios/two-sites.toml");
  for (const std::string& assignment : overrides) document.override_key(assignment);
  displace_alternatives(document);
  Mistakes mistakes;
  check_keys_of(document, "model", mistakes);
  mistakes.throw_if_any();
  costmodel::Scenario scenario;
  read_model(document, scenario);
  return scenario.model;
}

}  // namespace fomoe::scenario
