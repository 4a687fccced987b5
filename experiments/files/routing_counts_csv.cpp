#include "experiments/files/routing_counts_csv.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "experiments/files/csv.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kCountsHeader = "layer,expert,site,count";
// This bound keeps the sum over all rows within 64 bits.
constexpr std::int64_t kMaxCount = 1'000'000'000'000;

std::int64_t whole_number(std::string_view cell, const std::string& place, const char* column,
                          std::int64_t least, std::int64_t most) {
  const auto number = parse_number<std::int64_t>(cell);
  if (!number || *number < least || *number > most) {
    fail(place, column, fmt::format("\"{}\"", cell), fmt::format("a whole number from {} to {}", least, most),
         std::to_string(least));
  }
  return *number;
}

}  // namespace

costmodel::RoutingCounts read_routing_counts(const std::string& path, const costmodel::ModelShape& model,
                                             const platforms::Platform& platform) {
  std::vector<std::string> names;
  for (const platforms::Site& site : platform.sites) names.push_back(site.name);
  const std::string example = fmt::format("0,0,{},1200", names.front());
  CsvFile file(path, {"routing_counts", "a CSV of routing counts", kCountsHeader, example});
  costmodel::RoutingCounts counts = costmodel::make_routing_counts(
      static_cast<int>(costmodel::moe_layers(model)), static_cast<int>(model.experts), platform.size());
  counts.source = path;
  std::set<std::tuple<int, int, int>> seen;
  while (file.next()) {
    const std::string place = file.place();
    const std::int64_t of_model =
        whole_number(file.cell(0), place, "layer", costmodel::layer_of_moe_layer(model, 0), model.layers - 1);
    const auto moe_layer = costmodel::moe_layer_of_layer(model, of_model);
    if (!moe_layer)
      fail(place, "layer", std::to_string(of_model), "a layer with experts",
           std::to_string(costmodel::layer_of_moe_layer(model, 0)));
    const int layer = static_cast<int>(*moe_layer);
    const auto expert = static_cast<int>(whole_number(file.cell(1), place, "expert", 0, model.experts - 1));
    const std::string& name = file.cell(2);
    int site = 0;
    while (site < platform.size() && names[static_cast<std::size_t>(site)] != name) ++site;
    if (site == platform.size()) {
      fail(place, "site", fmt::format("\"{}\"", name), "one of " + joined(names), names.front(),
           nearest(name, names));
    }
    if (!seen.insert({layer, expert, site}).second)
      fail(place, "layer,expert,site", "a duplicate combination", "each combination once", example);
    counts.at(layer, expert, site) = whole_number(file.cell(3), place, "count", 0, kMaxCount);
  }
  return counts;
}

}  // namespace fomoe::scenario
