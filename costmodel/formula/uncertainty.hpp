// Uncertainty of the wall clock from the known spread of the inputs. It differs from sensitivity.hpp, which
// changes every input by ±10 %, and from RunReport::wall_clock_interval_s, which covers the choice of
// executed rounds.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

struct Uncertainty {
  std::string input;         // "measured step time"
  std::string unit;          // unit of low and high: "s", "Bps", …; "" for plain numbers
  double low = 0, high = 0;  // 95 % interval of the input
  double wall_clock_low_s = 0, wall_clock_high_s = 0;
  std::string executor;         // executor of the wall clocks: "closed-form", "simulated"
  std::string how;              // origin of the interval
  bool of_computation = false;  // whether sites compute longer, rather than wait
};

/// Uncertainties for which the scenario itself states a spread, in the order below. W(s) is the closed form's
/// wall clock of scenario s; `answer_s` is shifted by the change of W.
///
/// measured step time: n samples of a profile have mean m and standard deviation s. The mean is known to
/// m ± t·s ÷ √n, where t is the 97.5 % point of Student's t distribution with n − 1 degrees of freedom. The
/// answer uses the samples' median, or their mean if steps are drawn from the samples (compute.draw_samples).
/// This uncertainty is skipped with fewer than two samples.
///
/// step time variation: A round lasts as long as the steps of its slowest site. Of drawn rounds, the standard
/// deviation of this time is d, in steps of the mean step, and N rounds take N · mean · (1 ± 1.96 d ÷ √N).
/// An answer that was not simulated does not wait for the slowest site; its interval reaches up to that.
/// Stragglers of rounds or of the run are drawn D times: a whole number k of the draws has one at some site,
/// the factor is 1 + k(f − 1) ÷ D, with the 95 % interval of a binomial distribution for k, and it applies to
/// W(s), since a simulated answer has one draw of k.
///
/// network_model.jitter: J is the largest latency that jitter adds. A run waits for
/// N = (W(latencies + J) − W) ÷ J latencies one after another, each with a uniform draw from 0 to J. The mean
/// of these draws is J ÷ 2 ± 1.96 J ÷ √(12 N), within 0 and J. Steps that wait for the slowest of several
/// flows vary less, so this interval is an upper bound. An answer that was not simulated is without jitter,
/// and lies below the interval, which then reaches up to the mean of the largest of M draws, J·M ÷ (M + 1).
///
/// queues of uplinks: data of a site may wait for up to Site::queue_s behind other data of the site. The high
/// end is the answer with latencies that are longer by this time. Losses and late acknowledgements are left
/// out.
std::vector<Uncertainty> known_spread(const Scenario& scenario, double answer_s, bool simulated = true);

/// Combines independent uncertainties:
///   answer − √Σ (answer − low)², but at least 0; answer + √Σ (high − answer)²
/// Each sum contains the deviations on its own side of the answer.
Interval95 in_quadrature(const std::vector<Uncertainty>& list, double answer_s);

}  // namespace fomoe::costmodel
