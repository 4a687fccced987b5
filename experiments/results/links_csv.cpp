#include "experiments/results/links_csv.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/timeline/link_usage.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::scenario {

std::string links_csv(const costmodel::Plan& plan, const platforms::Platform& platform,
                      const costmodel::Timeline& timeline) {
  constexpr int kBins = 200;
  const double bin_s = costmodel::end_of(timeline) / kBins;
  std::string text = "time_s,link,bytes_per_s,share\n";
  for (const costmodel::LinkUsage& link : costmodel::link_usage(plan, platform, timeline, kBins)) {
    const std::string name = commands::csv_cell(link.link);
    for (int bin = 0; bin < kBins; ++bin) {
      const double rate = link.bytes_per_s[static_cast<std::size_t>(bin)];
      const bool limited = std::isfinite(link.capacity_bytes_per_s) && link.capacity_bytes_per_s > 0;
      text += fmt::format("{},{},{},{}\n", (bin + 0.5) * bin_s, name, rate,
                          limited ? fmt::format("{}", rate / link.capacity_bytes_per_s) : "");
    }
  }
  return text;
}

}  // namespace fomoe::scenario
