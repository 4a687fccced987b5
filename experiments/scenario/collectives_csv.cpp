#include "experiments/scenario/collectives_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>

#include "experiments/scenario/document.hpp"
#include "experiments/scenario/suggest.hpp"
#include "experiments/scenario/units.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kHeader = "collective,sites,payload,bandwidth,latency,seconds";
constexpr const char* kExampleRow = "ring,4,10MB,1Gbps,25ms,0.27";
constexpr int kMostSites = 1024;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '\r' && c != ' ') {
      cells.back() += c;
    }
  }
  return cells;
}

double quantity(const std::string& text, Quantity kind, const std::string& place, const char* column,
                const char* example) {
  const std::string expected =
      fmt::format("{} above zero with a unit ({})", to_string(kind), known_units(kind));
  try {
    const double value = parse_quantity(text, kind);
    if (value > 0 || kind == Quantity::duration) return value;
  } catch (const QuantityError& error) {
    fail(place, column, error.what(), expected, example, error.suggestion());
  }
  fail(place, column, '"' + text + '"', expected, example);
}

template <class Number>
Number number(const std::string& text, Number least, Number most, const std::string& place,
              const char* column, const std::string& expected, const char* example) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least) || !(value <= most))
    fail(place, column, '"' + text + '"', expected, example);
  return value;
}

MeasuredCollective read_row(const std::vector<std::string>& cells, const std::string& place) {
  const std::array<std::string, 3> known = {"ring", "direct", "recursive"};
  if (std::find(known.begin(), known.end(), cells[0]) == known.end()) {
    const std::vector<std::string> names(known.begin(), known.end());
    fail(place, "collective", '"' + cells[0] + '"', "one of " + joined(names), "ring",
         nearest(cells[0], names));
  }
  const int sites = number(cells[1], 2, kMostSites, place, "sites", "a whole number from 2 to 1024", "4");
  constexpr double kElementBytes = 4;  // sent as fp32
  const double payload = quantity(cells[2], Quantity::size, place, "payload", "10MB");
  (void)quantity(cells[3], Quantity::rate, place, "bandwidth", "1Gbps");
  (void)quantity(cells[4], Quantity::duration, place, "latency", "25ms");
  MeasuredCollective row;
  row.place = place;
  row.seconds = number(cells[5], 1e-9, 1e9, place, "seconds", "a number above zero", "0.27");
  row.source.toml = fmt::format(
      "[model]\ndense_parameters = {:.0f}\n[workload]\ntokens = {}\nglobal_batch_tokens = {}\n[strategy]\n"
      "method = \"local_sgd\"\nlocal_steps = 1\npayload_dtype = \"fp32\"\ncollective = \"{}\"\n[compute]\n"
      "step_time = \"1s\"\n[platform]\nsites = {}\nbandwidth = \"{}\"\nlatency = \"{}\"\n",
      std::max(1.0, std::round(payload / kElementBytes)), sites, sites, cells[0], sites, cells[3], cells[4]);
  return row;
}

}  // namespace

std::vector<MeasuredCollective> read_collectives_csv(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    fail(path + ":1", "collectives", "no file that can be read", "a CSV of measured all-reduces", kHeader);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line != kHeader)
    fail(path + ":1", "header", '"' + line + '"', fmt::format("\"{}\"", kHeader), kExampleRow);
  std::vector<MeasuredCollective> rows;
  for (int n = 2; std::getline(file, line); ++n) {
    if (line.empty() || line == "\r") continue;
    const std::string place = fmt::format("{}:{}", path, n);
    const std::vector<std::string> cells = split(line);
    if (cells.size() != 6) fail(place, "row", fmt::format("{} cells", cells.size()), "6 cells", kExampleRow);
    rows.push_back(read_row(cells, place));
  }
  return rows;
}

}  // namespace fomoe::scenario
