// The keys of [[site]] that are no keys of [compute]: machines and connections, prices, failures.
#pragma once
#include <functional>
#include <string>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

/// Whether a name, or a pattern such as aws:*, means the site.
bool means_site(const std::string& pattern, const std::string& name);

/// Calls visit for each [[site]] and each site of the platform that it means, with the site's index.
void each_site(const Document& document, const platforms::Platform& platform,
               const std::function<void(const TableReader& table, int site)>& visit);

/// Whether the table of a [[site]] has a key of [compute].
bool describes_compute(const toml::table& site);

/// The platform with the lines that the scenario changes: bandwidth, uplink and downlink of a [[site]].
platforms::Platform with_own_lines(const Document& document, platforms::Platform platform);
/// The platform with the paths that the scenario changes: [[path]].
platforms::Platform with_own_paths(const Document& document, platforms::Platform platform);

/// The platform with the machines and the connections that the scenario gives its sites; `machines` are those
/// of a site without a number of its own.
platforms::Platform with_machines_of_sites(const Document& document, platforms::Platform platform,
                                           int machines);

/// Sets the prices that [[site]] tables give. Refuses them without prices for all sites.
void set_prices_of_sites(const Document& document, const platforms::Platform& platform,
                         std::optional<costmodel::Prices>& prices);
/// How each site's GPUs are paid for: as its [[site]] says, otherwise as [prices] does.
std::vector<std::string> pricing_of_sites(const Document& document, const platforms::Platform& platform,
                                          const std::string& usual);

/// Sets the failures of sites that differ from [failures]. Owned GPUs are not preempted.
void set_failures_of_sites(const Document& document, costmodel::Scenario& scenario);

}  // namespace fomoe::scenario
