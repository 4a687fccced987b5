// What money a run costs by: prices of one list, in one currency, as of one date. Plain data; the formulas
// are in cost.hpp.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

/// A month as clouds bill it: 730 h.
inline constexpr double kMonthSeconds = 730.0 * 3600.0;

/// One tier of a month's egress, from the end of the tier before.
struct EgressTier {
  double up_to_bytes = std::numeric_limits<double>::infinity();  // since the start of the month
  double price_per_byte = 0;
};

struct SitePrices {
  double gpu_price_per_s = 0;         // of one GPU, whether it computes or waits
  double port_price_per_month = 0;    // dedicated links, for every month begun
  double energy_price_per_joule = 0;  // 0 where the GPU's price includes it
  std::vector<EgressTier> egress;     // rising up_to_bytes; beyond the last tier its price goes on
};

struct Prices {
  std::string currency;           // "USD"
  std::string as_of;              // "2026-01-15", or empty: not stated
  std::vector<SitePrices> sites;  // as the platform's
  std::vector<Provenance> provenance;
};

}  // namespace fomoe::costmodel
