// Electrical energy that the GPUs of a site consume.
#pragma once

namespace fomoe::costmodel {

struct GpuPower {
  double board_w = 0;     // power of one computing GPU, watts
  double idle_share = 0;  // power of a waiting GPU ÷ board_w
  double pue = 1;         // power usage effectiveness: power of the building ÷ power of its GPUs, ≥ 1
};

/// Energy in joules of a site whose GPUs compute for `busy_s` of `duration_s` seconds:
///   E = gpus · PUE · P_board · [busy + idle_share · (duration − busy)]
/// P_board is board_w. With the utilisation u = busy ÷ duration, the mean power of a board is
/// P_board · (idle_share + (1 − idle_share) · u).
inline double energy_joules(const GpuPower& power, double gpus, double duration_s, double busy_s) {
  return gpus * (power.pue * power.board_w) * (busy_s + power.idle_share * (duration_s - busy_s));
}

inline constexpr double kJoulesPerKwh = 3.6e6;

}  // namespace fomoe::costmodel
