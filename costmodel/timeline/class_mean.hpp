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
  double transferring_s = 0;                 // seconds per round with flows in flight, mean over sites
  std::vector<double> compute_s, exposed_s;  // seconds per round, by site
  PairBytes sent;                            // bytes per round, by node
};

/// Durations of consecutive rounds from their ends.
std::vector<double> round_durations_s(const std::vector<double>& round_end_s);

/// `timeline` holds the executed rounds of the class. For overlapping rounds these are at least five, or all.
ClassMean class_mean(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                     const Timeline& timeline);

}  // namespace fomoe::costmodel
