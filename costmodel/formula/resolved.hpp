// What a scenario means for the closed form: numbers, resolved once, in stages of which each reads only the
// scenario and the stages before it. A sweep that changes one key resolves from the first stage that reads
// it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/compute/own_pace.hpp"
#include "costmodel/compute/site_step.hpp"
#include "costmodel/counts/counts.hpp"
#include "costmodel/formula/approximations.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

/// The stages in their order.
enum class Resolving {
  counts,  // parameters, FLOPs, memory and the parts of the batch
  plan,    // the summary of the traffic plan: what is sent in a mean round, and what hides it
  links,   // the links between the sites, in the order of rings that suits the plan
  times,   // steps of the sites, and the mean round
  values,  // money and energy
};

struct ResolvedLinks {
  LinkSets sets;
  FormulaLimits limits;
};

struct SiteSeconds {
  StepSeconds few, many;  // a step with SiteCounts::few and ::many sequences
  StepSeconds mean;       // of the sites that this one stands for
  double outer_step_s = 0;
  double round_compute_s = 0;  // in the mean round, mean of these sites
};

struct ResolvedTimes {
  std::vector<SiteSeconds> sites;  // as in Counts
  std::size_t slowest =
      0;  // index of the site that computes longest in a round: steps, and what follows them
  RoundTimes round;
  [[nodiscard]] const StepSeconds& slowest_step() const { return sites[slowest].many; }
};

struct ResolvedValues {
  double cost_total = 0, energy_kwh = 0;  // NaN without prices, or without power
};

struct Resolved {
  Counts counts;
  PlanSummary plan;
  ResolvedLinks links;
  ResolvedTimes times;
  std::optional<OwnPaces> own_pace;  // if no worker waits for another one: see own_pace_times.hpp
  ResolvedValues values;

  [[nodiscard]] double wall_clock_s() const { return plan.rounds * times.round.duration_s; }
  /// What updates_after_transfers_s() returns.
  [[nodiscard]] double updates_s() const;
};

/// Throws InputError if a profile has no step of the scenario's micro-batch.
Resolved resolve(const Scenario& scenario);
/// Resolves again from stage `first`, after a change of keys that no earlier stage reads.
void resolve(const Scenario& scenario, Resolving first, Resolved& resolved);

/// Whether the closed form only approximates the scenario: approximations() has a sentence.
bool approximates(const Resolved& resolved);
/// Whether the closed form represents the sites of the scenario. Links must not change either, and no paths
/// may share a backbone.
bool represents_sites(const Scenario& scenario, const Resolved& resolved);
/// What the closed form does not model, and what the formula of the scenario's method only approximates.
/// None: the closed form is exact for equal sites, and its wall clock was within 2 % of the simulation for
/// drawn links that differ. If 1 < O_e < M, it is too long by at most the latencies of the experts, because
/// all-reduces of different lengths run at the same time.
std::vector<std::string> approximations(const Scenario& scenario, const Resolved& resolved);

}  // namespace fomoe::costmodel
