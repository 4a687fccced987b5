#include "experiments/scenario/routing_counts_csv.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "experiments/scenario/document.hpp"
#include "experiments/scenario/suggest.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kHeader = "layer,expert,site,count";
// The sum over all rows stays inside 64 bits.
constexpr std::int64_t kMaxCount = 1'000'000'000'000;

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t comma = line.find(','); comma != std::string_view::npos; comma = line.find(',')) {
    cells.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  cells.push_back(line);
  return cells;
}

std::int64_t whole_number(std::string_view cell, const std::string& place, const char* column,
                          std::int64_t least, std::int64_t most) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc{} || end != cell.data() + cell.size() || number < least || number > most) {
    fail(place, column, fmt::format("\"{}\"", cell), fmt::format("a whole number from {} to {}", least, most),
         std::to_string(least));
  }
  return number;
}

}  // namespace

costmodel::RoutingCounts read_routing_counts(const std::string& path, const costmodel::ModelShape& model,
                                             const platforms::Platform& platform) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    fail(path + ":1", "routing_counts", "no file that can be read", "a CSV of routing counts", kHeader);
  const auto strip_return = [](std::string& text) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
  };
  strip_return(line);
  std::vector<std::string> names;
  for (const platforms::Site& site : platform.sites) names.push_back(site.name);
  const std::string example = fmt::format("0,0,{},1200", names.front());
  if (line != kHeader)
    fail(path + ":1", "header", fmt::format("\"{}\"", line), fmt::format("\"{}\"", kHeader), example);

  costmodel::RoutingCounts counts = costmodel::make_routing_counts(
      static_cast<int>(costmodel::moe_layers(model)), static_cast<int>(model.experts), platform.size());
  counts.source = path;
  std::set<std::tuple<int, int, int>> seen;
  for (int number = 2; std::getline(file, line); ++number) {
    strip_return(line);
    const std::string place = fmt::format("{}:{}", path, number);
    const std::vector<std::string_view> cells = split(line);
    if (cells.size() != 4) fail(place, "row", fmt::format("{} cells", cells.size()), "4 cells", example);
    const auto layer = static_cast<int>(
        whole_number(cells[0], place, "layer", model.dense_layers, model.layers - 1) - model.dense_layers);
    const auto expert = static_cast<int>(whole_number(cells[1], place, "expert", 0, model.experts - 1));
    const std::string name(cells[2]);
    int site = 0;
    while (site < platform.size() && names[static_cast<std::size_t>(site)] != name) ++site;
    if (site == platform.size()) {
      fail(place, "site", fmt::format("\"{}\"", name), "one of " + joined(names), names.front(),
           nearest(name, names));
    }
    if (!seen.insert({layer, expert, site}).second)
      fail(place, "layer,expert,site", "a combination a second time", "every one once", example);
    counts.at(layer, expert, site) = whole_number(cells[3], place, "count", 0, kMaxCount);
  }
  return counts;
}

}  // namespace fomoe::scenario
