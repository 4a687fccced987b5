// Simulates rows in worker processes, because SimGrid allows one engine per process. A hash of the row's
// number selects its worker, so that the cost of a row along an axis does not load one worker more than
// others. Each worker sends its rows in order. A worker waits while its pipe is full, so memory does not
// grow.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/memory.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/sweep/rows.hpp"

namespace fomoe::sweep {

namespace {

enum class Status : std::uint64_t { computed, impossible, failed };
struct Record {
  std::array<double, kResultCount> results{};
  Status status = Status::computed;
  std::uint64_t text_bytes = 0;  // size of the text that follows
};

std::size_t worker_of(std::uint64_t row, std::size_t workers) {
  // SplitMix64 (Steele et al. 2014).
  std::uint64_t z = row + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::size_t>((z ^ (z >> 31)) % workers);
}

std::array<double, kResultCount> results_of(const costmodel::Scenario& scenario,
                                            const costmodel::RunReport& report) {
  const auto planned = costmodel::summarise(scenario).sent;  // by class: the mean that the formula expects
  const double flops =
      costmodel::flops_per_token(scenario.model, costmodel::local_experts(scenario),
                                 scenario.strategy.skip_token, costmodel::FlopsAccounting::mechanism)
          .total();
  const costmodel::MeanRound& round = report.round;
  return {report.wall_clock_s,
          report.compute_utilization,
          report.tokens_per_s,
          report.bytes_per_token,
          report.bytes_sent_per_site_per_round,
          planned.dense,
          planned.expert_sync,
          planned.migration,
          report.sites.front().memory_bytes,
          costmodel::memory_per_gpu(scenario).total(),
          flops,
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
          report.quality && report.quality->known ? report.quality->perplexity : kUnknown,
          report.quality ? report.quality->equal_loss_factor.value_or(kUnknown) : kUnknown};
}

void write_all(int descriptor, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::_Exit(1);  // the reading end is closed
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

bool read_all(int descriptor, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(descriptor, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
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
  record.text_bytes = text.size();
}

[[noreturn]] void work(const Request& request, const sim::RunOptions& options, std::size_t worker,
                       std::size_t workers, int descriptor) {
  Record record;
  std::string text;
  for (std::uint64_t row = request.begin; row < request.end; ++row) {
    if (worker_of(row, workers) != worker) continue;
    compute_row(request, options, row, record, text);
    write_all(descriptor, &record, sizeof record);
    write_all(descriptor, text.data(), text.size());
  }
  std::_Exit(0);
}

/// Worker processes that end with the object, so that a failing sweep leaves no process behind.
class Workers {
 public:
  Workers(const Request& request, const sim::RunOptions& options, std::size_t count) {
    std::fflush(nullptr);
    for (std::size_t worker = 0; worker < count; ++worker) {
      int ends[2];
      if (pipe(ends) != 0) throw std::runtime_error("cannot create a pipe for a worker");
      const pid_t pid = fork();
      if (pid < 0) throw std::runtime_error("cannot fork a worker");
      if (pid == 0) {
        close(ends[0]);
        for (const int reader : readers_) close(reader);
        work(request, options, worker, count, ends[1]);
      }
      close(ends[1]);
      readers_.push_back(ends[0]);
      pids_.push_back(pid);
    }
  }
  ~Workers() {
    for (const int reader : readers_) close(reader);
    for (const pid_t pid : pids_) kill(pid, SIGTERM);  // a worker that has finished is only waited for
    for (const pid_t pid : pids_) {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  [[nodiscard]] int reader_of(std::uint64_t row) const { return readers_[worker_of(row, readers_.size())]; }

 private:
  std::vector<int> readers_;
  std::vector<pid_t> pids_;
};

}  // namespace

void simulated_rows(const Request& request, const sim::RunOptions& options, int jobs, const Sink& sink) {
  const std::uint64_t count = request.end - request.begin;
  const Workers workers(
      request, options,
      static_cast<std::size_t>(std::clamp<std::uint64_t>(count, 1, static_cast<std::uint64_t>(jobs))));
  Chunk chunk;
  constexpr std::size_t kSimulatedChunkRows = 16;  // small, because progress is reported once per chunk
  for (std::uint64_t row = request.begin; row < request.end; row += chunk.rows) {
    chunk.first_row = row;
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kSimulatedChunkRows, request.end - row)));
    for (std::size_t i = 0; i < chunk.rows; ++i) {
      Record record;
      const int reader = workers.reader_of(row + i);
      std::string text;
      bool complete = read_all(reader, &record, sizeof record);
      if (complete) {
        text.resize(record.text_bytes);
        complete = read_all(reader, text.data(), text.size());
      }
      if (!complete || record.status == Status::failed) {
        std::string which;
        for (const std::string& assignment : request.grid.assignments(row + i))
          which += " --set " + assignment;
        throw std::runtime_error((complete ? text : "a worker process ended without a result") + " (at" +
                                 which + ")");
      }
      if (record.status == Status::impossible) chunk.problems[i] = text;
      for (std::size_t c = 0; c < kResultCount; ++c) chunk.results[c][i] = record.results[c];
    }
    sink(chunk);
  }
}

}  // namespace fomoe::sweep
