#include "platforms/link_changes.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace fomoe::platforms {

double rate_of(const Platform& platform, const LinkChange& change) {
  const auto from = static_cast<std::size_t>(change.from);
  switch (change.link) {
    case LinkChange::Link::uplink:
      return platform.sites[from].uplink_bytes_per_s;
    case LinkChange::Link::downlink:
      return platform.sites[from].downlink_bytes_per_s;
    case LinkChange::Link::path:
      return platform.path(change.from, change.to).bandwidth_bytes_per_s;
    case LinkChange::Link::shared:
      return platform.shared_links[from].bandwidth_bytes_per_s;
  }
  throw std::logic_error("unknown kind of link");
}

void set_rate(Platform& platform, const LinkChange& change, double bytes_per_s) {
  const auto from = static_cast<std::size_t>(change.from);
  switch (change.link) {
    case LinkChange::Link::uplink:
      platform.sites[from].uplink_bytes_per_s = bytes_per_s;
      return;
    case LinkChange::Link::downlink:
      platform.sites[from].downlink_bytes_per_s = bytes_per_s;
      return;
    case LinkChange::Link::path:
      platform.set_path_rate(change.from, change.to, bytes_per_s);
      return;
    case LinkChange::Link::shared:
      platform.shared_links[from].bandwidth_bytes_per_s = bytes_per_s;
      return;
  }
}

void apply(Platform& platform, const LinkChange& change) {
  if (change.latency_s) platform.set_latency(change.from, change.to, *change.latency_s);
  if (change.bandwidth_bytes_per_s) set_rate(platform, change, *change.bandwidth_bytes_per_s);
}

NextChange next_change(const Platform& platform, double clock_s) {
  const double period_s = platform.changes_period_s;
  NextChange next;
  if (period_s > 0) next.period_start_s = std::floor(clock_s / period_s) * period_s;
  const auto after =
      std::upper_bound(platform.changes.begin(), platform.changes.end(), clock_s - next.period_start_s,
                       [](double time_s, const LinkChange& change) { return time_s < change.at_s; });
  next.index = static_cast<std::size_t>(after - platform.changes.begin());
  if (period_s > 0 && next.index == platform.changes.size()) {
    next.index = 0;
    next.period_start_s += period_s;
  }
  return next;
}

Platform state_at(const Platform& platform, double clock_s) {
  Platform state = platform;
  const double period_s = platform.changes_period_s;
  if (period_s > 0) {
    for (const LinkChange& change : platform.changes) apply(state, change);
    clock_s -= std::floor(clock_s / period_s) * period_s;
  }
  for (const LinkChange& change : platform.changes) {
    if (change.at_s <= clock_s) apply(state, change);
  }
  return state;
}

namespace {
bool has_dead_path(const Platform& platform) {
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from != to && platform.path(from, to).bandwidth_bytes_per_s == 0) return true;
      if (platform.paths.alike() && from != to) return false;
    }
  }
  return false;
}
}  // namespace

bool has_dead_link(const Platform& platform) {
  return std::any_of(platform.sites.begin(), platform.sites.end(),
                     [](const Site& site) {
                       return site.uplink_bytes_per_s == 0 || site.downlink_bytes_per_s == 0;
                     }) ||
         has_dead_path(platform) ||
         std::any_of(platform.shared_links.begin(), platform.shared_links.end(),
                     [](const SharedLink& link) { return link.bandwidth_bytes_per_s == 0; });
}

}  // namespace fomoe::platforms
