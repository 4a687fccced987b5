// What a training run is worth: measured tables and a scaling law, each with the range in which it may be
// asked. Outside of it the answer is "unknown", with the reason: a planner that guessed there would always
// answer "largest K, smallest O_e".
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fomoe::costmodel {

struct Scenario;
struct RunReport;

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

/// Coefficients of one row of the law's table.
struct LossLaw {
  double a = 0, alpha = 0;
};
/// Charles et al. 2025 (arXiv 2503.09799v1), Table 7. `replicas` 0: data-parallel; else 1, 2, 4 or 8.
LossLaw diloco_loss_law(int replicas);
/// A · N^α, nats per token.
double loss_of(const LossLaw& law, double parameters);
/// The joint fit of the same paper, Table 10: L = 19.226 · N^−0.0985 · M^0.0116.
double diloco_joint_loss(double parameters, double replicas);
/// Wall clock of the run that reaches the loss of data-parallel training, ÷ that of this one: a model x times
/// as large on x times as many tokens takes x² of it, where A_M · (xN)^α_M = A_DP · N^α_DP.
double equal_loss_factor(int replicas, double parameters);

/// Fills in report.quality where the scenario has a quality model.
void add_quality(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
