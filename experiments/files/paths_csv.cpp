#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "experiments/files/csv.hpp"
#include "experiments/files/platform_file.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kPathsHeader =
    "src_region,dst_region,throughput_median_bits_per_s,throughput_samples,rtt_median_ms";
constexpr const char* kExamplePath = "aws:us-east-1,azure:eastus,4850218610,1,1.9";

/// Reads a number above zero: a measured rate or round trip cannot be zero.
double positive_number(std::string_view cell, const std::string& place, const char* column,
                       const char* example) {
  const auto number = parse_number<double>(cell);
  if (!number || !std::isfinite(*number) || *number <= 0)
    fail(place, column, fmt::format("\"{}\"", cell), "a number above zero", example);
  return *number;
}

/// Refuses a number beyond what the quantity can be.
void check_limits(const std::string& cell, const char* unit, Quantity quantity, const std::string& place,
                  const char* column, const char* example) {
  try {
    (void)parse_quantity(cell + unit, quantity);
  } catch (const QuantityError& error) {
    fail(place, column, error.what(), fmt::format("{} that a machine can have", to_string(quantity)),
         example);
  }
}

}  // namespace

MeasuredPaths read_paths_csv(const std::string& path) {
  CsvFile file(path, {"paths_csv", "a CSV of measured paths", kPathsHeader, kExamplePath});
  MeasuredPaths paths;
  while (file.next()) {
    const std::string place = file.place();
    const double bits_per_s =
        positive_number(file.cell(2), place, "throughput_median_bits_per_s", "4850218610");
    (void)positive_number(file.cell(3), place, "throughput_samples", "1");
    const double round_trip_ms = positive_number(file.cell(4), place, "rtt_median_ms", "1.9");
    check_limits(file.cell(2), "bps", Quantity::rate, place, "throughput_median_bits_per_s", "4850218610");
    check_limits(file.cell(4), "ms", Quantity::duration, place, "rtt_median_ms", "1.9");
    const auto pair = std::make_pair(file.cell(0), file.cell(1));
    if (pair.first.empty() || pair.second.empty())
      fail(place, "src_region, dst_region", "an empty name", "two names", kExamplePath);
    if (!paths
             .try_emplace(pair,
                          MeasuredPath{bits_to_bytes(bits_per_s), round_trip_ms_to_one_way_s(round_trip_ms)})
             .second) {
      fail(place, "src_region, dst_region",
           fmt::format("the path from {} to {} twice", pair.first, pair.second), "each pair once",
           kExamplePath);
    }
  }
  return paths;
}

}  // namespace fomoe::scenario
