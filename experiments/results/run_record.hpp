// Writes and reads the parts of a measured report that describe the run: its id, the way it was executed, and
// the complete scenario.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/report/run_report.hpp"
#include "experiments/scenario/scenario_source.hpp"

namespace fomoe::scenario {

/// The result of the same training with another seed.
struct SeedResult {
  std::uint64_t seed = 0;
  double perplexity = 0;  // on the validation sequences
};

/// The rounds of a run from one start of its processes to the checkpoint from which the next start went on,
/// or to the end. Times are seconds since the run began.
struct PartOfRun {
  std::int64_t first_round = 0;
  double began_s = 0;
  double saved_s = 0;               // the last checkpoint, or the beginning
  double upkeep_s = 0;              // validation, checkpoints and logs of the first site until then
  std::vector<std::string> absent;  // sites without which the others went on
};

/// All of a run that was started again, of whose later rounds the report has the times and bytes.
struct WholeRun {
  std::int64_t restarts = 0;
  double wall_clock_s = 0;  // from the first beginning to the end, pauses included
  /// Time from the last checkpoint before each loss until the rounds went on: steps that were done again, the
  /// wait, and the start of the processes.
  double lost_s = 0;
  std::vector<PartOfRun> parts;  // restarts + 1; empty in reports of earlier versions
};

/// What the kernel says at the end of the run about a TCP connection of the first process (TCP_INFO in the
/// kernel's include/uapi/linux/tcp.h).
struct SeenConnection {
  std::string congestion_control;  // "cubic", "bbr", …
  double segment_bytes = 0;        // largest payload of a segment that is sent
  double least_round_trip_s = 0;   // of the last minutes
  double round_trip_s = 0;         // smoothed
  double retransmits = 0;          // segments
  double sent_bytes = 0, received_bytes = 0;
};
struct SeenConnections {
  std::vector<SeenConnection> list;  // those that carried the most, at most kMostListed
  static constexpr std::size_t kMostListed = 64;
  /// Bytes to which the system enlarges a socket's buffers; 0: unknown.
  double send_buffer_bytes = 0, receive_buffer_bytes = 0;
};

struct RunRecord {
  std::string id;          // random and unique to the run
  std::string started_at;  // UTC, ISO 8601
  bool paced = false;      // compute operations slept for the step times of the scenario
  bool in_turn = false;    // one process did the work of all sites in turn
  bool whole = true;       // false: the run was resumed, and the report covers only its last rounds
  std::optional<WholeRun> all = std::nullopt;  // if it was resumed, and its history is known
  ScenarioSource source;
  /// Settings of the run, as for --set, whose defaults depend on the method and on the version of fomoe.
  std::vector<std::string> settings;
  std::string round_timeline;  // JSON of one observed round (round_json.hpp); empty if there is none
  std::string validation;      // JSON of the losses of the trained models; empty if there was no validation
  std::string code;            // version and commit of the program that made the run
  int threads = 0;             // CPU threads of the first process; 0: unknown
  /// Share of the run's time in which threads of the first process wanted a core and had none.
  double waited_share = 0;
  SeenConnections connections = {};  // without entries in the list: unknown, as in turn
  /// At least two if the training was repeated; the first is that of the report.
  std::vector<SeedResult> seeds;
};

/// A new record with a random id and the current time as start.
RunRecord new_run_record();

/// The report with its scenario, the record under "run", "round_timeline" and "validation". If there are
/// several seeds, "seeds" contains
///
///   {"n", "perplexity": {"mean", "standard_deviation", "mean_low", "mean_high"},
///    "runs": [{"seed", "perplexity"}]}
///
/// mean_low and mean_high are the bounds of the 95 % confidence interval (costmodel/math/replicas.hpp).
std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                            const RunRecord& record);

/// A measured run, as far as validation and calibration need it.
struct MeasuredRun {
  std::string path;
  RunRecord record;
  costmodel::RunReport report;  // only times, utilisation, bytes, the mean round and notes
};

/// Measured runs that are accepted beside whole runs whose sites work in parallel. A run that was started
/// again is whole only if its report has the parts of the whole run (WholeRun::parts).
struct AlsoRead {
  bool in_turn = false;  // runs in one process
  bool resumed = false;  // runs that were started again
};

/// Reads a measured report (schema "fomoe.run/1"), which may be part of a report of fomoe-wan
/// ("fomoe.wan/1"). Throws FileError, also for simulated reports.
MeasuredRun read_measured_run(const std::string& path, const AlsoRead& also = {});

}  // namespace fomoe::scenario
