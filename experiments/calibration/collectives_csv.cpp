#include "experiments/calibration/collectives_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/files/csv.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kHeader = "collective,sites,payload,bandwidth,latency,seconds";
constexpr const char* kExampleRow = "ring,4,10MB,1Gbps,25ms,0.27";
constexpr int kMostSites = 1024;

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
  const auto value = parse_number<Number>(text);
  if (!value || !(*value >= least) || !(*value <= most))
    fail(place, column, '"' + text + '"', expected, example);
  return *value;
}

MeasuredCollective read_row(const CsvFile& file) {
  const std::string place = file.place();
  const std::array<std::string, 3> known = {"ring", "direct", "recursive"};
  if (std::find(known.begin(), known.end(), file.cell(0)) == known.end()) {
    const std::vector<std::string> names(known.begin(), known.end());
    fail(place, "collective", '"' + file.cell(0) + '"', "one of " + joined(names), "ring",
         nearest(file.cell(0), names));
  }
  const int sites = number(file.cell(1), 2, kMostSites, place, "sites", "a whole number from 2 to 1024", "4");
  constexpr double kElementBytes = 4;  // sent as fp32
  const double payload = quantity(file.cell(2), Quantity::size, place, "payload", "10MB");
  (void)quantity(file.cell(3), Quantity::rate, place, "bandwidth", "1Gbps");
  (void)quantity(file.cell(4), Quantity::duration, place, "latency", "25ms");
  MeasuredCollective row;
  row.place = place;
  row.seconds = number(file.cell(5), 1e-9, 1e9, place, "seconds", "a number above zero", "0.27");
  row.source.toml = fmt::format(
      "[model]\ndense_parameters = {:.0f}\n[workload]\ntokens = {}\nglobal_batch_tokens = {}\n[strategy]\n"
      "method = \"local_sgd\"\nlocal_steps = 1\npayload_dtype = \"fp32\"\ncollective = \"{}\"\n[compute]\n"
      "step_time = \"1s\"\n[platform]\nsites = {}\nbandwidth = \"{}\"\nlatency = \"{}\"\n",
      std::max(1.0, std::round(payload / kElementBytes)), sites, sites, file.cell(0), sites, file.cell(3),
      file.cell(4));
  return row;
}

}  // namespace

std::vector<MeasuredCollective> read_collectives_csv(const std::string& path) {
  CsvFile file(path, {"collectives", "a CSV of measured all-reduces", kHeader, kExampleRow});
  std::vector<MeasuredCollective> rows;
  while (file.next()) rows.push_back(read_row(file));
  return rows;
}

}  // namespace fomoe::scenario
