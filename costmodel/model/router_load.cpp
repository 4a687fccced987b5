#include "costmodel/model/router_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fomoe::costmodel {

namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Expected load of the fullest of n equal bins, in mean loads.
double fullest_of(double bins, double rows) {
  return bins > 1 ? 1 + std::sqrt(2 * std::log(bins) * bins / rows) : 1;
}

// The expected value of max(0, load − c) for a normally distributed load with mean 1 and standard deviation
// σ: σ·φ(z) − (c − 1)·Q(z) with z = (c − 1)/σ. φ is the density of the standard normal distribution, and Q(z)
// is the probability of a value above z.
double expected_excess(double capacity, double deviation) {
  const double z = (capacity - 1) / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  const double tail = std::erfc(z / std::sqrt(2.0)) / 2;
  return deviation * density - (capacity - 1) * tail;
}

// Counts of each expert of a layer, summed over all sites.
std::vector<double> counts_of(const RoutingCounts& counts, int layer) {
  std::vector<double> of_experts(static_cast<std::size_t>(counts.experts), 0.0);
  for (int expert = 0; expert < counts.experts; ++expert) {
    for (int site = 0; site < counts.sites; ++site)
      of_experts[static_cast<std::size_t>(expert)] += static_cast<double>(counts.at(layer, expert, site));
  }
  return of_experts;
}

std::vector<double> in_mean_loads(const std::vector<double>& counts) {
  std::vector<double> loads = counts;
  const double average = mean(counts);
  for (double& load : loads) load = average > 0 ? load / average : 1;
  return loads;
}

// Mean load of the experts in the site's block.
double block_mean(const std::vector<double>& loads, int sites, int site) {
  const auto n = static_cast<std::ptrdiff_t>(loads.size());
  const auto begin = loads.begin() + n * site / sites, end = loads.begin() + n * (site + 1) / sites;
  return std::accumulate(begin, end, 0.0) * sites / static_cast<double>(n);
}

}  // namespace

double LayerLoad::mean_site_rows() const { return mean(sites); }
double LayerLoad::busiest_site_rows() const { return *std::max_element(sites.begin(), sites.end()); }

LayerLoad layer_load(RouterModel router, double capacity_factor, const std::vector<double>& counts,
                     int experts, int sites, double rows) {
  LayerLoad load;
  load.sites.assign(static_cast<std::size_t>(sites), 1.0);
  const bool measured = !counts.empty() && router != RouterModel::expert_choice;
  const std::vector<double> loads = measured ? in_mean_loads(counts) : std::vector<double>{};
  const double deviation =
      std::sqrt(experts / rows);  // deviation of an expert's load under hash: Poisson with mean rows/N_e

  if (capacity_factor > 0 || router == RouterModel::expert_choice) {
    const double capacity = capacity_factor > 0 ? capacity_factor : 1;
    load.busiest_expert = capacity;
    load.sites.assign(static_cast<std::size_t>(sites), capacity);
    if (router == RouterModel::expert_choice) return load;
    if (measured) {
      for (const double of_expert : loads)
        load.dropped_share += std::max(0.0, of_expert - capacity) / experts;
    } else if (router == RouterModel::hash) {
      load.dropped_share = expected_excess(capacity, deviation);
    } else {
      load.dropped_share = std::max(0.0, 1 - capacity);
    }
    load.padded_share = 1 - (1 - load.dropped_share) / capacity;
    return load;
  }
  if (measured) {
    load.busiest_expert = *std::max_element(loads.begin(), loads.end());
    for (int site = 0; site < sites; ++site)
      load.sites[static_cast<std::size_t>(site)] = block_mean(loads, sites, site);
  } else if (router == RouterModel::hash) {
    load.busiest_expert = fullest_of(experts, rows);
    const double busiest = std::min(fullest_of(sites, rows), static_cast<double>(sites));
    // One site has the maximum; the others share the remaining rows equally.
    load.sites.assign(static_cast<std::size_t>(sites), sites > 1 ? (sites - busiest) / (sites - 1) : 1);
    load.sites.front() = busiest;
  }
  return load;
}

std::vector<LayerLoad> router_loads(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  const Strategy& strategy = scenario.strategy;
  const double rows = static_cast<double>(scenario.workload.global_batch_sequences * shape.sequence_length *
                                          shape.active_experts);
  const int experts = static_cast<int>(shape.experts), sites = scenario.sites();
  if (shape.experts == 0 || rows == 0) return {layer_load(RouterModel::uniform, 0, {}, 1, sites, 1)};

  std::vector<LayerLoad> loads;
  const RoutingCounts& counts = strategy.routing_counts;
  const bool hash = counts.empty() && strategy.router == RouterModel::hash;
  if (counts.empty())
    loads.push_back(layer_load(strategy.router, strategy.capacity_factor, {}, experts, sites, rows));
  for (int layer = 0; layer < counts.layers; ++layer)
    loads.push_back(layer_load(strategy.router, strategy.capacity_factor, counts_of(counts, layer), experts,
                               sites, rows));
  if (hash && strategy.capacity_factor == 0) {
    // Each layer has another fullest site, so that no site is the fullest over a whole pass.
    for (int layer = 1; layer < static_cast<int>(shape.layers); ++layer) {
      loads.push_back(loads.front());
      std::rotate(loads.back().sites.begin(), loads.back().sites.end() - layer % sites,
                  loads.back().sites.end());
    }
  }
  return loads;
}

}  // namespace fomoe::costmodel
