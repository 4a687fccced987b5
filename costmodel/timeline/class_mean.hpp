// From a timeline of some rounds of a class to the mean round of all of them.
#pragma once
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// The mean round of one class, and how long all its rounds take together.
struct ClassMean {
  double total_s = 0;
  double communication_s = 0;
  double variance_s2 = 0;                    // of total_s, where rounds are a sample
  double transferring_s = 0;                 // mean over sites
  std::vector<double> compute_s, exposed_s;  // by site
  PairBytes sent;                            // by node, per round
};

/// From the ends of rounds that follow each other.
std::vector<double> round_durations_s(const std::vector<double>& round_end_s);

/// `timeline`: the class's executed rounds, of overlapping ones at least five, or all.
ClassMean class_mean(const Plan& plan, std::size_t sites, const RoundClass& rounds, const Timeline& timeline);

}  // namespace fomoe::costmodel
