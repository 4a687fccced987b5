#include "platforms/wan/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fomoe::platforms::wan {

namespace {

double megabits(double bytes_per_s) { return bytes_per_s * 8 / 1e6; }

std::string percent_off(double asked, double measured) {
  return fmt::format("{:+.1f} %", 100 * (measured / asked - 1));
}

}  // namespace

bool rate_misses(double asked, double measured) { return std::abs(measured - asked) > kTolerance * asked; }

bool round_trip_misses(double asked_s, double measured_s) {
  return std::abs(measured_s - asked_s) > std::max(kTolerance * asked_s, kRoundTripTolerance_s);
}

std::string too_much_for_relay(const Check& check) {
  if (check.aggregate_bytes_per_s <= kRelayShare * check.relay_bytes_per_s) return {};
  return fmt::format(
      "the platform requires {:.0f} Mbit/s in total; the relay carries at most {:.0f} Mbit/s on this "
      "machine, and at most half of that may be used; use lower rates, fewer sites or a larger --mtu",
      megabits(check.aggregate_bytes_per_s), megabits(check.relay_bytes_per_s));
}

std::vector<std::string> misses(const Check& check, const Layout& layout) {
  std::vector<std::string> lines;
  for (const PairCheck& pair : check.pairs) {
    const std::string from = layout.sites[static_cast<std::size_t>(pair.from)].name,
                      to = layout.sites[static_cast<std::size_t>(pair.to)].name;
    const auto look = [&](const char* how, double rate, double round_trip_s) {
      if (rate_misses(pair.asked_bytes_per_s, rate)) {
        lines.push_back(fmt::format(
            "{} to {}, {}: target {:.1f} Mbit/s, measured {:.1f} Mbit/s ({}; allowed: 5 %)", from, to, how,
            megabits(pair.asked_bytes_per_s), megabits(rate), percent_off(pair.asked_bytes_per_s, rate)));
      }
      if (round_trip_misses(pair.asked_round_trip_s, round_trip_s)) {
        lines.push_back(fmt::format(
            "{} to {}, {}: target round trip {:.2f} ms, measured {:.2f} ms ({}; allowed: 5 % or {} ms)", from,
            to, how, pair.asked_round_trip_s * 1e3, round_trip_s * 1e3,
            percent_off(pair.asked_round_trip_s, round_trip_s), kRoundTripTolerance_s * 1e3));
      }
    };
    look("one pair at a time", pair.bytes_per_s.alone, pair.round_trip_s.alone);
    look("all pairs together", pair.bytes_per_s.together, pair.round_trip_s.together);
  }
  return lines;
}

std::string check_text(const Check& check, const Layout& layout) {
  std::string text =
      fmt::format("relay: at most {:.0f} Mbit/s; the platform requires {:.0f} Mbit/s in total\n",
                  megabits(check.relay_bytes_per_s), megabits(check.aggregate_bytes_per_s));
  if (check.pairs.empty()) return text;
  std::size_t width = 4;
  const auto name_of = [&](const PairCheck& pair) {
    return layout.sites[static_cast<std::size_t>(pair.from)].name + " > " +
           layout.sites[static_cast<std::size_t>(pair.to)].name;
  };
  for (const PairCheck& pair : check.pairs) width = std::max(width, name_of(pair).size());
  text += fmt::format("{:<{}}  {:>26}  {:>26}\n", "", width, "Mbit/s with IP, TCP headers", "round trip, ms");
  text += fmt::format("{:<{}}  {:>8} {:>8} {:>9}  {:>8} {:>8} {:>9}\n", "pair", width, "target", "alone",
                      "together", "target", "alone", "together");
  for (const PairCheck& pair : check.pairs) {
    text += fmt::format("{:<{}}  {:>8.1f} {:>8.1f} {:>9.1f}  {:>8.2f} {:>8.2f} {:>9.2f}\n", name_of(pair),
                        width, megabits(pair.asked_bytes_per_s), megabits(pair.bytes_per_s.alone),
                        megabits(pair.bytes_per_s.together), pair.asked_round_trip_s * 1e3,
                        pair.round_trip_s.alone * 1e3, pair.round_trip_s.together * 1e3);
  }
  return text;
}

double payload_per_segment(int mtu, bool timestamps) {
  return mtu - (timestamps ? 52 : 40);  // 20 bytes IP, 20 bytes TCP, 12 bytes for the timestamp option
}

}  // namespace fomoe::platforms::wan
