// What a measured report says of the run beside its figures: which run it was, how it was made, and the
// scenario, whole.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/report/run_report.hpp"
#include "experiments/scenario/scenario_source.hpp"

namespace fomoe::scenario {

/// What the same training gave with another seed.
struct SeedResult {
  std::uint64_t seed = 0;
  double perplexity = 0;  // of the validation sequences
};

struct RunRecord {
  std::string id;          // drawn at random; no two runs have the same
  std::string started_at;  // UTC, ISO 8601
  bool paced = false;      // compute operations slept for as long as the scenario says
  bool in_turn = false;    // one process did the work of all sites
  bool whole = true;       // false: resumed, of the last rounds alone
  ScenarioSource source;
  std::string round_timeline;     // JSON of one round as it was observed (round_json.hpp); empty: none
  std::vector<SeedResult> seeds;  // two or more, where the training was repeated; the first is the report's
};

/// A record of a run that starts now.
RunRecord new_run_record();

/// The report with its scenario, the record under "run", and "round_timeline". Seeds, where there are
/// several, under "seeds":
///   {"n", "perplexity": {"mean", "standard_deviation", "mean_low", "mean_high"}, "runs": [{"seed",
///   "perplexity"}]}, low and high at 95 % confidence (costmodel/math/replicas.hpp)
std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                            const RunRecord& record);

/// A run that was measured: what validating and calibrating need of its report.
struct MeasuredRun {
  std::string path;
  RunRecord record;
  costmodel::RunReport report;  // times, utilisation, bytes and the mean round; nothing else
};

/// From a measured report (schema "fomoe.run/1") or from fomoe-wan's around one ("fomoe.wan/1"). Throws
/// FileError, also for reports that were simulated, for runs in turn and for runs that were resumed: their
/// times are not those of a whole run of sites that work at once.
MeasuredRun read_measured_run(const std::string& path);

}  // namespace fomoe::scenario
