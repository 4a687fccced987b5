// The results that a report shows, read from the JSON of `fomoe simulate`, `compare`, `plan`, `sweep`,
// `solve`, `validate`, `fomoe-train run` and `fomoe-wan run`, and checked.
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

/// How much the wall clock changes with each input, computed by one engine.
struct Sensitivities {
  std::string executor;
  double wall_clock_s = 0;  // seconds for the unchanged scenario, by that engine
  std::vector<costmodel::Sensitivity> inputs;
};

/// What a result was computed from. Results of older versions have neither.
struct Inputs {
  Json scenario;  // an object that is shown unchanged, or null
  std::vector<Provenance> provenance;
};

struct DrawnRound {
  std::vector<std::string> nodes;
  costmodel::RoundTimeline timeline;
};

/// A run, schema "fomoe.run/1". A field is empty if the result file does not have it, as in the results of
/// measured runs and of older versions.
struct Run {
  std::string path;
  std::string name;  // file name without folder and extension, or a short case; unique in a report
  costmodel::RunReport figures;  // without goodput and replicas, which are shown as JSON
  /// Bytes per site in the mean round, by class of traffic.
  std::vector<std::pair<std::string, double>> sent_bytes;
  std::vector<costmodel::BandwidthPoint> bandwidth_curve;
  std::string bandwidth_executor;  // the engine that computed the curve: "closed-form" or "simulated"
  std::optional<DrawnRound> round;
  Sensitivities sensitivity;
  std::vector<costmodel::Uncertainty> uncertainty;
  /// JSON objects that are shown unchanged, or null.
  Json scenario, goodput, replicas;
  /// Of the median run, if the result has failures; figures are without them. Infinite if more than half
  /// never end.
  std::optional<double> median_s, median_cost;
  std::optional<costmodel::Interval95> interval;  // the 95 % interval of the wall clock, in seconds
  std::string no_interval;                        // why there is none; empty if that is not known
  /// How far the run lies outside of the validated ranges: an array of sentences, an object, or null.
  Json validation_envelope;
};

/// The run with the wall clock and the cost of its median run with failures, if it has failures.
Run median_of(Run run);

/// One row of the answer of `fomoe plan`. Unknown amounts are empty.
struct Candidate {
  std::string method, placement, collective, payload_dtype, command, problem;
  std::int64_t local_steps = 0, expert_overlap = 0;
  std::optional<std::int64_t> rounds;  // unknown in results of older versions
  std::vector<std::string> sites;
  std::optional<double> wall_clock_s, cost, energy_kwh, perplexity;
  /// With published losses: points above data-parallel training, with the ends of their 80 % interval, the
  /// minimised amount to the same loss, and the probability that the first row needs less. Empty if not
  /// covered.
  struct Loss {
    double points, low, high;
  };
  std::optional<Loss> loss;
  std::optional<double> to_equal_loss, first_needs_less;
  double compute_utilization = 0, bytes_sent_per_site_per_round = 0;
};

struct Dropped {
  std::string reason, example;
  double count = 0;
};

/// The answer of `fomoe plan`, schema "fomoe.planner/1".
struct Plan {
  std::string path, name;
  std::vector<std::string> limits;  // "cost at most 4,000 USD"
  std::string minimise;             // "time", "cost" or "energy"
  std::string currency;             // of the costs; empty if there are none, and in plans of older versions
  std::string basis;                // what the choice is based on: "quality-unknown", …
  std::string why_no_choice;        // the reason, if the answer has no choice
  bool has_choice = false;  // whether the first entry of `chosen` is the choice; the others are runners-up
  std::vector<Candidate> chosen;
  std::vector<Candidate> methods;  // the best candidate of each method
  /// If no candidate keeps the limits: for each limited amount, the name of the amount ("cost") and the
  /// candidate with the smallest amount.
  std::vector<std::pair<std::string, Candidate>> least;
  Candidate as_it_is;
  double candidates = 0, simulated = 0;
  std::vector<Dropped> dropped;
  std::vector<std::string> methods_tried;
  std::vector<std::string> tried;  // the tried values of each key, for people
  Sensitivities sensitivity;
  Inputs inputs;  // the scenario as it is
};

/// A sweep, schema "fomoe.sweep/1". An impossible combination has a problem and no figures.
struct Sweep {
  struct Row {
    std::vector<Json> values;  // the values of the axes: numbers or texts
    std::string problem;
    double wall_clock_s = 0, compute_utilization = 0, bytes_sent_per_site_per_round = 0;
    std::optional<double> cost, energy_kwh, perplexity;
  };
  std::string path, name, executor;
  std::string currency;           // of the costs; empty if there are none
  std::vector<std::string> axes;  // keys with the unit of their numbers, like the names of columns
  std::vector<Row> rows;          // in the order of the sweep: the last axis varies fastest
  Inputs inputs;                  // those of the first possible row
};

/// An answer of `fomoe solve`, schema "fomoe.solve/1".
struct Solved {
  struct Answer {
    std::string target, answer, text, why;
    double target_value = 0;
    std::optional<double> value;  // in SI units; empty if no value reaches the target
  };
  std::string path, name, executor, key, unit;
  std::vector<Answer> answers;
  Inputs inputs;  // before `key` is changed
};

/// Measured runs and their predictions, schema "fomoe.validation/1". An error is predicted ÷ measured − 1, or
/// for utilisation predicted − measured; it is empty if it is infinite, because nothing was measured.
struct Validation {
  struct Error {
    std::string quantity, worst_run;
    std::optional<double> median, p95, worst;  // of the errors without their signs
    std::optional<double> bias;                // the median with sign
  };
  struct Group {
    std::string name;  // "all", what bounds the runs, or their method
    std::int64_t runs = 0;
    std::vector<Error> errors;
  };
  struct Compared {
    std::string name, bound;
    bool paced = false;                      // the run slept for the step times of the prediction
    double measured_s = 0, predicted_s = 0;  // wall clock
    std::optional<double> error;             // of the wall clock
  };
  std::string path, name;
  std::vector<Group> groups;  // the first has all runs
  std::vector<Compared> runs;
};

struct Results {
  std::vector<Run> runs;  // includes the runs of comparisons
  std::vector<Plan> plans;
  std::vector<Sweep> sweeps;
  std::vector<Solved> solved;
  std::vector<Validation> validations;
  [[nodiscard]] std::size_t size() const {
    return runs.size() + plans.size() + sweeps.size() + solved.size() + validations.size();
  }
};

/// Throws FileError that names the file, the key and the expected value.
Results read_results(const std::vector<std::string>& paths);

}  // namespace fomoe::report
