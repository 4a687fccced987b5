#include "costmodel/plan/plan.hpp"

#include <algorithm>

namespace fomoe::costmodel {

std::int64_t Exchange::bytes() const {
  std::int64_t sum = 0;
  for (const Payload& payload : payloads) sum += payload.bytes();
  return sum;
}

platforms::Platform platform_of(const Plan& plan, platforms::Platform effective) {
  for (const PathRate& rate : plan.averaged_paths) {
    effective.change_path(rate.from, rate.to, [&](platforms::Path& path) {
      path.bandwidth_bytes_per_s = rate.bytes_per_s;
      path.shared = -1;
    });
    // These rates have the limits of the ports.
    constexpr double kNeverLimits = 1e18;
    effective.sites[static_cast<std::size_t>(rate.from)].uplink_bytes_per_s = kNeverLimits;
    effective.sites[static_cast<std::size_t>(rate.to)].downlink_bytes_per_s = kNeverLimits;
  }
  return effective;
}

std::int64_t steps_of_round(const Plan& plan, std::int64_t index) {
  std::int64_t full = 1;
  for (const RoundClass& kind : plan.classes) full = std::max(full, kind.steps);
  if (index + 1 < plan.rounds) return full;
  return std::clamp<std::int64_t>(plan.steps - full * (plan.rounds - 1), 1, full);
}

std::int64_t chunk_elements(std::int64_t elements, int chunks, int chunk) {
  return elements / chunks + (chunk < elements % chunks ? 1 : 0);
}

std::int64_t chunk_bytes(const Exchange& exchange, int chunks, int chunk) {
  std::int64_t sum = 0;
  for (const Payload& payload : exchange.payloads) {
    sum += payload.format.bytes(chunk_elements(payload.elements, chunks, chunk));
  }
  return sum;
}

}  // namespace fomoe::costmodel
