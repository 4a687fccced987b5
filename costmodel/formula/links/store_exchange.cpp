#include "costmodel/formula/links/store_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/formula/links/shared_port.hpp"

namespace fomoe::costmodel {

namespace {

using Site = StoreLinks::Site;
using Objects = std::array<StoreObjects, 2>;
constexpr double kNone = platforms::kUnlimited;

/// Objects of one kind that a site begins to move together: as many equal flows, which end together.
struct Batch {
  double start_s, flows, bytes;  // bytes of one flow
};

/// When batches end that share a port.
std::vector<double> batch_ends_s(const std::vector<Batch>& batches, double alone_bytes_per_s,
                                 double port_bytes_per_s) {
  std::vector<PortFlow> flows;
  for (const Batch& batch : batches) {
    const double whole = std::max(1.0, std::round(batch.flows));
    flows.insert(flows.end(), static_cast<std::size_t>(whole),
                 {batch.start_s, batch.flows * batch.bytes / whole, alone_bytes_per_s});
  }
  const std::vector<double> each = ends_s(flows, port_bytes_per_s);
  std::vector<double> ends;
  std::size_t last = 0;
  for (const Batch& batch : batches) {
    last += static_cast<std::size_t>(std::max(1.0, std::round(batch.flows)));
    ends.push_back(each[last - 1]);
  }
  return ends;
}

/// When a port has passed on everything: it works whenever something waits.
double all_passed_s(std::vector<Batch> batches, double port_bytes_per_s) {
  std::sort(batches.begin(), batches.end(),
            [](const Batch& a, const Batch& b) { return a.start_s < b.start_s; });
  double now_s = 0;
  for (const Batch& batch : batches)
    now_s = std::max(now_s, batch.start_s) + batch.flows * batch.bytes / port_bytes_per_s;
  return now_s;
}

class StoreExchange {
 public:
  StoreExchange(const StoreLinks& links, const Objects& objects) : links_(links) {
    for (const StoreObjects& of : objects)
      if (of.count > 0) kinds_.push_back(of);
    // Sites that are alike have equal parts of the store's ports.
    like_ = links.count / static_cast<double>(links.sites.size());
    store_down_ = links.downlink_bytes_per_s / like_;
    store_up_ = links.uplink_bytes_per_s / like_;
  }

  /// When the sites end an exchange that they begin at these times.
  [[nodiscard]] std::vector<double> ends_s(const std::vector<double>& begins_s) const {
    const std::vector<std::vector<double>> there_s = uploads_s(begins_s);
    std::vector<double> ends(begins_s);
    std::vector<Batch> all;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const Site& site = links_.sites[i];
      for (const double end_s : there_s[i]) ends[i] = std::max(ends[i], end_s);
      std::vector<Batch> batches = downloads_of(i, there_s);
      all.insert(all.end(), batches.begin(), batches.end());
      for (Batch& batch : batches)  // a site that still is in the exchange before is not ready
        batch.start_s = std::max(batch.start_s + site.down_latency_s, begins_s[i]);
      // A flow through a store's port that others use takes a longer time there than in the site's own.
      for (const double end_s : batch_ends_s(batches, kNone, std::min(site.down_bytes_per_s, store_up_)))
        ends[i] = std::max(ends[i], end_s);
    }
    if (ends.size() == 1 || sum_down() <= store_up_) return ends;
    const double passed_s = all_passed_s(all, store_up_);
    for (std::size_t i = 0; i < ends.size(); ++i)
      ends[i] = std::max(ends[i], passed_s + links_.sites[i].down_latency_s);
    return ends;
  }

 private:
  /// [site][kind]: when the store has what the site uploads.
  [[nodiscard]] std::vector<std::vector<double>> uploads_s(const std::vector<double>& begins_s) const {
    std::vector<std::vector<double>> there_s;
    std::vector<Batch> all;
    for (std::size_t i = 0; i < begins_s.size(); ++i) {
      const Site& site = links_.sites[i];
      std::vector<Batch> batches;
      for (const StoreObjects& of : kinds_)
        batches.push_back({begins_s[i] + site.up_latency_s, of.count, of.bytes});
      all.insert(all.end(), batches.begin(), batches.end());
      there_s.push_back(batch_ends_s(batches, kNone, std::min(site.up_bytes_per_s, store_down_)));
    }
    if (begins_s.size() == 1 || sum_up() <= store_down_) return there_s;
    const double passed_s = all_passed_s(all, store_down_);
    for (std::vector<double>& of_site : there_s)
      for (double& end_s : of_site) end_s = std::max(end_s, passed_s);
    return there_s;
  }

  /// What a site downloads, and when the store has it.
  [[nodiscard]] std::vector<Batch> downloads_of(std::size_t site,
                                                const std::vector<std::vector<double>>& there_s) const {
    std::vector<Batch> batches;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const StoreObjects& of = kinds_[k];
      if (of.result_bytes > 0) {
        double last_s = 0;
        for (const std::vector<double>& of_site : there_s) last_s = std::max(last_s, of_site[k]);
        batches.push_back({last_s, of.count, of.result_bytes});
        continue;
      }
      const auto others = static_cast<std::size_t>(std::llround(of.sites)) - 1;
      if (there_s.size() == 1) {
        batches.push_back({there_s[0][k], of.count * static_cast<double>(others), of.bytes});
        continue;
      }
      std::vector<double> of_others;
      for (std::size_t j = 0; j < there_s.size(); ++j)
        if (j != site) of_others.push_back(there_s[j][k]);
      std::sort(of_others.rbegin(), of_others.rend());
      for (std::size_t j = 0; j < others && j < of_others.size(); ++j)
        batches.push_back({of_others[j], of.count, of.bytes});
    }
    return batches;
  }

  [[nodiscard]] double sum_up() const {
    return std::accumulate(links_.sites.begin(), links_.sites.end(), 0.0,
                           [](double sum, const Site& site) { return sum + site.up_bytes_per_s; });
  }
  [[nodiscard]] double sum_down() const {
    return std::accumulate(links_.sites.begin(), links_.sites.end(), 0.0,
                           [](double sum, const Site& site) { return sum + site.down_bytes_per_s; });
  }

  const StoreLinks& links_;
  std::vector<StoreObjects> kinds_;
  double like_ = 1, store_down_ = 0, store_up_ = 0;
};

}  // namespace

StoreLinks store_links(const platforms::Platform& platform, const NetworkModel& network) {
  StoreLinks links;
  const int store = platform.size() - 1;
  links.count = store;
  for (int i = 0; i < store; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    const platforms::Path &up = platform.path(i, store), &down = platform.path(store, i);
    links.sites.push_back({std::min(site.uplink_bytes_per_s, up.bandwidth_bytes_per_s),
                           std::min(site.downlink_bytes_per_s, down.bandwidth_bytes_per_s), up.latency_s,
                           down.latency_s, static_cast<double>(connections_of(network, up))});
  }
  const bool alike = std::all_of(links.sites.begin(), links.sites.end(),
                                 [&](const Site& site) { return site == links.sites.front(); });
  if (alike) links.sites.resize(1);
  links.uplink_bytes_per_s = platform.sites.back().uplink_bytes_per_s;
  links.downlink_bytes_per_s = platform.sites.back().downlink_bytes_per_s;
  return links;
}

double store_exchange_s(const StoreLinks& links, const Objects& objects) {
  const StoreExchange exchange(links, objects);
  // Sites begin anew when each has ended for itself. After the first exchange the durations repeat, or long
  // and short ones take turns.
  constexpr int kMeasured = 4;
  std::vector<double> times_s(links.sites.size(), 0);
  double first_s = 0, last_s = 0;
  for (int i = 0; i <= kMeasured; ++i) {
    times_s = exchange.ends_s(times_s);
    last_s = *std::max_element(times_s.begin(), times_s.end());
    if (i == 0) first_s = last_s;
  }
  return (last_s - first_s) / kMeasured;
}

}  // namespace fomoe::costmodel
