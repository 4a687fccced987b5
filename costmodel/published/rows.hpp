// The rows of experiments/data/published_quality.csv as plain data: published runs of local-update training.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fomoe::costmodel {

/// One published run. The page of the table explains its columns. A cell that is empty in the table is an
/// empty text or optional here, or 0 for `replicas` and `local_steps`.
struct PublishedRun {
  std::string id, paper, arxiv, method;
  std::string family;  // what the run can be compared with: "nesterov" is DiLoCo
  std::optional<double> parameters_active;
  std::string architecture;  // "dense" or "mixture"
  std::optional<double> tokens;
  std::int64_t replicas = 0, local_steps = 0;
  std::optional<double> steps, rounds;
  std::string outer_optimizer;
  std::optional<double> outer_learning_rate, wire_bits, density, overlap_steps;
  std::string batch_rule, data, same_data;
  std::string baseline_kind, baseline_tuned;
  std::string metric;
  std::optional<double> value, baseline_value;
  std::string outcome, place, hand, checked;

  /// Whether the run finished and was compared with its first-hand source. Only such rows are used.
  [[nodiscard]] bool usable() const;
  /// A second training of a run that the surface has, from an independent extrapolation of its
  /// hyperparameters.
  [[nodiscard]] bool independent() const;
  /// The loss of the run, or of its baseline, in nats per token; empty if the metric is no loss. Bits per
  /// byte become nats per byte: only ratios are used.
  [[nodiscard]] std::optional<double> nats() const;
  [[nodiscard]] std::optional<double> baseline_nats() const;
};

using PublishedRuns = std::vector<PublishedRun>;

/// A point is 1 % of the loss.
double points_above(double loss, double baseline);

/// Rows by rising distance |log2 N/N'| + |log2 M/M'| + |log2 K/K'|, ties in the order of the table. Rows
/// without one of the three come last.
std::vector<const PublishedRun*> by_distance(std::vector<const PublishedRun*> runs, double parameters,
                                             std::int64_t replicas, std::int64_t local_steps);

}  // namespace fomoe::costmodel
