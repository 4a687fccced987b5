#include "sim/tcp/tcp_network.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/math/draws.hpp"

namespace fomoe::sim {

using costmodel::NodeId;

TcpNetwork::TcpNetwork(const std::vector<costmodel::Node>& nodes, const costmodel::NetworkModel& network,
                       std::uint64_t seed, IfDown if_down)
    : nodes_(nodes), network_(network), seed_(seed), if_down_(std::move(if_down)), sites_(0) {}

void TcpNetwork::restart(const platforms::Platform& platform, const platforms::Platform& described,
                         std::uint64_t stream) {
  platform_ = &platform;
  stream_ = stream;
  close_all();
  openings_ = 0;
  make_links(described);
  change(0);
}

void TcpNetwork::close_all() {
  events_.clear();
  stalled_.clear();
  bursts_.clear();
  free_bursts_.clear();
  lines_.clear();
  line_of_.clear();
  ++openings_;
}

// A queue has room for `queue_bdp` times what its link carries in the longest round trip of its ways, and
// for 256 KiB at least. In the queue of a host, sockets wait before it overflows.
void TcpNetwork::make_links(const platforms::Platform& platform) {
  constexpr double kLeastQueue_bytes = 256 * 1024;
  const int sites = platform.size();
  sites_ = static_cast<std::size_t>(sites);
  const auto longest_s = [&](const auto& uses) {
    double most_s = 0;
    for (int a = 0; a < sites; ++a)
      for (int b = 0; b < sites; ++b)
        if (a != b && uses(a, b))
          most_s = std::max(most_s, platform.path(a, b).latency_s + platform.path(b, a).latency_s);
    return most_s;
  };
  const auto queue = [&](double bytes_per_s, const auto& uses) {
    return LinkQueue(bytes_per_s,
                     std::max(kLeastQueue_bytes, network_.queue_bdp * bytes_per_s * longest_s(uses)));
  };
  const bool host = network_.uplink_queue == costmodel::UplinkQueue::host;
  up_.clear();
  down_.clear();
  shared_.clear();
  path_.clear();
  for (int i = 0; i < sites; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    up_.push_back(host ? LinkQueue(site.uplink_bytes_per_s)
                       : queue(site.uplink_bytes_per_s, [&](int a, int) { return a == i; }));
    down_.push_back(queue(site.downlink_bytes_per_s, [&](int, int b) { return b == i; }));
  }
  for (std::size_t s = 0; s < platform.shared_links.size(); ++s) {
    shared_.push_back(queue(platform.shared_links[s].bandwidth_bytes_per_s, [&](int a, int b) {
      const auto links = platform.shared_by(a, b);
      return std::find(links.begin(), links.end(), static_cast<int>(s)) != links.end();
    }));
  }
  const bool changes = !platform.changes.empty();
  std::map<std::pair<int, int>, double> limited;  // paths without a limit that get one: the largest one
  for (const platforms::LinkChange& change : platform.changes) {
    if (change.link != platforms::LinkChange::Link::path || !change.bandwidth_bytes_per_s) continue;
    double& most = limited[{change.from, change.to}];
    if (std::isfinite(*change.bandwidth_bytes_per_s)) most = std::max(most, *change.bandwidth_bytes_per_s);
  }
  for (int a = 0; a < sites; ++a) {
    for (int b = 0; b < sites; ++b) {
      if (a == b) continue;
      const double bytes_per_s = platform.path(a, b).bandwidth_bytes_per_s;
      const double ports = std::min(platform.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s,
                                    platform.sites[static_cast<std::size_t>(b)].downlink_bytes_per_s);
      const auto uses = [&](int x, int y) { return x == a && y == b; };
      if (const auto later = limited.find({a, b}); later != limited.end() && !std::isfinite(bytes_per_s)) {
        path_.emplace(std::pair{a, b}, queue(later->second, uses)).first->second.set_rate(0, bytes_per_s);
      } else if (std::isfinite(bytes_per_s) && (changes || bytes_per_s < ports)) {
        path_.emplace(std::pair{a, b}, queue(bytes_per_s, uses));
      }
    }
  }
  ways_.clear();
  for (int a = 0; a < sites; ++a)
    for (int b = 0; b < sites; ++b) ways_.push_back(a == b ? Way{} : make_way(platform, a, b));
  std::uint32_t source = static_cast<std::uint32_t>(sites);  // those before are hosts
  for (Way& way : ways_)
    for (Hop& hop : way.hops) hop.source = source++;
  events_.restart(source);
}

TcpNetwork::Way TcpNetwork::make_way(const platforms::Platform& platform, int from, int to) {
  Way way;
  way.latency_s = platform.path(from, to).latency_s;
  way.hops.push_back({&up_[static_cast<std::size_t>(from)], -1});
  if (const auto found = path_.find({from, to}); found != path_.end())
    way.hops.push_back({&found->second, -1});
  if (std::isfinite(platform.path(from, to).connection_bytes_per_s))
    way.hops.push_back({nullptr, static_cast<int>(shared_.size()), true});
  const auto shared = platform.shared_by(from, to);
  const std::size_t on_path = shared.size() - platform.shared_at_receiver(from, to).size();
  for (std::size_t i = 0; i < shared.size(); ++i) {
    if (i == on_path) way.before_latency = way.hops.size();
    const auto link = static_cast<std::size_t>(shared[i]);
    way.hops.push_back(platform.shared_links[link].per_flow ? Hop{nullptr, shared[i], true}
                                                            : Hop{&shared_[link], -1});
  }
  if (on_path == shared.size()) way.before_latency = way.hops.size();
  way.hops.push_back({&down_[static_cast<std::size_t>(to)], -1});
  return way;
}

void TcpNetwork::change(double now_s) {
  if (platform_ == nullptr) return;
  const platforms::Platform& platform = *platform_;
  for (std::size_t i = 0; i < sites_; ++i) {
    up_[i].set_rate(now_s, platform.sites[i].uplink_bytes_per_s);
    down_[i].set_rate(now_s, platform.sites[i].downlink_bytes_per_s);
  }
  for (std::size_t s = 0; s < shared_.size(); ++s) {
    shared_[s].set_rate(now_s, platform.shared_links[s].bandwidth_bytes_per_s);
    for (const std::unique_ptr<Line>& line : lines_)
      if (s < line->alone.size() && line->alone[s])
        line->alone[s]->set_rate(now_s, platform.shared_links[s].bandwidth_bytes_per_s);
  }
  for (auto& [sites, queue] : path_)
    queue.set_rate(now_s, platform.path(sites.first, sites.second).bandwidth_bytes_per_s);
  for (std::size_t a = 0; a < sites_; ++a)
    for (std::size_t b = 0; b < sites_; ++b)
      if (a != b)
        ways_[a * sites_ + b].latency_s = platform.path(static_cast<int>(a), static_cast<int>(b)).latency_s;
  for (const auto& [what, index] : std::exchange(stalled_, {})) {
    if (what == What::pump) lines_[index]->stalled = false;
    events_.plan(now_s, EventQueue<Event>::kAlone, {what, index});
  }
}

double TcpNetwork::draw(Line& line) const { return costmodel::draw(seed_, stream_, line.id, line.draws++); }

// When the trainer has opened a connection, before the run. It opens those of a pair one after another: the
// processes of all sites find each other through a store at site 0, and each of Gloo's contexts takes about
// ten round trips to it.
double TcpNetwork::opened_s(int line, int lines) const {
  constexpr double kOpening_roundTrips = 10;
  double longest_s = 0;
  for (int site = 1; site < static_cast<int>(sites_); ++site)
    longest_s = std::max(longest_s, way(0, site).latency_s + way(site, 0).latency_s);
  return -kOpening_roundTrips * longest_s * (lines - line);
}

std::uint32_t TcpNetwork::line(NodeId from, NodeId to, int number) {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(from) * nodes_.size() + static_cast<std::uint64_t>(to);
  const auto [found, is_new] =
      line_of_.try_emplace({pair, number}, static_cast<std::uint32_t>(lines_.size()));
  if (!is_new) return found->second;
  const int a = nodes_[static_cast<std::size_t>(from)].site, b = nodes_[static_cast<std::size_t>(to)].site;
  const double round_trip_s = way(a, b).latency_s + way(b, a).latency_s;
  SocketBuffers buffers;
  if (network_.send_buffer_bytes) buffers.send = *network_.send_buffer_bytes;
  if (network_.receive_buffer_bytes) buffers.receive = *network_.receive_buffer_bytes;
  const double measured_bytes_per_s = platform_->path(a, b).connection_bytes_per_s;
  // A window of w bytes takes a receive buffer of 2 w bytes (Connection::ready_bytes), and a send buffer of
  // 1.5 w. The measured rate includes what buffers do: here they hold two windows of that rate at least.
  if (std::isfinite(measured_bytes_per_s)) {
    const double window = 2 * measured_bytes_per_s * round_trip_s;
    buffers.send = std::max(buffers.send, 1.5 * window);
    buffers.receive = std::max(buffers.receive, 2 * window);
  }
  if (network_.tcp_window_bytes) buffers.receive = std::min(buffers.receive, 2 * *network_.tcp_window_bytes);
  const std::uint32_t index = found->second;
  const int connections = costmodel::connections_of(network_, platform_->path(a, b));
  const auto draw_next = [this, index] { return draw(*lines_[index]); };
  lines_.push_back(std::make_unique<Line>(Line{
      a, b, from, to, alike(connections, number),
      Connection(
          make_congestion_window(network_, round_trip_s, opened_s(number, lines(connections)), draw_next),
          buffers, round_trip_s),
      (pair << 32U) + (openings_ << 17U) + static_cast<std::uint64_t>(number)}));
  Line& made = *lines_.back();
  if (network_.loss_rate)
    made.bytes_to_loss = -std::log1p(-draw(made)) * network_.segment_bytes / *network_.loss_rate;
  made.alone.resize(shared_.size() + 1);
  if (std::isfinite(measured_bytes_per_s))
    made.alone.back() = std::make_unique<LinkQueue>(measured_bytes_per_s);
  for (std::size_t s = 0; s < shared_.size(); ++s)
    if (platform_->shared_links[s].per_flow)
      made.alone[s] = std::make_unique<LinkQueue>(platform_->shared_links[s].bandwidth_bytes_per_s);
  return index;
}

void TcpNetwork::put(double now_s, NodeId from, NodeId to, int number, std::int64_t bytes, std::int64_t parts,
                     PartEvents& events) {
  const std::uint32_t index = line(from, to, number);
  lines_[index]->tcp.put(now_s, (bytes + parts - 1) / parts, events);
  pump(now_s, index);
}

void TcpNetwork::announce(double now_s, NodeId from, NodeId to, int number) {
  lines_[line(from, to, number)]->tcp.announce(now_s);
}

double TcpNetwork::next_event_s() const { return events_.next_s(); }

void TcpNetwork::stall(What what, std::uint32_t index, const Line& line) {
  if_down_(line.from, line.to);
  stalled_.emplace_back(what, index);
}

void TcpNetwork::run(const double& until_s) {
  while (!events_.empty() && events_.next_s() <= until_s) {
    const double now_s = events_.next_s();
    const Event event = events_.next();
    switch (event.what) {
      case What::hop:
        hop(now_s, event.index);
        break;
      case What::left_host:
        lines_[event.index]->tcp.in_host_bytes -= static_cast<double>(event.bytes);
        pump(now_s, event.index);
        break;
      case What::pump:
        lines_[event.index]->tcp.pump_at_s = -1;
        pump(now_s, event.index);
        break;
    }
  }
}

// Sends what the connection may send. It adds a burst to the host's queue as long as no more than two of its
// own wait there (TCP small queues; tcp_small_queue_check() in net/ipv4/tcp_output.c).
void TcpNetwork::pump(double now_s, std::uint32_t index) {
  constexpr double kMostInHost_bursts = 2;
  Line& line = *lines_[index];
  Connection& tcp = line.tcp;
  const bool host = network_.uplink_queue == costmodel::UplinkQueue::host;
  for (;;) {
    if (host && tcp.in_host_bytes > kMostInHost_bursts * tcp.burst_bytes()) return;
    double not_before_s = -1;
    const std::int64_t bytes = tcp.ready_bytes(now_s, not_before_s);
    if (bytes == 0) {
      if (not_before_s >= 0 && tcp.pump_at_s < 0) {
        tcp.pump_at_s = not_before_s;
        events_.plan(not_before_s, EventQueue<Event>::kAlone, {What::pump, index});
      }
      return;
    }
    if (up_[static_cast<std::size_t>(line.from_site)].down()) {
      if (!std::exchange(line.stalled, true)) stall(What::pump, index, line);
      return;
    }
    Burst burst = tcp.send(now_s, bytes);
    burst.connection = index;
    burst.lost = lost_by_chance(line, bytes);
    burst.bytes -= burst.lost;
    std::uint32_t place = static_cast<std::uint32_t>(bursts_.size());
    if (free_bursts_.empty()) {
      bursts_.push_back(burst);
    } else {
      place = free_bursts_.back();
      free_bursts_.pop_back();
      bursts_[place] = burst;
    }
    if (host) tcp.in_host_bytes += static_cast<double>(bytes);
    hop(now_s, place);
  }
}

std::int64_t TcpNetwork::lost_by_chance(Line& line, std::int64_t bytes) const {
  if (!network_.loss_rate) return 0;
  std::int64_t lost = 0;
  line.bytes_to_loss -= static_cast<double>(bytes);
  while (line.bytes_to_loss < 0) {
    lost = std::min(bytes, lost + static_cast<std::int64_t>(network_.segment_bytes));
    line.bytes_to_loss -= std::log1p(-draw(line)) * network_.segment_bytes / *network_.loss_rate;
  }
  return lost;
}

// Passes the next link of the burst's way. An acknowledgement takes no room, but waits its turn.
void TcpNetwork::hop(double now_s, std::uint32_t index) {
  Burst& burst = bursts_[index];
  Line& line = *lines_[burst.connection];
  const Way& route =
      burst.acknowledgement ? way(line.to_site, line.from_site) : way(line.from_site, line.to_site);
  if (burst.hop == route.hops.size()) return arrive(now_s, index);
  const Hop& at = route.hops[burst.hop];
  double left_s = now_s;
  if (!(at.data_only && burst.acknowledgement)) {
    LinkQueue& queue = at.queue != nullptr ? *at.queue : *line.alone[static_cast<std::size_t>(at.alone)];
    if (queue.down()) return stall(What::hop, index, line);
    left_s = burst.acknowledgement ? queue.pass(now_s, 0) : send_through(queue, now_s, at, burst, line);
  }
  ++burst.hop;
  const double latency_s = burst.hop == route.before_latency ? route.latency_s : 0;
  events_.plan(left_s + latency_s, at.source, {What::hop, index});
}

// When the burst has left a link's queue, which drops what it has no room for.
double TcpNetwork::send_through(LinkQueue& queue, double now_s, const Hop& at, Burst& burst,
                                const Line& line) {
  const int together = at.queue != nullptr ? line.alike : 1;
  const std::int64_t dropped = (queue.too_many(now_s, burst.bytes * together) + together - 1) / together;
  burst.bytes -= dropped;
  burst.lost += dropped;
  const double left_s = queue.pass(now_s, burst.bytes * together);
  burst.spread_s = std::max(burst.spread_s, queue.seconds_for(burst.bytes));
  if (burst.hop == 0 && network_.uplink_queue == costmodel::UplinkQueue::host)
    events_.plan(left_s, static_cast<std::uint32_t>(line.from_site),
                 {What::left_host, burst.connection, burst.bytes + burst.lost});
  return left_s;
}

void TcpNetwork::arrive(double now_s, std::uint32_t index) {
  const Burst burst = bursts_[index];
  Line& line = *lines_[burst.connection];
  if (burst.acknowledgement) {
    free_bursts_.push_back(index);
    line.tcp.acknowledge(now_s, burst);
    return pump(now_s, burst.connection);
  }
  bursts_[index].acknowledgement = true;
  bursts_[index].hop = 0;
  line.tcp.deliver(now_s, burst.bytes);
  hop(now_s, index);
}

}  // namespace fomoe::sim
