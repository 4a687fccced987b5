// The columns of a sweep's result, and the two engines that compute its rows.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/report/run_report.hpp"
#include "experiments/sweep/axis.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::sweep {

/// The columns have the names of the fields in RunReport and in the JSON of `fomoe cost`.
inline constexpr std::string_view kResults[] = {"wall_clock_s",
                                                "compute_utilization",
                                                "tokens_per_s",
                                                "bytes_per_token",
                                                "bytes_sent_per_site_per_round",
                                                "dense_bytes_per_site_per_round",
                                                "expert_sync_bytes_per_site_per_round",
                                                "migration_bytes_per_site_per_round",
                                                "memory_bytes_per_site",
                                                "memory_bytes_per_gpu",
                                                "flops_per_token",
                                                "optimizer_steps",
                                                "tokens",
                                                "round_count",
                                                "round_duration_s",
                                                "round_compute_s",
                                                "round_communication_s",
                                                "round_exposed_communication_s",
                                                "round_idle_s",
                                                "link_busy_share",
                                                "cost_total",
                                                "energy_kwh",
                                                "perplexity",
                                                "equal_loss_factor",
                                                "equal_loss_factor_low",
                                                "equal_loss_factor_centre",
                                                "equal_loss_factor_high",
                                                "gpu_memory_bytes"};
inline constexpr std::size_t kResultCount = std::size(kResults);
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
/// The index of a result in kResults.
constexpr std::size_t column(std::string_view name) {
  for (std::size_t i = 0; i < kResultCount; ++i) {
    if (kResults[i] == name) return i;
  }
  throw "no such result";  // at compile time
}
/// From "perplexity" on: the perplexity, and the factor to equal loss with its range. Where only a range is
/// known, the factor is unknown. Whatever no number of tokens reaches is unknown, too.
inline constexpr std::size_t kQualityColumns = 5;
std::array<double, kQualityColumns> quality_columns(const costmodel::Quality& quality);
/// The two columns that decide whether a row fits into the memory of its GPUs.
inline constexpr std::size_t kNeededColumn = column("memory_bytes_per_gpu"),
                             kMemoryColumn = column("gpu_memory_bytes");
/// The two columns that show what limits a round.
inline constexpr std::size_t kComputeColumn = column("round_compute_s"),
                             kExposedColumn = column("round_exposed_communication_s");

/// Consecutive rows in the grid's order. If `problems[i]` is not empty, it states why the combination is
/// impossible, and the row's numbers are meaningless. An unknown number, such as a cost without prices, is
/// NaN; it becomes an empty cell or null.
struct Chunk {
  std::uint64_t first_row = 0;
  std::size_t rows = 0;
  std::array<std::vector<double>, kResultCount> results;  // by column
  std::vector<std::string> problems;
  /// Whether the closed form represents the row, for its engine; see costmodel::approximations().
  std::vector<char> exact;

  void resize(std::size_t count);
  /// A row with a number that is not finite, or with a time below zero, is impossible: gives it its problem.
  void refuse_impossible();
};
inline constexpr std::size_t kChunkRows = 4096;

struct Request {
  std::string scenario_path;
  std::vector<std::string> overrides;  // overrides of --set
  Grid grid;
  std::uint64_t begin = 0, end = 0;  // the rows of this shard: from `begin` up to, but without, `end`
};

using Sink = std::function<void(const Chunk&)>;  // called with chunks in order

/// Computes the rows in blocks by the closed form (costmodel/formula/resolved.hpp), on one core with constant
/// memory.
void closed_form_rows(const Request& request, const Sink& sink);

/// Simulates each row in one of `jobs` worker processes. Throws std::runtime_error if a simulation fails.
void simulated_rows(const Request& request, const sim::RunOptions& options, int jobs, const Sink& sink);

}  // namespace fomoe::sweep
