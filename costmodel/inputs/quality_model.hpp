// Measured tables of model quality, a scaling law and published runs, each with its range of validity.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "costmodel/inputs/wire_format.hpp"

namespace fomoe::costmodel {

/// One measured run. `strategy` is a method's name; fomoe also uses "diloco" rows, because its outer step is
/// DiLoCo's.
struct QualityRow {
  std::string strategy;
  std::int64_t local_steps = 0;
  std::string placement;  // "fixed", "random" or "affinity"; meaningless if every site holds every expert
  int sites = 0;
  int expert_overlap = 0;
  double perplexity = 0;
  double plus_minus = -1;  // uncertainty of the perplexity; negative: not given
  std::string note;
};

/// Measured runs at the same workload. By default values are not interpolated: the scatter between
/// neighbouring rows is as large as their difference.
struct QualityTable {
  std::string source;
  /// Values that a scenario must match within 1 %; the names are those of quality_scope_names().
  std::vector<std::pair<std::string, double>> scope;
  std::vector<QualityRow> rows;
  bool interpolate = false;  // in log K and O_e, see quality_interpolation.hpp
  /// Format of the runs' payloads; empty: at least 16 bits.
  std::optional<ElementType> payload_dtype = {};
};

/// Names of the scenario values that can limit a table: "parameters", "vocabulary", "sequence_length",
/// "experts", "active_experts", "tokens", "global_batch_sequences", "reshuffle_rounds".
const std::vector<std::string>& quality_scope_names();

/// Scaling law L = A · N^α for the loss L of a model of N parameters trained on 20 N tokens with the best
/// batch. A and α are fitted for data-parallel training and for DiLoCo with each number of replicas.
struct DilocoScalingLaw {};

/// An assumed factor on time and cost up to the loss of data-parallel training, for every method that does
/// not synchronise in each step.
struct AssumedPenalty {
  double equal_loss_factor = 1;
};

class PublishedLosses;  // defined in costmodel/published/losses.hpp

/// What published runs say of the loss against that of tuned data-parallel training.
struct PublishedQuality {
  std::shared_ptr<const PublishedLosses> losses;
  bool refuse_mixtures = false;  // otherwise rows of dense models answer for mixtures of experts, with a note
};

using QualityModel = std::variant<QualityTable, DilocoScalingLaw, AssumedPenalty, PublishedQuality>;

}  // namespace fomoe::costmodel
