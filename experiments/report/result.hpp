// Results as the report needs them: read from what `fomoe simulate`, `fomoe-train run`, `fomoe-wan run` and
// `fomoe plan` wrote, and checked.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/bandwidth_curve.hpp"
#include "costmodel/round_timeline.hpp"
#include "costmodel/run_report.hpp"
#include "costmodel/sensitivity.hpp"
#include "experiments/scenario/json_values.hpp"

namespace fomoe::report {

using scenario::Json;

/// How the wall clock changes with each input, by one executor.
struct Sensitivities {
  std::string executor;
  double wall_clock_s = 0;  // as it is, by that executor
  std::vector<costmodel::Sensitivity> inputs;
};

struct DrawnRound {
  std::vector<std::string> nodes;
  costmodel::RoundTimeline timeline;
};

/// Schema "fomoe.run/1". What older or measured results do not have is empty.
struct Run {
  std::string path;
  std::string name;              // of the file, without folder and extension; unique in a report
  costmodel::RunReport figures;  // without goodput and replicas, which are only shown
  std::vector<std::pair<std::string, double>> sent_bytes;  // by class; a site, the mean round
  std::vector<costmodel::BandwidthPoint> bandwidth_curve;
  std::optional<DrawnRound> round;
  Sensitivities sensitivity;
  /// Shown as they are: objects, or nothing.
  Json scenario, goodput, replicas;
  /// How far the case lies outside what was validated: sentences or an object, or nothing.
  Json validation_envelope;
};

/// A row of a plan's answer. Amounts that nobody knows are empty.
struct Candidate {
  std::string method, placement, collective, payload_dtype, command, problem;
  std::int64_t local_steps = 0, expert_overlap = 0;
  std::vector<std::string> sites;
  std::optional<double> wall_clock_s, cost, energy_kwh, perplexity;
  double compute_utilization = 0, bytes_sent_per_site_per_round = 0;
};

struct Dropped {
  std::string reason, example;
  double count = 0;
};

/// Schema "fomoe.plan/1".
struct Plan {
  std::string path, name;
  std::string minimise;       // "time", "cost" or "energy"
  std::string basis;          // "quality-unknown", …
  std::string why_no_choice;  // of an answer without one
  bool has_choice = false;    // the first of `chosen`; the others follow it
  std::vector<Candidate> chosen;
  std::vector<Candidate> methods;  // the best of each
  Candidate as_it_is;
  double candidates = 0, simulated = 0;
  std::vector<Dropped> dropped;
  std::vector<std::string> tried;
  Sensitivities sensitivity;
};

struct Results {
  std::vector<Run> runs;
  std::vector<Plan> plans;
};

/// Throws FileError: which file, which key, what was expected.
Results read_results(const std::vector<std::string>& paths);

}  // namespace fomoe::report
