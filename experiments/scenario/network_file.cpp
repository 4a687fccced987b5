#include "experiments/scenario/network_file.hpp"

#include <fmt/format.h>

#include "experiments/scenario/document.hpp"
#include "experiments/scenario/sections.hpp"
#include "experiments/scenario/table_reader.hpp"

namespace fomoe::scenario {

NetworkFile read_network_file(const std::string& path) {
  const Document document = Document::read(path, "network model", "fitted.toml");
  for (const auto& [name, node] : document.root()) {
    if (name == "network_model" || name == "calibration") continue;
    fail(document.place(std::string(name.str())), std::string(name.str()), "it",
         "[network_model] and [calibration] alone", "the file that fomoe calibrate --output wrote");
  }
  (void)read_network_model(document);  // says what is wrong with a value
  NetworkFile file;
  const toml::table* network = find_table(document, "network_model");
  if (network == nullptr)
    fail(path + ":1", "network_model", "nothing", "a [network_model]", "bandwidth_efficiency = 0.95");
  for (const auto& [name, node] : *network)
    file.overrides.push_back(fmt::format("network_model.{}={}", name.str(), as_written(node)));

  const toml::table* calibration = find_table(document, "calibration");
  if (calibration == nullptr) return file;
  const toml::array* runs = calibration->get_as<toml::array>("runs");
  for (std::size_t i = 0; runs != nullptr && i < runs->size(); ++i) {
    const auto id = runs->get(i)->value<std::string>();
    if (!id)
      fail(document.place("calibration.runs"), "calibration.runs", as_written(*runs->get(i)),
           "ids of runs in quotes", "runs = [\"0123456789abcdef\"]");
    file.runs.push_back(*id);
  }
  return file;
}

}  // namespace fomoe::scenario
