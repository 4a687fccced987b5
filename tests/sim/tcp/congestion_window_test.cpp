// Tests the windows of Reno, CUBIC and BBR with acknowledgements by hand.
#include "sim/tcp/congestion_window.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/tcp/hystart.hpp"

using namespace fomoe::sim;

namespace {

constexpr double kRoundTrip_s = 0.1;

/// A sender whose window is always full, on a path that carries `bytes_per_s`.
struct Sender {
  CongestionWindow& control;
  double now_s = 0, acknowledged = 0;

  /// The acknowledgements of one window, each of two segments, spread over a round trip. A path that carries
  /// less makes the round trip longer.
  void round_trip(double bytes_per_s = 1e18) {
    double window = control.window_bytes();
    if (control.paces()) window = std::min(window, kRoundTrip_s * control.pace_bytes_per_s(kRoundTrip_s));
    const double begin_s = now_s, round_trip_s = std::max(kRoundTrip_s, window / bytes_per_s);
    const auto count = static_cast<int>(window / (2 * kSegment_bytes));
    const double before = acknowledged;
    for (int i = 0; i < count; ++i) {
      Ack ack;
      ack.now_s = now_s = begin_s + round_trip_s * (i + 1) / count;
      ack.bytes = 2 * kSegment_bytes;
      acknowledged += ack.bytes;
      ack.acknowledged = ack.accounted = acknowledged;
      ack.acknowledged_when_sent = before;
      ack.interval_s = std::max(round_trip_s, (acknowledged - before) / bytes_per_s);
      ack.sent = acknowledged + window;
      ack.round_trip_s = ack.smoothed_s = round_trip_s;
      ack.least_s = kRoundTrip_s;
      ack.window_limited = true;
      ack.largest_flight = window;
      control.acknowledged(ack);
    }
  }
};

}  // namespace

TEST_CASE("Reno: doubles in slow start, halves after a loss, then grows by a segment in each round trip") {
  const auto reno = make_reno(10 * kSegment_bytes, false);
  Sender sender{*reno};
  for (const int segments : {20, 40, 80}) {
    sender.round_trip();
    CHECK(reno->window_bytes() == doctest::Approx(segments * kSegment_bytes));
  }
  reno->lost({});
  reno->recovered();
  CHECK(reno->window_bytes() == doctest::Approx(40 * kSegment_bytes));
  for (int i = 1; i <= 5; ++i) sender.round_trip();
  CHECK(reno->window_bytes() == doctest::Approx(45 * kSegment_bytes).epsilon(0.01));
}

TEST_CASE("a window that is not used does not grow") {
  const auto reno = make_reno(10 * kSegment_bytes, false);
  Ack ack;
  ack.bytes = 1e6;
  ack.largest_flight = 4 * kSegment_bytes;  // less than half of the window
  reno->acknowledged(ack);
  CHECK(reno->window_bytes() == 10 * kSegment_bytes);
  ack.largest_flight = 6 * kSegment_bytes;
  reno->acknowledged(ack);
  CHECK(reno->window_bytes() > 10 * kSegment_bytes);
}

TEST_CASE("silence halves a window for each time-out, down to the first one, unless it is switched off") {
  for (const bool restart : {true, false}) {
    const auto reno = make_reno(10 * kSegment_bytes, restart);
    Sender sender{*reno};
    for (int i = 0; i < 4; ++i) sender.round_trip();
    REQUIRE(reno->window_bytes() == doctest::Approx(160 * kSegment_bytes));
    reno->sends_again(100, 0.29, 0.3, true);
    CHECK(reno->window_bytes() == doctest::Approx(160 * kSegment_bytes));
    reno->sends_again(100, 0.65, 0.3, true);
    CHECK(reno->window_bytes() == doctest::Approx((restart ? 40 : 160) * kSegment_bytes));
    reno->sends_again(100, 60, 0.3, true);
    CHECK(reno->window_bytes() == doctest::Approx((restart ? 10 : 160) * kSegment_bytes));
  }
}

TEST_CASE("CUBIC: 0.7 of the window after a loss, and back at it after K = cbrt(0.3 W / 0.4) seconds") {
  constexpr double kWindow_segments = 2560;
  const auto cubic = make_cubic(kWindow_segments * kSegment_bytes, false);
  cubic->lost({});
  cubic->recovered();
  CHECK(cubic->window_bytes() == doctest::Approx(0.7 * kWindow_segments * kSegment_bytes));
  Sender sender{*cubic};
  const double k_s = std::cbrt(0.3 * kWindow_segments / 0.4);  // 12.4 s
  while (sender.now_s < k_s) sender.round_trip();
  CHECK(cubic->window_bytes() == doctest::Approx(kWindow_segments * kSegment_bytes).epsilon(0.02));
  // 0.4 t³ segments more after t seconds.
  while (sender.now_s < k_s + 8) sender.round_trip();
  CHECK(cubic->window_bytes() ==
        doctest::Approx((kWindow_segments + 0.4 * 512) * kSegment_bytes).epsilon(0.02));
}

TEST_CASE("few losses: the window shrinks with what arrives, from its old size to the threshold") {
  const auto reno = make_reno(100 * kSegment_bytes, false);
  Ack ack;
  ack.in_recovery = true;
  ack.lost = kSegment_bytes;
  ack.bytes = 2 * kSegment_bytes;
  ack.accounted = 3 * kSegment_bytes;
  ack.sent = 100 * kSegment_bytes;
  reno->lost(ack);
  for (int i = 1; i <= 47; ++i) {
    reno->acknowledged(ack);
    // A segment leaves for each two that arrive.
    CHECK(reno->window_bytes() - ack.in_flight() >= 0);
    ack.sent += std::max(0.0, reno->window_bytes() - ack.in_flight());
    CHECK(ack.sent - 100 * kSegment_bytes == doctest::Approx(i * kSegment_bytes).epsilon(0.001));
    ack.lost = 0;
    ack.accounted += ack.bytes;
  }
  CHECK(reno->window_bytes() == doctest::Approx(52 * kSegment_bytes).epsilon(0.03));
}

TEST_CASE("most of a window is lost: the flight begins small and grows with each acknowledgement") {
  // Linux 6.18, CUBIC, 15 Mb/s: of 234 segments in flight, 228 were lost. The window was 5 segments, and then
  // about 8, 14, 23 and 39 after each further round trip of 150 ms. It was read every 40 to 110 ms, in which
  // it grows by up to 40 %. Here every second segment is acknowledged, and each acknowledgement releases one
  // more.
  const auto cubic = make_cubic(233 * kSegment_bytes, false);
  Ack ack;
  ack.in_recovery = true;
  ack.sent = 234 * kSegment_bytes;
  ack.lost = 228 * kSegment_bytes;
  ack.bytes = 2 * kSegment_bytes;
  ack.accounted = 230 * kSegment_bytes;
  cubic->lost(ack);
  cubic->acknowledged(ack);
  CHECK(cubic->window_bytes() == doctest::Approx(6 * kSegment_bytes));  // four in flight, two have arrived
  ack.repeats = true;
  ack.lost = 0;
  double window = 6;
  for (const double measured : {8, 14, 23, 39}) {
    ack.sent += cubic->window_bytes() - ack.in_flight();
    for (double left = cubic->window_bytes(); left > 0; left -= 2 * kSegment_bytes) {
      ack.bytes = std::min(left, 2 * kSegment_bytes);
      ack.accounted += ack.bytes;
      cubic->acknowledged(ack);
      ack.sent += cubic->window_bytes() - ack.in_flight();
    }
    CHECK(cubic->window_bytes() == doctest::Approx(1.5 * window * kSegment_bytes).epsilon(0.1));
    CHECK(cubic->window_bytes() == doctest::Approx(measured * kSegment_bytes).epsilon(0.3));
    window = cubic->window_bytes() / kSegment_bytes;
  }
}

TEST_CASE("HyStart: a train of acknowledgements longer than half of the round trip ends slow start") {
  const auto ends = [](double gap_s) {
    HyStart hystart;
    Ack ack;
    ack.least_s = ack.round_trip_s = kRoundTrip_s;
    ack.sent = 1e9;
    for (int i = 0; i < 100; ++i) {
      ack.now_s = 1 + i * gap_s;
      ack.accounted = 1 + i;
      if (hystart.found(ack, 100 * kSegment_bytes, 1e8)) return ack.now_s - 1;
    }
    return 0.0;
  };
  CHECK(ends(0.001) == doctest::Approx(0.051));  // (100 ms + 1 ms held back) / 2
  CHECK(ends(0.0021) == 0);                      // gaps above 2 ms are no train
}

TEST_CASE("HyStart: round trips that are longer by an eighth end slow start, from the ninth sample on") {
  const auto ends_with = [](double longer_s, double window_segments) {
    HyStart hystart;
    Ack ack;
    ack.least_s = kRoundTrip_s;
    ack.round_trip_s = kRoundTrip_s + longer_s;
    ack.sent = 1e9;
    for (int i = 0; i < 12; ++i) {
      ack.now_s = 1 + 0.003 * i;
      ack.accounted = 1 + i;
      if (hystart.found(ack, window_segments * kSegment_bytes, 1e8)) return i + 1;
    }
    return 0;
  };
  CHECK(ends_with(0.013, 100) == 9);  // an eighth of 100 ms is 12.5 ms
  CHECK(ends_with(0.012, 100) == 0);
  CHECK(ends_with(0.013, 15) == 0);  // below 16 segments it does not look
}

TEST_CASE("BBR: finds the rate of the path, paces around it, and has two of its pipes in flight") {
  constexpr double kRate_bytes_per_s = 1e7;
  const auto bbr = make_bbr(10 * kSegment_bytes, kRoundTrip_s, 0, [] { return 0.5; });
  CHECK(bbr->paces());
  Sender sender{*bbr};
  for (int i = 0; i < 30; ++i) sender.round_trip(kRate_bytes_per_s);
  // Its pace cycles between 1.25 and 0.75 of the rate.
  for (int i = 0; i < 32; ++i) {
    sender.round_trip(kRate_bytes_per_s);
    const double share = bbr->pace_bytes_per_s(kRoundTrip_s) / kRate_bytes_per_s;
    CHECK(share > 0.7);
    CHECK(share < 1.3);
  }
  CHECK(bbr->window_bytes() == doctest::Approx(2 * kRate_bytes_per_s * kRoundTrip_s).epsilon(0.1));
}

TEST_CASE("BBR: in the first round trip of a recovery it sends what arrives, and then has its window back") {
  constexpr double kRate_bytes_per_s = 1e7;
  const auto bbr = make_bbr(10 * kSegment_bytes, kRoundTrip_s, 0, [] { return 0.5; });
  Sender sender{*bbr};
  for (int i = 0; i < 30; ++i) sender.round_trip(kRate_bytes_per_s);
  const double before = bbr->window_bytes();
  Ack ack;
  ack.now_s = sender.now_s;
  ack.acknowledged = sender.acknowledged;
  ack.accounted = sender.acknowledged + before / 2;
  ack.sent = sender.acknowledged + before;
  ack.bytes = 2 * kSegment_bytes;
  ack.lost = before / 2;
  ack.in_recovery = true;
  ack.round_trip_s = ack.smoothed_s = ack.least_s = kRoundTrip_s;
  bbr->lost(ack);
  bbr->acknowledged(ack);
  CHECK(bbr->window_bytes() == doctest::Approx(before / 2 + ack.bytes));
  ack.in_recovery = false;
  ack.lost = 0;
  bbr->recovered();
  bbr->acknowledged(ack);
  CHECK(bbr->window_bytes() >= 0.99 * before);
}

TEST_CASE(
    "BBR: it looks for the round trip again 10 s after it was found, at first when the connection was "
    "opened") {
  const auto looks_at_s = [](double opened_s) {
    const auto bbr = make_bbr(10 * kSegment_bytes, kRoundTrip_s, opened_s, [] { return 0.5; });
    Sender sender{*bbr};
    while (sender.now_s < 20) {
      sender.round_trip(1e7);
      if (sender.now_s > 2 && bbr->window_bytes() <= 4 * kSegment_bytes) return sender.now_s;
    }
    return 0.0;
  };
  CHECK(looks_at_s(0) == doctest::Approx(10).epsilon(0.05));
  CHECK(looks_at_s(-4) == doctest::Approx(6).epsilon(0.05));
}
