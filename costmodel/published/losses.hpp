// What published runs say of the loss of local-update training.
//
// A point is 1 % of the loss in nats per token. Intervals hold 80 %: half of one is the one-sided 90 %
// quantile of Student's t over studies; a study is a paper, whatever the number of its rows. The level, in
// points above tuned data-parallel training of the same model on the same tokens:
//
//   level(N, M, K) = surface(N, M) + slope · x(K) + format + overlap,      x(K) = log2(max(K, 20) ÷ 30)
//
// surface: ratios that Charles et al. measured (arXiv 2503.09799, Tables 4 and 5; K = 30), linear in ln N and
// in log2 M between measured ones. No law is evaluated outside of the rows. slope: points per doubling of K,
// the mean of the studies. tests/reference/published_quality.py is the same model in Python, and
// experiments/data/published_quality_model.md says how well it predicts.
#pragma once
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/published/estimate.hpp"
#include "costmodel/published/rows.hpp"

namespace fomoe::costmodel {

/// Limits of what the rows cover.
inline constexpr std::int64_t kSurfaceSteps = 30;  // K of all runs of the surface
inline constexpr std::int64_t kLeastSteps = 20;    // below this K, the level of this K is kept
inline constexpr int kLeastRounds = 20;
inline constexpr std::int64_t kMostReplicas = 8, kMostStepsOfReplicas = 100;

class PublishedLosses {
 public:
  explicit PublishedLosses(PublishedRuns runs);
  PublishedLosses(const PublishedLosses&) = delete;  // it has pointers to its own rows
  PublishedLosses& operator=(const PublishedLosses&) = delete;

  /// Loss above that of tuned data-parallel training of the same model on the same tokens.
  [[nodiscard]] LossEstimate level(const LossSetting& setting) const;
  /// Loss of `b` above that of `a`, for the same model and tokens: the level cancels. If one of them is
  /// data-parallel training, this is the level of the other.
  [[nodiscard]] LossEstimate contrast(const LossSetting& a, const LossSetting& b) const;
  /// Ids of the runs of DiLoCo against data-parallel training that are closest, at most `count`.
  [[nodiscard]] std::vector<std::string> nearest(const LossSetting& setting, std::size_t count = 4) const;

  [[nodiscard]] const PublishedRuns& runs() const { return runs_; }

  /// What the rows imply; the means and half-widths that all answers have in common.
  struct Study {
    std::string paper;
    double value = 0;               // a slope, or a root mean square error
    std::vector<std::string> rows;  // ids
  };
  [[nodiscard]] const std::vector<Study>& slopes() const { return slopes_; }
  [[nodiscard]] double slope() const { return slope_; }
  [[nodiscard]] double slope_half() const { return slope_half_; }
  [[nodiscard]] double level_half() const { return level_half_; }
  [[nodiscard]] double replica_half() const { return replica_half_; }
  [[nodiscard]] double run_deviation() const { return run_deviation_; }

 private:
  struct Entry {
    double x = 0, points = 0;  // x: ln N
    std::string id;
  };
  struct Value {
    double points = 0;
    std::vector<std::string> ids;
  };
  /// All terms of a setting together, and half-widths of the format on the wire and of overlap.
  struct Terms {
    Value value;
    std::array<double, 2> halves{};
  };
  using Errors = std::map<std::string, std::vector<double>>;  // by paper
  using Group = std::vector<const PublishedRun*>;
  enum class Varied { local_steps, replicas };

  // constants.cpp
  void read_columns();
  void read_slopes();
  void read_run_deviation();
  void read_level_errors();
  void read_replica_errors();
  void read_eager();
  /// Groups of runs of DiLoCo that differ in one column alone, within the limits of differences.
  [[nodiscard]] std::vector<Group> groups(Varied varied) const;
  /// {M: {ln N: surface without this size − published}} of the sizes that have neighbours on both sides.
  [[nodiscard]] std::map<std::int64_t, std::map<double, double>> left_out() const;
  [[nodiscard]] static double half_of(const Errors& errors);

  // surface.cpp
  [[nodiscard]] static Value between(const std::vector<Entry>& entries, double x);
  [[nodiscard]] Value column(std::int64_t replicas, double log_n) const;
  [[nodiscard]] Value surface(double parameters, std::int64_t replicas) const;
  [[nodiscard]] Terms terms(const LossSetting& setting) const;

  // coverage.cpp
  [[nodiscard]] std::vector<std::string> refusals(const LossSetting& setting, bool level) const;
  [[nodiscard]] static std::vector<std::string> notes(const LossSetting& setting);
  /// The run of DiLoCo with the largest K among those with at least 20 rounds and half the active parameters.
  [[nodiscard]] const PublishedRun* most_steps(double parameters) const;

  [[nodiscard]] const PublishedRun& by_id(const std::string& id) const;
  void add_slope_rows(std::vector<std::string>& rows) const;

  PublishedRuns runs_;
  std::vector<const PublishedRun*> usable_, diloco_;    // diloco: usable, with a loss
  std::map<std::int64_t, std::vector<Entry>> columns_;  // by M: the runs of the surface by rising N
  std::vector<Entry> eager_;                            // points above the surface at M = 2
  double eager_half_ = 0;
  std::vector<Study> slopes_;
  std::size_t level_studies_ = 0, replica_studies_ = 0;
  double slope_ = 0, slope_half_ = 0, level_half_ = 0, replica_half_ = 0, run_deviation_ = 0;
};

/// Doublings of K above that of the surface.
double doublings_of_steps(std::int64_t local_steps);

}  // namespace fomoe::costmodel
