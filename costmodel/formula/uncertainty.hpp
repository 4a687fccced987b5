// How far the wall clock moves where inputs are known to spread: not by ±10 % of everything
// (sensitivity.hpp), and not by which rounds were executed (RunReport::wall_clock_interval_s), but by what is
// known of each input.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

struct Uncertainty {
  std::string input;         // "measured step time"
  std::string unit;          // of low and high: "s", "Bps", …; "" of plain numbers
  double low = 0, high = 0;  // 95 % interval of the input
  double wall_clock_low_s = 0, wall_clock_high_s = 0;
  std::string executor;  // that answered: "closed-form", "simulated"
  std::string how;       // where the interval comes from
};

/// What the scenario itself says of spread, in this order where it has it. W(s): the closed form's wall clock
/// of scenario s; `answer_s` moves by as much as W does.
///
/// measured step time: n samples of a profile have mean m and standard deviation s, and the mean is known to
///   m ± t·s ÷ √n, Student's t of n − 1 degrees of freedom. The answer uses their median; steps drawn from
///   the samples (compute.draw_samples) have their mean. With fewer than two samples nothing is known.
/// steps that vary: N steps of a site, each drawn by itself with coefficient of variation c, take N times
/// their
///   mean · (1 ± 1.96 c ÷ √N) together. Sites that wait for the slowest of them vary less: an upper bound.
///   1 + c² = (1 + c_draw²)(1 + p(f² − 1)) ÷ (1 + p(f − 1))², with stragglers of share p and factor f.
/// network_model.jitter: N = (W(latencies + J) − W) ÷ J latencies are waited for, one after another, each
/// with
///   a uniform draw from 0 to J: J ÷ 2 ± 1.96 J ÷ √(12 N) in the mean, within 0 and J. Steps that wait for
///   the slowest of several flows vary less: an upper bound.
std::vector<Uncertainty> known_spread(const Scenario& scenario, double answer_s);

/// All together, where they do not depend on each other:
///   answer − √Σ (answer − low)², answer + √Σ (high − answer)²
/// of what each has on that side of the answer.
Interval95 in_quadrature(const std::vector<Uncertainty>& list, double answer_s);

}  // namespace fomoe::costmodel
