#include "experiments/scenario/sections.hpp"
#include "experiments/scenario/table_reader.hpp"

namespace fomoe::scenario {

costmodel::NetworkModel read_network_model(const Document& document) {
  const TableReader table(document, scenario_keys(), "network_model", find_table(document, "network_model"));
  costmodel::NetworkModel network;
  network.bandwidth_efficiency = table.share("bandwidth_efficiency");
  network.ring_model =
      table.text("ring_model") == "fluid" ? costmodel::RingModel::fluid : costmodel::RingModel::stepwise;
  return network;
}

}  // namespace fomoe::scenario
