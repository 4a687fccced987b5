// The part of Engine that connects the models of TCP senders (BBR probes, BBR sending rates, send buffers) to
// the clock and the links.
#include <algorithm>
#include <utility>

#include "sim/engine/engine_simgrid.hpp"

namespace fomoe::sim {

namespace {

// An offset that keeps these draws apart from those of start-up rates and jitter.
constexpr std::uint64_t kProbeDraws = 1ULL << 32;

}  // namespace

bool Engine::paces(Pair pair) const { return simulates_senders_ && leaves_site(pair.first, pair.second); }

ProbeClock::Environment Engine::probe_environment() {
  return {[this] { return now(); },
          [this](double delay_s, Callback callback) { after(delay_s, std::move(callback)); },
          [this](Pair pair) { return round_trip_s(pair); },
          [this](Pair pair, std::uint64_t which) {
            return flow_start_.draw(pair.first, pair.second, kProbeDraws + which);
          },
          [this](Pair pair, bool open) {
            sender_rates_.paused(pair, !open);
            simgrid_->valve(nodes_.size(), pair).open = open;
            set_valve(pair);
          }};
}

SenderRates::Environment Engine::rate_environment() {
  return {[this] { return now(); },
          [this](double delay_s, Callback callback) { after(delay_s, std::move(callback)); },
          [this](Pair pair) { return round_trip_s(pair); },
          [this](int site) { return platform_.sites[static_cast<std::size_t>(site)].uplink_bytes_per_s; },
          [this](Pair pair) { return flow_start_.draw(pair.first, pair.second) * 2 - 1; },
          [this](Pair pair) {
            const Simgrid::Valve& valve = simgrid_->valve(nodes_.size(), pair);
            double bytes = valve.delivered_bytes;
            for (const Flight* flight : valve.flights) bytes += flight->bytes - flight->comm->get_remaining();
            return bytes;
          },
          [this](Pair pair) { return sites(pair); },
          [this](Pair pair, double bytes_per_s) {
            simgrid_->valve(nodes_.size(), pair).most_bytes_per_s = bytes_per_s;
            set_valve(pair);
          }};
}

SendBuffers::Environment Engine::buffer_environment() {
  return {[this] { return now(); },
          [this](double delay_s, Callback callback) { after(delay_s, std::move(callback)); },
          [this](Pair pair, std::int64_t bytes, std::shared_ptr<Departure> departure, Callback ended) {
            if (departure) return arrive(std::move(departure), std::move(ended));
            begin_flow(pair.first, pair.second, bytes, std::move(ended));
          },
          [this](Pair pair) {
            const auto& [flight, arrived_before] = simgrid_->in_order.at(pair);
            return arrived_before + (flight ? flight->bytes - flight->comm->get_remaining() : 0);
          },
          [this](Pair pair) { return fastest_bytes_per_s(pair); },
          [this](Pair pair) { return flow_start_.send_buffer_bytes(pair.first, pair.second); }};
}

double Engine::fastest_bytes_per_s(Pair pair) const {
  const auto [from, to] = sites(pair);
  const platforms::Site& sender = platform_.sites[static_cast<std::size_t>(from)];
  if (from == to) return std::min(sender.fabric_bytes_per_s, kFastestFabric_bytes_per_s);
  const platforms::Path& path = platform_.path(from, to);
  const double between =
      path.backbone < 0
          ? path.bandwidth_bytes_per_s
          : std::min(path.bandwidth_bytes_per_s,
                     platform_.backbones[static_cast<std::size_t>(path.backbone)].bandwidth_bytes_per_s);
  return std::min({sender.uplink_bytes_per_s, between,
                   platform_.sites[static_cast<std::size_t>(to)].downlink_bytes_per_s,
                   flow_start_.cap_bytes_per_s(pair.first, pair.second), kFastestFabric_bytes_per_s});
}

void Engine::set_valve(Pair pair) {
  const Simgrid::Valve& valve = simgrid_->valve(nodes_.size(), pair);
  simgrid_->set_rate(valve.link, valve.open ? valve.most_bytes_per_s : kDown_bytes_per_s);
}

std::pair<int, int> Engine::sites(Pair pair) const {
  return {nodes_[static_cast<std::size_t>(pair.first)].site,
          nodes_[static_cast<std::size_t>(pair.second)].site};
}

double Engine::round_trip_s(Pair pair) const {
  return latency_s(pair.first, pair.second) + latency_s(pair.second, pair.first);
}

}  // namespace fomoe::sim
