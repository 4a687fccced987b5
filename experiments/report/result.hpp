// Results as the report needs them: read from what `fomoe simulate`, `compare`, `plan`, `sweep`, `solve`,
// `fomoe-train run` and `fomoe-wan run` wrote, and checked.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/formula/bandwidth_curve.hpp"
#include "costmodel/formula/sensitivity.hpp"
#include "costmodel/formula/uncertainty.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/round_timeline.hpp"
#include "experiments/results/json_values.hpp"

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
  std::vector<costmodel::Uncertainty> uncertainty;
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
  std::vector<Candidate> methods;                        // the best of each
  std::vector<std::pair<std::string, Candidate>> least;  // where nothing keeps the limits: of "cost", who
  Candidate as_it_is;
  double candidates = 0, simulated = 0;
  std::vector<Dropped> dropped;
  std::vector<std::string> tried;
  Sensitivities sensitivity;
};

/// Schema "fomoe.sweep/1". A combination that is impossible has a problem and no figures.
struct Sweep {
  struct Row {
    std::vector<Json> values;  // of the axes: numbers or texts
    std::string problem;
    double wall_clock_s = 0, compute_utilization = 0, bytes_sent_per_site_per_round = 0;
    std::optional<double> cost, energy_kwh, perplexity;
  };
  std::string path, name, executor;
  std::vector<std::string> axes;  // keys with the unit of their numbers, as columns are named
  std::vector<Row> rows;          // in the order of the sweep: the last axis turns fastest
};

/// Schema "fomoe.solve/1".
struct Solved {
  struct Answer {
    std::string target, answer, text, why;
    double target_value = 0;
    std::optional<double> value;  // SI; nothing where no value reaches the target
  };
  std::string path, name, executor, key, unit;
  std::vector<Answer> answers;
};

struct Results {
  std::vector<Run> runs;  // those of a comparison among them
  std::vector<Plan> plans;
  std::vector<Sweep> sweeps;
  std::vector<Solved> solved;
  [[nodiscard]] std::size_t size() const {
    return runs.size() + plans.size() + sweeps.size() + solved.size();
  }
};

/// Throws FileError: which file, which key, what was expected.
Results read_results(const std::vector<std::string>& paths);

}  // namespace fomoe::report
