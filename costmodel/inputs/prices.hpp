// Prices of GPUs, ports, energy and egress, in one currency and as of one date. Plain data; the formulas are
// in cost.hpp.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

/// A month as clouds bill it: 730 h.
inline constexpr double kMonthSeconds = 730.0 * 3600.0;

/// One tier of a month's egress prices; it begins where the previous tier ends.
struct EgressTier {
  double up_to_bytes = std::numeric_limits<double>::infinity();  // monthly volume at which the tier ends
  double price_per_byte = 0;
};

/// Prices of what a site sends to some of the others.
struct EgressTo {
  std::string sites;  // prefix of the names of these sites
  std::vector<EgressTier> tiers;
};

/// How the GPUs of a site are paid for; unknown: their price was given without saying so.
enum class Pricing { unknown, on_demand, spot, owned };

struct SitePrices {
  Pricing pricing = Pricing::unknown;
  double gpu_price_per_s = 0;         // price of one GPU, computing or waiting
  double port_price_per_month = 0;    // price of dedicated links, for every month begun
  double energy_price_per_joule = 0;  // 0 where the GPU's price includes it
  /// In ascending order of up_to_bytes; the last tier's price applies beyond it. To all sites but those of
  /// egress_to.
  std::vector<EgressTier> egress;
  std::vector<EgressTo> egress_to;  // the longest prefix counts
};

/// Prices of the platform's store.
struct StorePrices {
  double price_per_request = 0;  // of an object that is put or got
  double price_per_byte = 0;     // of what sites download
};

struct Prices {
  std::string currency;           // "USD"
  std::string as_of;              // "2026-01-15"; empty if not stated
  std::vector<SitePrices> sites;  // in the order of the platform's sites
  std::vector<Provenance> provenance;
  bool of_all_sites = false;  // whether every site pays the same, whatever its name
  StorePrices store = {};
};

}  // namespace fomoe::costmodel
