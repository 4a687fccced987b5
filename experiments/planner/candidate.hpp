// One combination of settings that `fomoe plan` considers, and the criteria that rank candidates.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace fomoe::planner {

enum class Measure { time, cost, energy };

/// Time in seconds, cost in the scenario's currency, energy in kWh. NaN means unknown.
struct Amounts {
  double time_s = 0, cost = 0, energy_kwh = 0;
  double ports_per_month = 0;  // of all sites, in the cost
  [[nodiscard]] double of(Measure measure) const {
    return measure == Measure::time ? time_s : measure == Measure::cost ? cost : energy_kwh;
  }
};

/// The limits that a candidate must keep. A member without a value sets no limit.
struct Limits {
  std::optional<double> time_s, cost, energy_kwh;
  std::optional<double> perplexity;
  std::optional<double> gpu_memory_bytes;  // bytes of one GPU, from --within
};

/// A run with fewer rounds counts as a risk of its own: few published runs have so few, and in those of
/// experiments/proxies, 6 rounds raised the loss by 20 to 27 % over that of data-parallel training (K = 128).
inline constexpr double kFewRounds = 20;

/// The settings that may reduce the quality of the trained model, independent of any quality model. A
/// candidate certainly trains a model of at least the same quality as another candidate only if no coordinate
/// of the first is worse.
struct QualityCoordinates {
  double local_steps = 1;        // K, optimiser steps between two synchronisations: fewer are safer
  double overlap_share = 1;      // share of the sites that hold each expert (O_e/M): larger is safer
  double bytes_per_element = 2;  // bytes per element on the wire: more are safer
  double overlap_steps = 0;      // steps by which a synchronisation is delayed: fewer are safer
  bool averages_everything = true;
  bool few_rounds = false;     // fewer than kFewRounds synchronisations in the whole run
  bool fewer_experts = false;  // sites hold fewer experts of a layer than a token uses, and compute less
  bool operator==(const QualityCoordinates&) const = default;
};

inline bool no_riskier(const QualityCoordinates& a, const QualityCoordinates& b) {
  return a.local_steps <= b.local_steps && a.overlap_share >= b.overlap_share &&
         a.bytes_per_element >= b.bytes_per_element && a.overlap_steps <= b.overlap_steps &&
         a.averages_everything >= b.averages_everything && a.few_rounds <= b.few_rounds &&
         a.fewer_experts <= b.fewer_experts;
}

/// Whether a candidate's time is no measure for others where nothing says what its loss is: hardly anything
/// was averaged, or tokens used fewer experts.
inline bool trains_less(const QualityCoordinates& quality) {
  return quality.few_rounds || quality.fewer_experts;
}

/// How many of the following hold, about which hardly any published result says what they cost: parts of the
/// model are not averaged, experts are at a part of the sites, fewer than 4 bits on the wire, and updates
/// that are delayed by a whole round.
int unproven(const QualityCoordinates& quality);

/// Whether a plan that must name one candidate prefers the risk of `a`. First come few rounds and fewer
/// experts, then the number of unproven settings, then each coordinate. If no_riskier(a, b), then not
/// less_risky(b, a).
bool less_risky(const QualityCoordinates& a, const QualityCoordinates& b);

struct Candidate {
  std::uint32_t family = 0;
  std::uint64_t row = 0;  // number of the row in the family's grid
  Amounts amounts;        // computed by the closed form
  QualityCoordinates quality;
  double sites = 1;
  double perplexity = 0;  // NaN: unknown
  /// The value that `fomoe plan` minimises. If a scaling law applies, this is the amount (time, cost or
  /// energy) that the candidate needs to reach the loss of data-parallel training. Otherwise this is the
  /// amount that the candidate needs for its whole run.
  double value = 0;
  double other_amount = 0;  // the cost if time is minimised, otherwise the time; 0 if unknown
};

}  // namespace fomoe::planner
