// Electrical energy of a site's GPUs.
#pragma once

namespace fomoe::costmodel {

struct GpuPower {
  double board_w = 0;     // of one GPU that computes
  double idle_share = 0;  // of board_w, drawn by a GPU that waits
  double pue = 1;  // power usage effectiveness: what the building draws ÷ what the GPUs draw, at least 1
};

/// E = gpus · PUE · P_board · [busy + idle_share · (duration − busy)]
/// In terms of utilisation u = busy ÷ duration, board power is P_board · (idle_share + (1 − idle_share) · u).
template <class V>
V energy_joules(const GpuPower& power, const V& gpus, const V& duration_s, const V& busy_s) {
  return gpus * (power.pue * power.board_w) * (busy_s + power.idle_share * (duration_s - busy_s));
}

inline constexpr double kJoulesPerKwh = 3.6e6;

}  // namespace fomoe::costmodel
