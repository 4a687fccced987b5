// Bytes that training keeps resident, by class.
#pragma once
#include <cstdint>

#include "costmodel/scenario.hpp"

namespace fomoe::costmodel {

/// Mixed-precision AdamW: 2 + 4 + 8 + 4 = 18 B a parameter (FoMoE paper, "Memory Footprint"); outer state is
/// 4 B anchor + 4 B momentum. Activations are not included.
struct MemoryBytes {
  double weights = 0;         // 2 B
  double master_weights = 0;  // 4 B
  double moments = 0;         // 8 B
  double gradients = 0;       // 4 B
  double outer_state = 0;     // 8 B where the method keeps one
  [[nodiscard]] double total() const { return weights + master_weights + moments + gradients + outer_state; }
};

/// fp32: the parameters before the round (anchor) and the outer momentum; Adam and Yogi have a second moment
/// too. Averaging keeps nothing.
double outer_bytes_per_parameter(OuterOptimizer optimizer);

/// Of one site: all dense parameters and O_e/M of the experts (and, without skip-token, of the router).
MemoryBytes memory_per_site(const Scenario& scenario);
/// Parameters that one site holds.
std::int64_t parameters_per_site(const Scenario& scenario);

}  // namespace fomoe::costmodel
