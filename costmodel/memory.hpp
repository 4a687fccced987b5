// Bytes that training keeps resident, by class.
#pragma once
#include <cstdint>

#include "costmodel/lanes.hpp"
#include "costmodel/scenario.hpp"

namespace fomoe::costmodel {

/// Mixed-precision AdamW: 2 + 4 + 8 + 4 = 18 B a parameter (FoMoE paper, "Memory Footprint"); outer state is
/// 4 B anchor + 4 B momentum. Activations are not included.
template <class V>
struct MemoryOf {
  V weights = constant<V>(0);         // 2 B
  V master_weights = constant<V>(0);  // 4 B
  V moments = constant<V>(0);         // 8 B
  V gradients = constant<V>(0);       // 4 B
  V outer_state = constant<V>(0);     // 8 B where the method keeps one
  [[nodiscard]] V total() const { return weights + master_weights + moments + gradients + outer_state; }
};
using MemoryBytes = MemoryOf<double>;

template <class V>
MemoryOf<V> resident_memory(const V& parameters, double outer_bytes_per_parameter) {
  MemoryOf<V> memory;
  memory.weights = 2.0 * parameters;
  memory.master_weights = 4.0 * parameters;
  memory.moments = 8.0 * parameters;
  memory.gradients = 4.0 * parameters;
  memory.outer_state = outer_bytes_per_parameter * parameters;
  return memory;
}

/// Of one site: all dense parameters and O_e/M of the experts (and, without skip-token, of the router).
MemoryBytes memory_per_site(const Scenario& scenario);
/// Parameters that one site holds.
std::int64_t parameters_per_site(const Scenario& scenario);

}  // namespace fomoe::costmodel
