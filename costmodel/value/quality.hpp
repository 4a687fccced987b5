// Model quality of a training run, from measured tables and a scaling law, each within its range of validity.
// Outside the range the answer is "unknown", with the reason: a planner that extrapolated would always
// recommend the largest K and the smallest O_e.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Coefficients of one row of the scaling law's table.
struct LossLaw {
  double a = 0, alpha = 0;
};
/// Charles et al. 2025 (arXiv 2503.09799v1), Table 7. `replicas` = 0 is data-parallel training; otherwise 1,
/// 2, 4 or 8.
LossLaw diloco_loss_law(int replicas);
/// Best global batch for N parameters, in sequences of 2048 tokens: the power law of Table 9 of the same
/// paper. The table's unit is taken to be sequences, since in tokens the law would give less than one
/// sequence.
double diloco_best_batch(int replicas, double parameters);
/// The loss A · N^α in nats per token.
double loss_of(const LossLaw& law, double parameters);
/// The joint fit of the same paper, Table 10: L = 19.226 · N^−0.0985 · M^0.0116.
double diloco_joint_loss(double parameters, double replicas);
/// Loss with M replicas above that of data-parallel training, by the laws, in points of 1 %. The laws hold
/// within their range alone: each is a fit of its own, and their ratio is off by more than the losses differ
/// beyond it.
double points_by_law(int replicas, double parameters);

/// Sets report.quality if the scenario has a quality model.
void add_quality(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
