// Tests which links and limits simulated connections meet: those of each connection, those that a trace
// brings, outages, and random losses. Ideal hosts, and formulas, say what to expect.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::CongestionControl;
using Link = platforms::LinkChange::Link;

namespace {

costmodel::Plan message(double bytes) {
  return transfer_only(2, Pattern::point_to_point, Collective::ring,
                       {exchange_of({0, 1}, static_cast<std::int64_t>(bytes / 4))});
}

double seconds(double bytes, const platforms::Platform& platform, const sim::Options& options) {
  return sim::simulate(
             message(bytes), {0}, platform, [](auto&&...) { return 0.0; }, options)
      .round_end_s[0];
}

}  // namespace

TEST_CASE("a link that limits each connection does so with windows, and several connections have more") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.01);
  platform.shared_links = {{"line", 1.25e7}};
  platform.shared_links[0].per_flow = true;
  platform.share(0, 1, {0});
  sim::Options options = linux_options();
  // Beside the bytes ÷ rate, slow start takes up to ten round trips of 20 ms.
  CHECK(seconds(1e8, platform, options) == doctest::Approx(8).epsilon(0.05));
  options.network.streams = 4;
  CHECK(seconds(1e8, platform, options) == doctest::Approx(2).epsilon(0.1));
  // The same where links change.
  platform.changes = {rate_change(Link::uplink, 1, 1, 1, 1e8)};
  CHECK(seconds(1e8, platform, options) == doctest::Approx(2).epsilon(0.1));
}

TEST_CASE("acknowledgements do not wait where a link limits each connection, whichever direction shares it") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.025);
  platform.shared_links = {{"there", 1.25e7}, {"back", 1.25e7}};
  for (platforms::SharedLink& link : platform.shared_links) link.per_flow = true;
  platform.share(0, 1, {0});
  platform.share(1, 0, {1});
  const double apart_s = seconds(1e8, platform, linux_options());
  platform.share(1, 0, {0});
  CHECK(seconds(1e8, platform, linux_options()) == doctest::Approx(apart_s).epsilon(1e-3));
}

TEST_CASE("a message that is too small to be divided takes as long over any number of connections") {
  const platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.1);
  sim::Options options = linux_options();
  const double one_s = seconds(60000, platform, options);
  for (const int streams : {8, 9, 16, 64}) {
    CAPTURE(streams);
    options.network.streams = streams;
    CHECK(seconds(60000, platform, options) == doctest::Approx(one_s).epsilon(1e-2));
  }
}

TEST_CASE("a trace limits a path that has no limit of its own") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.01);
  platform.changes = {rate_change(Link::path, 0, 1, 0, 1.25e6)};
  CHECK(seconds(1e7, platform, linux_options()) == doctest::Approx(8).epsilon(0.05));
  platform.changes = {rate_change(Link::path, 0, 1, 0.01, 0), rate_change(Link::path, 0, 1, 30, 1.25e6)};
  CHECK(seconds(1e7, platform, linux_options()) > 30);
}

TEST_CASE("each sequence of rounds meets the same queues, also where links change") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e7, 0.05);
  platform.changes = {rate_change(Link::downlink, 1, 1, 1, 2.5e6)};
  const auto ends = sim::simulate_each(
      message(5e7), {{{0}}, {{0}}, {{0}}}, platform, [](auto&&...) { return 0.0; }, linux_options());
  for (const auto& again : {ends[1], ends[2]})
    CHECK(again.round_end_s[0] == doctest::Approx(ends[0].round_end_s[0]).epsilon(1e-9));
}

TEST_CASE("a measured rate of a connection replaces buffers, and not a window that is given") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.1);
  platform.change_path(0, 1, [](platforms::Path& path) { path.connection_bytes_per_s = 6.25e7; });
  sim::Options options = linux_options();
  options.network.send_buffer_bytes = 4e6;
  options.network.receive_buffer_bytes = 6e6;  // alone 15 MB/s
  const auto limit = [&] {
    return costmodel::flow_cap_bytes_per_s(options.network, 0.2, platform.path(0, 1));
  };
  CHECK(limit() == doctest::Approx(6.25e7));
  const double at_once_s = seconds(5e8, platform, options);
  CHECK((seconds(1.5e9, platform, options) - at_once_s) == doctest::Approx(1e9 / 6.25e7).epsilon(0.05));
  options.network.tcp_window_bytes = 1e6;  // 5 MB/s
  CHECK(limit() == doctest::Approx(5e6));
  CHECK(seconds(1e8, platform, options) - seconds(5e7, platform, options) ==
        doctest::Approx(10).epsilon(0.05));
}

TEST_CASE("BBR carries what random losses leave of the rate, up to a loss of 15 %") {
  // Cardwell et al. 2016, figure 8: the rate of the link times the share that is delivered, over a minute.
  const platforms::Platform platform = platforms::uniform(2, 1.25e7, 1.25e8, 0.05);
  sim::Options options = linux_options(CongestionControl::bbr);
  constexpr double kBytes = 7.5e8;
  const double without_s = seconds(kBytes, platform, options);
  for (const double loss : {0.01, 0.05, 0.1, 0.15}) {
    options.network.loss_rate = loss;
    CHECK(seconds(kBytes, platform, options) == doctest::Approx(without_s / (1 - loss)).epsilon(0.02));
  }
}

TEST_CASE("BBR does not probe the round trip when a connection sends for the first time, however late") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.05);
  const sim::Options options = linux_options(CongestionControl::bbr);
  const double usual_s = seconds(1e7, platform, options);
  platform.changes = {rate_change(Link::uplink, 0, 0, 0, 0), rate_change(Link::uplink, 0, 0, 60, 1.25e8)};
  CHECK(seconds(1e7, platform, options) == doctest::Approx(60 + usual_s).epsilon(1e-3));
}

TEST_CASE("a change elsewhere during an outage does not delay what waits for the link") {
  platforms::Platform platform = platforms::uniform(3, 1.25e7, 1.25e7, 0.05);
  platform.changes = {rate_change(Link::uplink, 0, 0, 2, 0), rate_change(Link::uplink, 0, 0, 62, 1.25e7)};
  sim::Options options = linux_options();
  options.network.uplink_queue = costmodel::UplinkQueue::router;  // the queue drops: CUBIC's growth counts
  options.network.queue_bdp = 0.5;
  const double alone_s = seconds(2e8, platform, options);
  platform.changes.insert(platform.changes.begin() + 1, rate_change(Link::downlink, 2, 2, 30, 1e7));
  CHECK(seconds(2e8, platform, options) == doctest::Approx(alone_s).epsilon(1e-9));
}

TEST_CASE("a measured rate of a connection is its rate over any latency, also when the latency changes") {
  for (const double latency_s : {0.0, 0.0001, 0.025}) {
    platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, latency_s);
    platform.change_path(0, 1, [](platforms::Path& path) { path.connection_bytes_per_s = 1.2e8; });
    // Slow start takes up to twelve round trips of 50 ms.
    CHECK(seconds(3e9, platform, linux_options()) == doctest::Approx(25).epsilon(0.03));
    platform.change_path(0, 1, [](platforms::Path& path) { path.connection_bytes_per_s = 2.5e7; });
    platform.changes = {rate_change(Link::path, 0, 1, 1, 1.25e8)};
    platform.changes[0].latency_s = 0.1 - latency_s;
    CHECK(seconds(5e8, platform, linux_options()) == doctest::Approx(20).epsilon(0.05));
  }
}

TEST_CASE("links that come back at the same instant are all back") {
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.01);
  platform.changes = {rate_change(Link::uplink, 0, 0, 0.1, 0), rate_change(Link::downlink, 1, 1, 0.1, 0),
                      rate_change(Link::uplink, 0, 0, 5, 1.25e8),
                      rate_change(Link::downlink, 1, 1, 5, 1.25e8)};
  const double end_s = seconds(1e8, platform, linux_options());
  CHECK(end_s > 5);
  CHECK(end_s < 7);
}

TEST_CASE("acknowledgements travel as long over a path with a measured rate, in either direction or one") {
  // A small message is over after slow start, which the round trip decides.
  platforms::Platform platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.05);
  const double usual_s = seconds(2e6, platform, linux_options());
  const auto measured = [](platforms::Path& path) { path.connection_bytes_per_s = 1.25e8; };
  platform.change_path(1, 0, measured);
  CHECK(seconds(2e6, platform, linux_options()) == doctest::Approx(usual_s).epsilon(0.02));
  platform.change_path(0, 1, measured);
  CHECK(seconds(2e6, platform, linux_options()) == doctest::Approx(usual_s).epsilon(0.02));
}
