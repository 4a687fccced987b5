// The mean round of a class of rounds, computed from a timeline of some of its rounds.
#pragma once
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// The mean round of one class, and the total duration of all its rounds.
struct ClassMean {
  double total_s = 0;
  double communication_s = 0;
  double variance_s2 = 0;                    // variance of total_s if the executed rounds are a sample
  std::size_t sampled_rounds = 0;            // rounds from which variance_s2 is estimated
  double transferring_s = 0;                 // seconds per round with flows in flight, mean over sites
  std::vector<double> compute_s, exposed_s;  // seconds per round, by site
  PairBytes sent;                            // bytes per round, by node
};

/// Executed rounds, some of which were measured and represent rounds of the run.
struct RoundSample {
  Timeline timeline;
  std::size_t first = 0, last = 0;  // positions [first, last) were measured
  double count = 0;                 // rounds of the run that the measured rounds represent
  bool overlapping = false;         // operations of a round extend into the next one
  /// Consecutive rounds after which their durations repeat, except for what is random. The variance is that
  /// of the sums over as many rounds.
  std::size_t batch = 1;
};

/// Durations of consecutive rounds from their ends.
std::vector<double> round_durations_s(const std::vector<double>& round_end_s);

/// `timeline` holds the executed rounds of the class. For overlapping rounds these are at least five, or all.
/// If rounds are missing, the first executed round represents only itself, because its network is new; it
/// counts if it is the first round of the run.
ClassMean class_mean(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                     const Timeline& timeline);

/// The mean of the measured rounds, and the total duration of the rounds that they represent. The variance is
/// that of rounds that differ at random; it is 0 for fewer than two measured rounds.
ClassMean sample_mean(const Plan& plan, std::size_t sites, const RoundSample& sample);

}  // namespace fomoe::costmodel
