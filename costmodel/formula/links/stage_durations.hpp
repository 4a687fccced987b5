// How long the stages of a plan take in the mean round.
#pragma once
#include <vector>

#include "costmodel/formula/links/links.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct StageDuration {
  double seconds = 0;    // all of it
  double windows_s = 0;  // part of it in which windows of connections are too small for their links
};

/// The duration of each stage, mean over the run. Between ideal hosts it is stage_s(). With `links.windows`,
/// each message begins with the window that its connection has left (ConnectionWindow): those of one stage
/// follow each other, and between rounds the sites compute for `compute_s` seconds. The first rounds differ,
/// and the later ones are alike.
std::vector<StageDuration> stage_durations(const PlanSummary& summary, const LinkSets& links,
                                           double compute_s);

}  // namespace fomoe::costmodel
