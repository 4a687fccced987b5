#include "costmodel/formula/links/shared_port.hpp"

#include <algorithm>
#include <numeric>

#include "platforms/paths.hpp"

namespace fomoe::costmodel {

// Each step of the loop ends a flow or starts one, whatever rounding does: a flow whose own end is the next
// event has ended then, even if that end is not later than now in floating point.
std::vector<double> ends_s(const std::vector<PortFlow>& flows, double port_bytes_per_s) {
  std::vector<double> left, ends, rate(flows.size(), 0), own_end_s(flows.size(), 0);
  for (const PortFlow& flow : flows) {
    left.push_back(flow.bytes);
    ends.push_back(flow.start_s);
  }
  std::vector<std::size_t> by_rate(flows.size());
  std::iota(by_rate.begin(), by_rate.end(), 0);
  std::sort(by_rate.begin(), by_rate.end(), [&](std::size_t a, std::size_t b) {
    return flows[a].alone_bytes_per_s < flows[b].alone_bytes_per_s;
  });
  for (double now_s = 0;;) {
    const auto running = [&](std::size_t k) { return left[k] > 0 && flows[k].start_s <= now_s; };
    auto sharing = std::count_if(by_rate.begin(), by_rate.end(), running);
    double free_bytes_per_s = port_bytes_per_s, next_s = platforms::kUnlimited;
    for (const std::size_t k : by_rate) {
      if (running(k)) {
        rate[k] = std::min(flows[k].alone_bytes_per_s, free_bytes_per_s / static_cast<double>(sharing--));
        free_bytes_per_s -= rate[k];
        own_end_s[k] = now_s + left[k] / rate[k];
        next_s = std::min(next_s, own_end_s[k]);
      } else if (left[k] > 0) {
        next_s = std::min(next_s, flows[k].start_s);
      }
    }
    if (next_s == platforms::kUnlimited) return ends;
    for (const std::size_t k : by_rate) {
      if (!running(k)) continue;
      left[k] -= rate[k] * (next_s - now_s);
      // flows that end together differ by rounding
      if (own_end_s[k] > next_s && left[k] > 1e-9 * flows[k].bytes) continue;
      left[k] = 0;
      ends[k] = next_s;
    }
    now_s = next_s;
  }
}

namespace {

struct UnderWay {
  const Chain& chain;
  double steps_left, bytes_left;
  double arrives_s = -1;  // what the step has sent; negative: it still sends

  explicit UnderWay(const Chain& of) : chain(of), steps_left(of.steps), bytes_left(of.bytes) {}
  [[nodiscard]] bool ended() const { return steps_left <= 0; }
  [[nodiscard]] bool sends() const { return !ended() && arrives_s < 0; }
  /// When all is over from `now_s` on, with a port of its own.
  [[nodiscard]] double end_alone_s(double now_s, double bytes_per_s) const {
    const double this_s = sends() ? now_s + bytes_left / bytes_per_s + chain.wait_s : arrives_s;
    return this_s + (steps_left - 1) * (chain.bytes / bytes_per_s + chain.wait_s);
  }
};

}  // namespace

double both_end_s(const Chain& a, const Chain& b, double port_bytes_per_s) {
  UnderWay chains[] = {UnderWay(a), UnderWay(b)};
  double now_s = 0;
  // Each turn of the loop ends what a step sends, or lets it arrive.
  while (!chains[0].ended() && !chains[1].ended()) {
    double flows = 0, next_s = platforms::kUnlimited;
    for (const UnderWay& one : chains) flows += one.sends() ? one.chain.flows : 0;
    const auto rate = [&](const UnderWay& one) { return port_bytes_per_s * one.chain.flows / flows; };
    double ends_s[2] = {};
    for (int i = 0; i < 2; ++i) {
      const UnderWay& one = chains[i];
      ends_s[i] = one.sends() ? now_s + one.bytes_left / rate(one) : one.arrives_s;
      next_s = std::min(next_s, ends_s[i]);
    }
    if (!(next_s < platforms::kUnlimited)) return next_s;
    for (int i = 0; i < 2; ++i) {
      UnderWay& one = chains[i];
      const bool ends = ends_s[i] <= next_s;
      if (one.sends()) {
        one.bytes_left -= rate(one) * (next_s - now_s);
        if (ends || one.bytes_left <= 1e-9 * one.chain.bytes) one.arrives_s = next_s + one.chain.wait_s;
      } else if (ends) {
        one.arrives_s = -1;
        one.bytes_left = one.chain.bytes;
        --one.steps_left;
      }
    }
    now_s = next_s;
  }
  for (const UnderWay& one : chains)
    if (!one.ended()) return one.end_alone_s(now_s, port_bytes_per_s);
  return now_s;
}

double in_turn_s(Turns first, Turns second) {
  double free_s = 0, ready_s[2] = {0, 0};
  Turns* const turns[2] = {&first, &second};
  while (first.messages > 0 || second.messages > 0) {
    const bool other = first.messages <= 0 || (second.messages > 0 && ready_s[1] < ready_s[0]);
    Turns& next = *turns[other];
    free_s = std::max(free_s, ready_s[other]) + next.send_s;
    ready_s[other] = free_s + next.wait_s;
    --next.messages;
  }
  return std::max(ready_s[0], ready_s[1]);
}

}  // namespace fomoe::costmodel
