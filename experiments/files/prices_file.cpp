#include "experiments/files/prices_file.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "experiments/scenario/toml/date.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

constexpr double kBytesPerGb = 1e9, kSecondsPerHour = 3600, kJoulesPerKwh = 3.6e6;

class PriceReader {
 public:
  PriceReader(const std::string& path, std::vector<std::string> pricing)
      : document_(Document::read(path, "price file", "experiments/data/prices-example.toml")),
        pricing_(std::move(pricing)) {}

  costmodel::Prices read(const platforms::Platform& platform) {
    refuse_unknown_tables(document_, price_file_keys(), {"gpu", "egress", "port", "electricity"});
    const TableReader top(document_, price_file_keys(), "", &document_.root());
    const std::string name = top.text("name"), source = top.text("source");
    costmodel::Prices prices;
    prices.as_of = scenario::date(top, "as_of");
    read_gpus();
    read_egress();
    read_prices("port", "month", ports_);
    read_prices("electricity", "kwh", electricity_);

    for (std::size_t i = 0; i < platform.sites.size(); ++i) {
      const platforms::Site& site = platform.sites[i];
      costmodel::SitePrices row;
      const double* gpu = longest_match(gpus_[pricing_[i]], site.name);
      if (gpu == nullptr) refuse_without_price(site.name, pricing_[i]);
      row.pricing = pricing_[i] == "owned"  ? costmodel::Pricing::owned
                    : pricing_[i] == "spot" ? costmodel::Pricing::spot
                                            : costmodel::Pricing::on_demand;
      row.gpu_price_per_s = *gpu / kSecondsPerHour;
      if (const auto* lists = longest_match(egress_, site.name)) {
        for (const auto& [to, tiers] : *lists) {
          if (to.empty())
            row.egress = tiers;
          else
            row.egress_to.push_back({to, tiers});
        }
      } else {
        free_.push_back(site.name);
      }
      if (const double* month = longest_match(ports_, site.name)) row.port_price_per_month = *month;
      if (const double* kwh = longest_match(electricity_, site.name))
        row.energy_price_per_joule = *kwh / kJoulesPerKwh;
      prices.sites.push_back(row);
    }
    prices.currency = currency_;
    prices.provenance.push_back({"prices", Origin::assumed,
                                 fmt::format("{}, as of {}, {}, {}: {}", name, prices.as_of,
                                             kinds_text(platform), currency_, source)});
    if (!free_.empty() && free_.size() < platform.sites.size())
      prices.provenance.push_back(
          {"egress", Origin::assumed,
           "no price in the file for what these sites send, which costs nothing here: " + joined(free_)});
    return prices;
  }

 private:
  using ByPrefix = std::map<std::string, double>;
  using Tiers = std::vector<costmodel::EgressTier>;

  [[noreturn]] void refuse_without_price(const std::string& site, const std::string& pricing) {
    std::string others;
    for (const auto& [kind, rows] : gpus_)
      if (longest_match(rows, site) != nullptr) others = kind;
    fail(
        document_.path() + ":1", "gpu." + pricing, fmt::format("no price for the site \"{}\"", site),
        fmt::format(
            "a [[gpu]] whose sites is a prefix of this name, or one without sites, with {}{}", pricing,
            others.empty() ? "" : fmt::format(", or pricing = \"{}\" in a [[site]] of the scenario", others)),
        fmt::format("[[gpu]] with {} = \"2.50USD\"", pricing));
  }

  /// "spot GPUs", or "spot GPUs at a, b; owned GPUs at c".
  [[nodiscard]] std::string kinds_text(const platforms::Platform& platform) const {
    std::map<std::string, std::vector<std::string>> sites;
    for (std::size_t i = 0; i < pricing_.size(); ++i) sites[pricing_[i]].push_back(platform.sites[i].name);
    std::string text;
    for (const auto& [kind, names] : sites)
      text += fmt::format("{}{} GPUs{}", text.empty() ? "" : "; ", kind,
                          sites.size() == 1 ? "" : " at " + shortened(joined(names)));
    return text;
  }

  template <class T>
  static const T* longest_match(const std::map<std::string, T>& rows, const std::string& site) {
    const T* found = nullptr;
    std::size_t length = 0;
    for (const auto& [prefix, value] : rows) {
      if (site.starts_with(prefix) && (found == nullptr || prefix.size() > length)) {
        found = &value;
        length = prefix.size();
      }
    }
    return found;
  }

  static std::string prefix_of(const TableReader& reader) {
    return reader.has("sites") ? reader.text("sites") : "";
  }

  /// All amounts in a file must have the same currency.
  double amount(const TableReader& reader, std::string_view key) {
    const Money money = reader.money(key);
    if (currency_.empty()) currency_ = money.currency;
    if (money.currency != currency_)
      reader.refuse(key, money.currency, fmt::format("{}, the currency of the prices above", currency_));
    return money.amount;
  }

  void read_gpus() {
    for (const toml::table* table : find_tables(document_, "gpu")) {
      const TableReader reader(document_, price_file_keys(), "gpu", table);
      for (const char* key : {"on_demand", "spot", "owned"}) {
        if (!reader.has(key)) continue;
        const double price = amount(reader, key);
        if (!gpus_[key].try_emplace(prefix_of(reader), price).second) refuse_twice(reader);
      }
    }
  }

  void read_egress() {
    for (const toml::table* table : find_tables(document_, "egress")) {
      const TableReader reader(document_, price_file_keys(), "egress", table);
      Tiers& tiers = egress_[prefix_of(reader)][reader.has("to") ? reader.text("to") : ""];
      costmodel::EgressTier tier;
      tier.price_per_byte = amount(reader, "per_gb") / kBytesPerGb;
      if (reader.has("up_to")) tier.up_to_bytes = reader.quantity("up_to");
      if (!tiers.empty() && !(tier.up_to_bytes > tiers.back().up_to_bytes)) {
        reader.refuse(
            reader.has("up_to") ? "up_to" : "per_gb",
            "a tier whose up_to does not exceed that of the tier before it",
            "tiers of the same sites and destinations in ascending order, the last one without up_to");
      }
      tiers.push_back(tier);
    }
  }

  void read_prices(const char* name, const char* key, ByPrefix& rows) {
    for (const toml::table* table : find_tables(document_, name)) {
      const TableReader reader(document_, price_file_keys(), name, table);
      if (!rows.try_emplace(prefix_of(reader), amount(reader, key)).second) refuse_twice(reader);
    }
  }

  [[noreturn]] static void refuse_twice(const TableReader& reader) {
    reader.refuse("sites", fmt::format("\"{}\" twice", prefix_of(reader)), "each prefix once");
  }

  Document document_;
  std::vector<std::string> pricing_;  // [site]
  std::string currency_;
  std::map<std::string, ByPrefix> gpus_;  // by kind of price
  ByPrefix ports_, electricity_;
  std::vector<std::string> free_;                               // names of sites without egress prices
  std::map<std::string, std::map<std::string, Tiers>> egress_;  // by prefixes of senders and of receivers
};

}  // namespace

costmodel::Prices read_price_file(const std::string& path, const std::vector<std::string>& pricing,
                                  const platforms::Platform& platform) {
  return PriceReader(path, pricing).read(platform);
}

}  // namespace fomoe::scenario
