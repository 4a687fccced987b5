// Simulates rows in worker processes, because SimGrid allows one engine per process. A hash of the row's
// number selects the worker that simulates the row. Rows that take long often follow a pattern along an axis;
// the hash distributes such rows over all workers. Each worker sends its rows in order through a pipe. While
// the pipe is full, the worker waits, so memory does not grow.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/math/draws.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/timeline/sent_classes.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/sweep/rows.hpp"
#include "platforms/support/child.hpp"

namespace fomoe::sweep {

namespace {

enum class Status : std::uint64_t { computed, impossible, failed };
struct Record {
  std::array<double, kResultCount> results{};
  Status status = Status::computed;
};

std::size_t worker_of(std::uint64_t row, std::size_t workers) {
  return static_cast<std::size_t>(costmodel::mixed(row) % workers);
}

std::array<double, kResultCount> results_of(const costmodel::Scenario& scenario,
                                            const costmodel::RunReport& report) {
  const costmodel::SentBytes sent = costmodel::sent_by_class(costmodel::summarise(scenario).sent, report,
                                                             costmodel::at_own_pace(scenario.strategy));
  const costmodel::Counts counts = costmodel::counts_of(scenario);
  const costmodel::MeanRound& round = report.round;
  const costmodel::GpuMemory gpu = costmodel::fullest_gpu(counts);
  const auto quality = quality_columns(report.quality.value_or(costmodel::Quality{}));
  return {report.wall_clock_s,
          report.compute_utilization,
          report.tokens_per_s,
          report.bytes_per_token,
          report.bytes_sent_per_site_per_round,
          sent.dense,
          sent.expert_sync,
          sent.migration,
          counts.fullest_site().bytes_per_site,
          gpu.needed,
          counts.flops_per_token,
          static_cast<double>(report.optimizer_steps),
          static_cast<double>(report.tokens),
          static_cast<double>(round.count),
          round.duration_s,
          round.compute_s,
          round.communication_s,
          round.exposed_communication_s,
          round.idle_s,
          report.bottleneck.link_busy_share,
          report.cost && !report.cost->currency.empty() ? report.cost->cost_total : kUnknown,
          report.cost && report.cost->energy_kwh ? *report.cost->energy_kwh : kUnknown,
          quality[0],
          quality[1],
          quality[2],
          quality[3],
          quality[4],
          gpu.available > 0 ? gpu.available : kUnknown};
}

void compute_row(const Request& request, const sim::RunOptions& options, std::uint64_t row, Record& record,
                 std::string& text) {
  record = {};
  text.clear();
  try {
    scenario::ReadOptions reading;
    reading.overrides = request.overrides;
    for (std::string& assignment : request.grid.assignments(row))
      reading.overrides.push_back(std::move(assignment));
    const costmodel::Scenario scenario = scenario::read_scenario(request.scenario_path, reading);
    record.results = results_of(scenario, sim::simulate_scenario(scenario, options).report);
  } catch (const scenario::CombinationError& error) {
    record.status = Status::impossible;
    text = error.reason();
  } catch (const FileError& error) {
    record.status = Status::impossible;
    text = error.what();
  } catch (const std::exception& error) {
    record.status = Status::failed;
    text = error.what();
  }
}

}  // namespace

void simulated_rows(const Request& request, const sim::RunOptions& options, int jobs, const Sink& sink) {
  const std::uint64_t count = request.end - request.begin;
  const auto worker_count =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(count, 1, static_cast<std::uint64_t>(jobs)));
  std::vector<Child> workers;
  for (std::size_t worker = 0; worker < worker_count; ++worker) {
    workers.emplace_back([&, worker](ChildOutput& output) {
      Record record;
      std::string text;
      for (std::uint64_t row = request.begin; row < request.end; ++row) {
        if (worker_of(row, worker_count) != worker) continue;
        compute_row(request, options, row, record, text);
        output.put(record);
        output.put(text);
      }
    });
  }
  Chunk chunk;
  constexpr std::size_t kSimulatedChunkRows = 16;  // small, because progress is reported once per chunk
  for (std::uint64_t row = request.begin; row < request.end; row += chunk.rows) {
    chunk.first_row = row;
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kSimulatedChunkRows, request.end - row)));
    for (std::size_t i = 0; i < chunk.rows; ++i) {
      Record record;
      std::string text;
      try {
        Child& worker = workers[worker_of(row + i, worker_count)];
        worker.get(record);
        worker.get(text);
        if (record.status == Status::failed) throw ChildError(text);
      } catch (const ChildError& error) {
        std::string which;
        for (const std::string& assignment : request.grid.assignments(row + i))
          which += " --set " + assignment;
        throw std::runtime_error(std::string(error.what()) + " (at" + which + ")");
      }
      if (record.status == Status::impossible) chunk.problems[i] = text;
      for (std::size_t c = 0; c < kResultCount; ++c) chunk.results[c][i] = record.results[c];
    }
    chunk.refuse_impossible();
    sink(chunk);
  }
  for (Child& worker : workers) worker.finish();
}

}  // namespace fomoe::sweep
