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

}  // namespace fomoe::costmodel
