// The part of Fluid that applies changes of link rates and latencies over time, and refuses flows over links
// that stay down.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/fluid/fluid_simgrid.hpp"

namespace fomoe::sim {

double Fluid::changes_clock_s() const {
  return changes_at_start_s_ + (released_at_s_ ? now() - *released_at_s_ : 0);
}

void Fluid::reset_links() {
  platform_ = platforms::state_at(described_, changes_at_start_s_);
  for (const platforms::LinkChange& change : platform_.changes) {
    if (change.bandwidth_bytes_per_s) set_rate(change, platforms::rate_of(platform_, change));
  }
  if (links_changed_) links_changed_();
}

void Fluid::release_changes() {
  if (released_at_s_) return;
  released_at_s_ = now();
  schedule_change(platforms::next_change(platform_, changes_at_start_s_));
}

// Only one change has a timer at a time, so that a trace that repeats for ever ends with the last flow.
void Fluid::schedule_change(platforms::NextChange next) {
  if (platform_.changes.empty() || stopped_) return;
  if (next.index == platform_.changes.size()) {
    if (platform_.changes_period_s == 0) return;
    next = {0, next.period_start_s + platform_.changes_period_s};
  }
  const double at_s = next.period_start_s + platform_.changes[next.index].at_s;
  after(std::max(0.0, at_s - changes_clock_s()), [this, next] {
    if (stopped_) return;
    // All changes of an instant come before anybody looks at the links.
    const double instant_s = platform_.changes[next.index].at_s;
    std::size_t end = next.index;
    while (end < platform_.changes.size() && platform_.changes[end].at_s == instant_s)
      apply(platform_.changes[end++]);
    tell_of_changes();
    schedule_change({end, next.period_start_s});
  });
}

void Fluid::set_rate(const platforms::LinkChange& of, double bytes_per_s) {
  using Link = platforms::LinkChange::Link;
  platforms::set_rate(platform_, of, bytes_per_s);
  const auto from = static_cast<std::size_t>(of.from);
  s4u::Link* link = nullptr;
  switch (of.link) {
    case Link::uplink:
      link = simgrid_->up[from];
      break;
    case Link::downlink:
      link = simgrid_->down[from];
      break;
    case Link::path:
      link = simgrid_->path.at({of.from, of.to});
      break;
    case Link::shared:
      link = simgrid_->shared[from];
      break;
  }
  if (link != nullptr) simgrid_->set_rate(link, bytes_per_s);
}

void Fluid::apply(const platforms::LinkChange& change) {
  if (change.latency_s) platform_.set_latency(change.from, change.to, *change.latency_s);
  if (change.bandwidth_bytes_per_s) set_rate(change, *change.bandwidth_bytes_per_s);
}

void Fluid::tell_of_changes() {
  if (links_changed_) links_changed_();
  if (!platforms::has_dead_link(platform_)) return;
  for (const Flight& flight : simgrid_->flights) {
    if (flight.comm) refuse_dead_links(flight.from, flight.to);
  }
}

// A link at rate 0 is acceptable if the trace raises its rate later. Otherwise its flows would never end, so
// the run is refused.
void Fluid::refuse_dead_links(NodeId from, NodeId to) const {
  using Link = platforms::LinkChange::Link;
  const int a = nodes_[static_cast<std::size_t>(from)].site, b = nodes_[static_cast<std::size_t>(to)].site;
  if (a == b) return;
  const bool repeats = platform_.changes_period_s > 0;
  const auto refuse_if_dead = [&](Link link, int i, int j, double rate) {
    if (rate > 0) return;
    for (const platforms::LinkChange& later : platform_.changes) {
      if ((repeats || later.at_s > changes_clock_s()) && later.link == link && later.from == i &&
          later.to == j && later.bandwidth_bytes_per_s.value_or(0) > 0)
        return;
    }
    throw std::runtime_error("the run cannot finish: " + platforms::link_name(platform_, link, i, j) +
                             " is permanently down from " + std::to_string(now()) + " s on, and " +
                             platform_.sites[static_cast<std::size_t>(a)].name + " has data to send to " +
                             platform_.sites[static_cast<std::size_t>(b)].name);
  };
  const platforms::Path& path = platform_.path(a, b);
  refuse_if_dead(Link::uplink, a, a, platform_.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s);
  refuse_if_dead(Link::downlink, b, b, platform_.sites[static_cast<std::size_t>(b)].downlink_bytes_per_s);
  refuse_if_dead(Link::path, a, b, path.bandwidth_bytes_per_s);
  for (const int link : platform_.shared_by(a, b))
    refuse_if_dead(Link::shared, link, link,
                   platform_.shared_links[static_cast<std::size_t>(link)].bandwidth_bytes_per_s);
}

}  // namespace fomoe::sim
