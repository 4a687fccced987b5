// Measured tables of model quality and a scaling law, each with the range in which it may be asked.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fomoe::costmodel {

/// One measured run. `strategy` is a method's name, "diloco" also for fomoe, whose outer step is DiLoCo's.
struct QualityRow {
  std::string strategy;
  std::int64_t local_steps = 0;
  std::string placement;  // "fixed" or "random"; without meaning where every site holds every expert
  int sites = 0;
  int expert_overlap = 0;
  double perplexity = 0;
  double plus_minus = -1;  // negative: not given
  std::string note;
};

/// Measured runs at the same workload. Nothing is interpolated: the scatter between neighbours is as large as
/// their difference.
struct QualityTable {
  std::string source;
  /// What a scenario must have, within 1 %: names of quality_scope_names().
  std::vector<std::pair<std::string, double>> scope;
  std::vector<QualityRow> rows;
};

/// "parameters", "vocabulary", "sequence_length", "experts", "active_experts", "tokens",
/// "global_batch_sequences"
const std::vector<std::string>& quality_scope_names();

/// L = A · N^α of N parameters trained on 20 N tokens, for data-parallel training and for DiLoCo with each M.
struct DilocoScalingLaw {};

using QualityModel = std::variant<QualityTable, DilocoScalingLaw>;

}  // namespace fomoe::costmodel
