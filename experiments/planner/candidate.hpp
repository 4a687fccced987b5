// One combination that `fomoe plan` looks at, and what decides between two of them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace fomoe::planner {

enum class Measure { time, cost, energy };

/// NaN: nobody knows.
struct Amounts {
  double time_s = 0, cost = 0, energy_kwh = 0;
  [[nodiscard]] double of(Measure measure) const {
    return measure == Measure::time ? time_s : measure == Measure::cost ? cost : energy_kwh;
  }
};

/// What a candidate must keep; none: no limit.
struct Limits {
  std::optional<double> time_s, cost, energy_kwh;
  std::optional<double> perplexity;
  std::optional<double> gpu_memory_bytes;  // of one GPU, by the scenario or by --within
};

/// What a run may lose in quality by, beside what a quality model says. A candidate is better than another
/// for certain only where it is no worse in each of these.
struct QualityCoordinates {
  double local_steps = 1;        // K: fewer are safer
  double overlap_share = 1;      // O_e/M: more is safer
  double bytes_per_element = 2;  // on the wire: more is safer
  double overlap_steps = 0;      // steps that a synchronisation comes late: fewer are safer
  bool averages_everything = true;
  bool operator==(const QualityCoordinates&) const = default;
};

inline bool no_riskier(const QualityCoordinates& a, const QualityCoordinates& b) {
  return a.local_steps <= b.local_steps && a.overlap_share >= b.overlap_share &&
         a.bytes_per_element >= b.bytes_per_element && a.overlap_steps <= b.overlap_steps &&
         a.averages_everything >= b.averages_everything;
}

struct Candidate {
  std::uint32_t family = 0;
  std::uint64_t row = 0;  // in the family's grid
  Amounts amounts;        // by the closed form
  QualityCoordinates quality;
  double sites = 1;
  double perplexity = 0;  // NaN: unknown
  /// What is minimised: the measure, to the loss of data-parallel training where a scaling law knows it.
  double value = 0;
  double other_amount = 0;  // of cost and time the one that is not minimised; 0: unknown
};

}  // namespace fomoe::planner
