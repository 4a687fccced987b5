#include "costmodel/timeline/link_usage.hpp"

#include <algorithm>
#include <map>

namespace fomoe::costmodel {

namespace {

using Link = platforms::LinkChange::Link;

struct LinkId {
  Link link;
  int from, to;
  friend auto operator<=>(const LinkId&, const LinkId&) = default;
};

double capacity(const platforms::Platform& platform, const LinkId& id) {
  switch (id.link) {
    case Link::uplink:
      return platform.sites[static_cast<std::size_t>(id.from)].uplink_bytes_per_s;
    case Link::downlink:
      return platform.sites[static_cast<std::size_t>(id.from)].downlink_bytes_per_s;
    case Link::path:
      return platform.path(id.from, id.to).bandwidth_bytes_per_s;
    case Link::shared:
      return platform.shared_links[static_cast<std::size_t>(id.from)].bandwidth_bytes_per_s;
  }
  return 0;
}

bool changes(const platforms::Platform& platform, const LinkId& id) {
  return std::any_of(platform.changes.begin(), platform.changes.end(), [&](const auto& change) {
    return change.link == id.link && change.from == id.from &&
           (change.link != Link::path || change.to == id.to);
  });
}

struct LinkBins {
  LinkId id;
  double most = platforms::kUnlimited;  // bytes that the link can carry in a bin
  std::vector<double> bytes;            // [bin]
};

struct FlowBins {
  std::vector<std::size_t> links;
  int first = 0;
  std::vector<double> bytes;  // [bin - first]
};

// Places the bytes of flows in bins. A flow has its mean rate, but for bins in which a link would carry more
// than it can: flows that share a link change their rates when others begin or end. Such bytes move to other
// bins of the flow in which all of its links have room.
class Placing {
 public:
  Placing(const platforms::Platform& platform, double bin_s, int bins)
      : platform_(platform), bin_s_(bin_s), bins_(bins) {}

  void add(const FlowRecord& flow, int from, int to) {
    FlowBins placed;
    placed.first = std::min(bins_ - 1, static_cast<int>(flow.start_s / bin_s_));
    const auto last = std::min(bins_ - 1, static_cast<int>(flow.end_s / bin_s_));
    placed.links = {link({Link::uplink, from, from}), link({Link::downlink, to, to}),
                    link({Link::path, from, to})};
    for (const int shared : platform_.shared_by(from, to))
      placed.links.push_back(link({Link::shared, shared, shared}));
    const double duration_s = flow.end_s - flow.start_s;
    for (int bin = placed.first; bin <= last; ++bin) {
      const double overlap_s =
          std::min(flow.end_s, (bin + 1) * bin_s_) - std::max(flow.start_s, bin * bin_s_);
      placed.bytes.push_back(flow.bytes * (placed.first == last ? 1 : std::max(0.0, overlap_s) / duration_s));
      put(placed, bin, placed.bytes.back());
    }
    if (placed.bytes.size() > 1) flows_.push_back(std::move(placed));
  }

  // Each pass lets one flow after another even out what its links carry too much. The sum of the squares of
  // this decreases until no flow can improve it.
  void spread() {
    // The longest flows can move most.
    std::stable_sort(flows_.begin(), flows_.end(),
                     [](const FlowBins& a, const FlowBins& b) { return a.bytes.size() > b.bytes.size(); });
    constexpr int kMostPasses = 300;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      double moved = 0;
      for (FlowBins& flow : flows_) moved += move(flow);
      if (moved == 0) return;
    }
  }

  [[nodiscard]] std::vector<LinkUsage> usage() {
    std::sort(links_.begin(), links_.end(), [](const LinkBins& a, const LinkBins& b) { return a.id < b.id; });
    std::vector<LinkUsage> usage;
    for (const LinkBins& of : links_) {
      LinkUsage& row = usage.emplace_back();
      row.link = platforms::link_name(platform_, of.id.link, of.id.from, of.id.to);
      row.capacity_bytes_per_s = capacity(platform_, of.id);
      for (const double bytes : of.bytes) row.bytes_per_s.push_back(bytes / bin_s_);
    }
    return usage;
  }

 private:
  std::size_t link(const LinkId& id) {
    const auto [found, is_new] = index_.try_emplace(id, links_.size());
    if (is_new) {
      LinkBins of{id, platforms::kUnlimited, std::vector<double>(static_cast<std::size_t>(bins_), 0.0)};
      const bool per_flow =
          id.link == Link::shared && platform_.shared_links[static_cast<std::size_t>(id.from)].per_flow;
      if (!per_flow && !changes(platform_, id)) of.most = capacity(platform_, id) * bin_s_;
      links_.push_back(std::move(of));
    }
    return found->second;
  }

  void put(const FlowBins& flow, int bin, double bytes) {
    for (const std::size_t l : flow.links) links_[l].bytes[static_cast<std::size_t>(bin)] += bytes;
  }

  // What the fullest link of the flow carries too much in this bin; negative if all of them have room.
  [[nodiscard]] double excess(const FlowBins& flow, int bin) const {
    double most = -platforms::kUnlimited;
    for (const std::size_t l : flow.links)
      most = std::max(most, links_[l].bytes[static_cast<std::size_t>(bin)] - links_[l].most);
    return most;
  }

  // Moves bytes from bins in which a link carries too much to others, down to an excess of 0 where there is
  // room for all of them, and otherwise to the least excess that is equal in all of these bins.
  double move(FlowBins& flow) {
    constexpr double kRounding = 1e-6;  // of the bytes of the flow
    const auto count = flow.bytes.size();
    std::vector<double> level(count);
    double all = 0, highest = 0;
    for (std::size_t b = 0; b < count; ++b) {
      level[b] = excess(flow, flow.first + static_cast<int>(b));
      all += flow.bytes[b];
      if (flow.bytes[b] > 0) highest = std::max(highest, level[b]);
    }
    if (highest <= 0) return 0;
    const auto above = [&](std::size_t b, double to) {
      return std::min(flow.bytes[b], std::max(0.0, level[b] - to));
    };
    const auto sums = [&](double to) {
      std::pair<double, double> sum;  // what is above, and what is free below
      for (std::size_t b = 0; b < count; ++b) {
        sum.first += above(b, to);
        sum.second += std::max(0.0, to - level[b]);
      }
      return sum;
    };
    double to = 0;
    if (const auto [over, free] = sums(0); over > free) {
      double low = 0, high = highest;
      for (int i = 0; i < 50; ++i) {
        to = (low + high) / 2;
        const auto [still_over, freed] = sums(to);
        (still_over > freed ? low : high) = to;
      }
      to = high;
    }
    const auto [over, free] = sums(to);
    if (over <= kRounding * all || free <= 0) return 0;
    for (std::size_t b = 0; b < count; ++b) {
      const double added = over * std::max(0.0, to - level[b]) / free - above(b, to);
      flow.bytes[b] += added;
      put(flow, flow.first + static_cast<int>(b), added);
    }
    return over;
  }

  const platforms::Platform& platform_;
  double bin_s_;
  int bins_;
  std::map<LinkId, std::size_t> index_;
  std::vector<LinkBins> links_;
  std::vector<FlowBins> flows_;  // those in several bins
};

}  // namespace

std::vector<LinkUsage> link_usage(const Plan& plan, const platforms::Platform& platform,
                                  const Timeline& timeline, int bins) {
  Placing placing(platform, end_of(timeline) / bins, bins);
  for (const FlowRecord& flow : timeline.flow_records) {
    const int from = plan.nodes[static_cast<std::size_t>(flow.from)].site;
    const int to = plan.nodes[static_cast<std::size_t>(flow.to)].site;
    if (from != to) placing.add(flow, from, to);
  }
  placing.spread();
  return placing.usage();
}

}  // namespace fomoe::costmodel
