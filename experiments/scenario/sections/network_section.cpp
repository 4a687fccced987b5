#include <fmt/format.h>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

namespace {

/// The provenance of calibrated terms, from the [calibration] table that `fomoe calibrate` wrote.
void read_calibration(const Document& document, const TableReader& terms, costmodel::NetworkModel& network) {
  const TableReader table(document, scenario_keys(), "calibration", find_table(document, "calibration"));
  for (const std::string& term : table.words("terms")) {
    if (find_key("network_model." + term) == nullptr)
      table.refuse("terms", '"' + term + '"', "keys of network_model");
    // A value from --set is not the fitted value.
    if (terms.has(term) && !document.overridden(dotted("network_model", term)))
      network.calibrated.push_back(term);
  }
  const std::size_t runs = table.words("runs").size();
  network.calibration = runs == 0 ? "[calibration] of the scenario"
                                  : fmt::format("{} runs, in [calibration] of the scenario", runs);
}

}  // namespace

void read_network_model(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "network_model", find_table(document, "network_model"));
  const bool of_linux = table.text("host") == to_string(costmodel::Host::linux_tcp);
  costmodel::NetworkModel& network = scenario.network;
  if (of_linux) network = costmodel::linux_host();
  table.set_members(scenario, /*defaults=*/!of_linux);
  if (network.congestion_control == costmodel::CongestionControl::bbr &&
      network.loss_rate.value_or(0) > costmodel::kMostBbrLoss)
    table.refuse("loss_rate",
                 fmt::format("at most {} with congestion_control = \"bbr\"", costmodel::kMostBbrLoss));
  read_calibration(document, table, network);
}

void set_terms_of_packets(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "network_model", find_table(document, "network_model"));
  if (table.text("host") != to_string(costmodel::Host::linux_tcp)) return;
  // Until version 1.0, hosts were ideal unless the scenario said linux.
  if (!table.has("host") && scenario.sites() > 1)
    scenario.catalogue.push_back({"hosts", Origin::assumed,
                                  "ordinary Linux hosts, because network_model.host is not given; earlier "
                                  "versions assumed ideal hosts (network_model.host=ideal)"});
  const costmodel::NetworkModel host = costmodel::linux_host(scenario.platform.packet_bytes);
  costmodel::NetworkModel& network = scenario.network;
  if (!table.has("bandwidth_efficiency"))
    network.bandwidth_efficiency = scenario.platform.payload_rates ? 1 : host.bandwidth_efficiency;
  if (!table.has("segment_size")) network.segment_bytes = host.segment_bytes;
  if (!table.has("initial_window")) network.initial_window_bytes = host.initial_window_bytes;
}

void add_measured_payload_rate(costmodel::Scenario& scenario) {
  costmodel::NetworkModel& network = scenario.network;
  if (network.payload_bytes_per_s) return;
  const auto consider = [&](const costmodel::ComputeSpec& compute) {
    const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&compute);
    if (profiled == nullptr) return;
    const auto rate =
        costmodel::payload_bytes_per_s(profiled->profile, scenario.strategy.wire, scenario.sites() - 1);
    if (!rate || *rate >= network.payload_bytes_per_s.value_or(platforms::kUnlimited)) return;
    network.payload_bytes_per_s = rate;
    network.payload_rate_profile = profiled->profile.source;
  };
  consider(scenario.compute);
  for (const costmodel::SiteCompute& site : scenario.site_compute) consider(site.compute);
}

}  // namespace fomoe::scenario
