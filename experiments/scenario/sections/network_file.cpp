#include "experiments/scenario/sections/network_file.hpp"

#include <fmt/format.h>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

NetworkFile read_network_file(const std::string& path) {
  const Document document = Document::read(path, "network model", "fitted.toml");
  for (const auto& [name, node] : document.root()) {
    if (name == "network_model" || name == "calibration") continue;
    fail(document.place(std::string(name.str())), std::string(name.str()), "another name",
         "only [network_model] and [calibration]", "the file that fomoe calibrate --output wrote");
  }
  costmodel::Scenario any;
  read_network_model(document, any);  // throws for an invalid value
  NetworkFile file;
  const toml::table* network = find_table(document, "network_model");
  if (network == nullptr)
    fail(path + ":1", "network_model", "nothing", "a [network_model]", "bandwidth_efficiency = 0.95");
  for (const auto& [name, node] : *network)
    file.overrides.push_back(fmt::format("network_model.{}={}", name.str(), as_written(node)));

  file.runs = TableReader(document, scenario_keys(), "calibration", find_table(document, "calibration"))
                  .words("runs");
  return file;
}

}  // namespace fomoe::scenario
