// What a sweep answers for each combination, and the two engines that fill it in.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sweep/axis.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::sweep {

/// The fields of RunReport, and of `fomoe cost`, by their names there.
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
                                                "equal_loss_factor"};
inline constexpr std::size_t kResultCount = std::size(kResults);
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
/// Where a result is in kResults.
constexpr std::size_t column(std::string_view name) {
  for (std::size_t i = 0; i < kResultCount; ++i) {
    if (kResults[i] == name) return i;
  }
  throw "no such result";  // at compile time
}
inline constexpr std::size_t kComputeColumn = column("round_compute_s"),
                             kExposedColumn =
                                 column("round_exposed_communication_s");  // which of both limits

/// Consecutive rows, in the grid's order. Where `problems[i]` is not empty the combination is impossible,
/// that is why, and its numbers mean nothing. A number that nobody knows, such as a cost without prices, is
/// NaN: an empty cell, or null.
struct Chunk {
  std::uint64_t first_row = 0;
  std::size_t rows = 0;
  std::array<std::vector<double>, kResultCount> results;  // by column
  std::vector<std::string> problems;

  void resize(std::size_t count);
};
inline constexpr std::size_t kChunkRows = 4096;

struct Request {
  std::string scenario_path;
  std::vector<std::string> overrides;  // of --set
  Grid grid;
  std::uint64_t begin = 0, end = 0;  // rows of this shard
};

using Sink = std::function<void(const Chunk&)>;  // called with chunks in order

/// By blocks of the closed form (costmodel/formula/sweep.hpp); one core, constant memory.
void closed_form_rows(const Request& request, const Sink& sink);

/// Each row by itself in one of `jobs` worker processes. Throws std::runtime_error where a simulation fails.
void simulated_rows(const Request& request, const sim::RunOptions& options, int jobs, const Sink& sink);

}  // namespace fomoe::sweep
