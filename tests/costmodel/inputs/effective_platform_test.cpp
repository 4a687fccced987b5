// Tests what the network model makes of a platform: each rate and each latency, also those of links that
// change.
#include <doctest/doctest.h>

#include "costmodel/inputs/network_model.hpp"
#include "platforms/link_changes.hpp"

using namespace fomoe;
using costmodel::NetworkModel;
using platforms::LinkChange;
using platforms::Platform;

namespace {

constexpr double kUplink = 1000, kDownlink = 2000, kPath = 4000, kShared = 8000;  // bytes per second
constexpr double kLatency_s = 0.25;

LinkChange change_of(LinkChange::Link link, int from, int to, double at_s, std::optional<double> rate,
                     std::optional<double> latency_s = {}) {
  LinkChange change;
  change.at_s = at_s;
  change.link = link;
  change.from = from;
  change.to = to;
  change.bandwidth_bytes_per_s = rate;
  change.latency_s = latency_s;
  return change;
}

/// Two sites and a backbone. Each kind of link changes, and the latency of a path with and without its rate.
Platform changing() {
  using enum LinkChange::Link;
  Platform platform = platforms::uniform(2, kUplink, kDownlink, kLatency_s);
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) platform.set_path_rate(from, to, kPath);
  platform.shared_links = {{"backbone", kShared}};
  platform.share(0, 1, {0});
  platform.changes = {change_of(uplink, 0, 0, 1, 3.0 * kUplink),
                      change_of(downlink, 1, 1, 2, 3.0 * kDownlink),
                      change_of(path, 0, 1, 3, 3.0 * kPath),
                      change_of(path, 0, 1, 4, {}, 0.5),
                      change_of(path, 1, 0, 5, 5.0 * kPath, 0.75),
                      change_of(shared, 0, 0, 6, 3.0 * kShared),
                      change_of(path, 1, 0, 7, {}, 0.0)};
  return platform;
}

}  // namespace

TEST_CASE("latency factor: it multiplies the latency of every path, before and after each change") {
  NetworkModel network;
  network.latency_factor = 3;
  const Platform platform = effective_platform(changing(), network);
  const auto latency_s = [&](double clock_s, int from, int to) {
    return platforms::state_at(platform, clock_s).path(from, to).latency_s;
  };
  CHECK(latency_s(0, 0, 1) == 3 * 0.25);
  CHECK(latency_s(3.5, 0, 1) == 3 * 0.25);  // only the rate has changed
  CHECK(latency_s(4.5, 0, 1) == 3 * 0.5);   // a change of the latency alone
  CHECK(latency_s(4.5, 1, 0) == 3 * 0.25);  // the other direction
  CHECK(latency_s(5.5, 1, 0) == 3 * 0.75);  // a change of rate and latency
  CHECK(latency_s(6.5, 0, 1) == 3 * 0.5);
  CHECK(latency_s(7.5, 1, 0) == 0);
  // Changes that state no latency do not get one.
  for (const std::size_t i : {0U, 1U, 2U, 5U}) CHECK_FALSE(platform.changes[i].latency_s.has_value());
}

TEST_CASE("latency factor: rates stay, and so do the changes of rates and their times") {
  NetworkModel network;
  network.latency_factor = 3;
  const Platform raw = changing(), platform = effective_platform(raw, network);
  for (std::size_t i = 0; i < raw.changes.size(); ++i) {
    CAPTURE(i);
    CHECK(platform.changes[i].at_s == raw.changes[i].at_s);
    CHECK(platform.changes[i].bandwidth_bytes_per_s == raw.changes[i].bandwidth_bytes_per_s);
  }
  CHECK(platform.sites[0].uplink_bytes_per_s == kUplink);
  CHECK(platform.sites[0].downlink_bytes_per_s == kDownlink);
  CHECK(platform.path(0, 1).bandwidth_bytes_per_s == kPath);
  CHECK(platform.shared_links[0].bandwidth_bytes_per_s == kShared);
}

TEST_CASE("efficiency, background and BBR: each multiplies every rate, before and after each change") {
  struct Case {
    double efficiency, background;
    bool bbr;
    double share;  // by hand
  };
  // BBR sends nothing for 0.2 s in every 10 s, and sends a tenth of the segments twice.
  for (const Case& one : {Case{0.5, 0, false, 0.5}, Case{1, 0.75, false, 0.25}, Case{1, 0, true, 0.9 * 0.98},
                          Case{0.5, 0.75, true, 0.5 * 0.25 * 0.9 * 0.98}}) {
    CAPTURE(one.share);
    NetworkModel network;
    network.bandwidth_efficiency = one.efficiency;
    network.background_share = one.background;
    network.loss_rate = 0.1;  // without BBR it limits flows, not links
    if (one.bbr) network.congestion_control = costmodel::CongestionControl::bbr;
    const Platform platform = effective_platform(changing(), network);
    const Platform before = platforms::state_at(platform, 0), after = platforms::state_at(platform, 10);
    const auto is = [&](double rate, double raw) { CHECK(rate == doctest::Approx(one.share * raw)); };
    is(before.sites[0].uplink_bytes_per_s, kUplink);
    is(after.sites[0].uplink_bytes_per_s, 3 * kUplink);
    is(after.sites[1].uplink_bytes_per_s, kUplink);
    is(before.sites[1].downlink_bytes_per_s, kDownlink);
    is(after.sites[1].downlink_bytes_per_s, 3 * kDownlink);
    is(before.path(0, 1).bandwidth_bytes_per_s, kPath);
    is(after.path(0, 1).bandwidth_bytes_per_s, 3 * kPath);
    is(after.path(1, 0).bandwidth_bytes_per_s, 5 * kPath);
    is(before.shared_links[0].bandwidth_bytes_per_s, kShared);
    is(after.shared_links[0].bandwidth_bytes_per_s, 3 * kShared);
    CHECK(after.path(0, 1).latency_s == 0.5);
  }
}
