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

}  // namespace

std::vector<LinkUsage> link_usage(const Plan& plan, const platforms::Platform& platform,
                                  const Timeline& timeline, int bins) {
  const double end_s = end_of(timeline);
  const double bin_s = end_s / bins;
  std::map<LinkId, std::vector<double>> bytes;
  const auto add = [&](const LinkId& id, const FlowRecord& flow) {
    std::vector<double>& of_link = bytes[id];
    of_link.resize(static_cast<std::size_t>(bins), 0.0);
    const auto first = std::min(bins - 1, static_cast<int>(flow.start_s / bin_s));
    const auto last = std::min(bins - 1, static_cast<int>(flow.end_s / bin_s));
    const double duration_s = flow.end_s - flow.start_s;
    for (int bin = first; bin <= last; ++bin) {
      const double overlap_s = std::min(flow.end_s, (bin + 1) * bin_s) - std::max(flow.start_s, bin * bin_s);
      const double share = first == last ? 1 : std::max(0.0, overlap_s) / duration_s;
      of_link[static_cast<std::size_t>(bin)] += flow.bytes * share;
    }
  };
  for (const FlowRecord& flow : timeline.flow_records) {
    const int from = plan.nodes[static_cast<std::size_t>(flow.from)].site;
    const int to = plan.nodes[static_cast<std::size_t>(flow.to)].site;
    if (from == to) continue;
    add({Link::uplink, from, from}, flow);
    add({Link::downlink, to, to}, flow);
    add({Link::path, from, to}, flow);
    for (const int link : platform.shared_by(from, to)) add({Link::shared, link, link}, flow);
  }
  std::vector<LinkUsage> usage;
  for (auto& [id, of_link] : bytes) {
    for (double& value : of_link) value /= bin_s;
    usage.push_back(
        {platforms::link_name(platform, id.link, id.from, id.to), capacity(platform, id), of_link});
  }
  return usage;
}

}  // namespace fomoe::costmodel
