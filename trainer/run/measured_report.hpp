// Assembles the observations of all processes into one RunReport with executor "measured". The reports of the
// simulator are made by the same code.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "trainer/comm/transport.hpp"
#include "trainer/record/interval_summary.hpp"
#include "trainer/record/last_norms.hpp"
#include "trainer/run/router_figures.hpp"

namespace fomoe::trainer {

/// The observations that one process sends to rank 0.
struct Observation {
  struct OfNode {
    costmodel::NodeId node = 0;
    Traffic traffic;
    double validation_loss = 0;  // mean cross-entropy in nats; negative: not validated
    // [layer][expert]: slots of the node's tokens that chose the expert
    std::vector<std::vector<std::int64_t>> routed;
    std::vector<RouterFigures> routers;  // by layer, over the validation sequences; empty: not validated
    NodeNorms norms;                     // see last_norms.hpp
  };
  std::vector<OfNode> nodes;
  // In seconds since the barrier at the start; those that an IntervalStream has not sent before.
  std::vector<costmodel::Interval> intervals;
  std::int64_t peak_memory_bytes = 0;  // peak of the process
  double whole_validation_loss = -1;   // of the assembled model; negative: not validated here
  double upkeep_s = 0;                 // validation, checkpoints and logs between rounds, in the whole run
  std::vector<std::int64_t>
      sent_by_store;  // bytes that the nodes here got from a store, by node; empty: none
};
std::string to_text(const Observation& observation);
Observation observation_from(const std::string& text);

/// CSV with the columns layer,expert,site,count, in the format of strategy.routing_counts.
std::string routing_csv(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                        const std::vector<Observation>& observations);

struct ReportContext {
  std::int64_t first_round = 0;  // the first executed round; above 0 if the run was resumed
  std::int64_t steps = 0;        // optimiser steps executed
  bool in_turn = false;          // one process trained every site
  bool paced = false;            // see TrainingOptions
  std::vector<Provenance> pace;  // provenance of the step times that paced operations slept
  std::int64_t validation_sequences = 0;
  std::int64_t assumed_warmup_steps = 0;  // 0: trainer.warmup_steps is given, or nothing is trained
  std::string data;                       // what was trained on, in words (run_data.hpp)
  std::string validation_data;            // what was validated on
  std::string device;                     // name of the device, for provenance
  std::string absent;                     // names of sites without which the run went on; empty: none
  double trained_share = 1;               // share of the sequences that the other sites have
  std::string links;  // environment variable FOMOE_LINKS, which fomoe-wan sets; empty: not set
};

struct RunData;
struct RunRequest;
struct TrainingOptions;
class AbsentSites;
/// What is known of the run before its end; first_round and steps are not set.
ReportContext report_context(const RunRequest& request, const costmodel::Plan& plan,
                             const AbsentSites& absent, const RunData& data, const TrainingOptions& options);

/// The last validation as JSON, or an empty text if there was none:
///
///   {"data", "sequences", "loss", "mean_site_loss", "sites": [{"site", "loss", "routers": [{"entropy",
///   "load_cv",
///    "ghost_share"} by layer], "norms": {"gradient", "update", "outer_difference", "outer_update"}}]}
///
/// The norms are those of last_norms.hpp, and null if nothing measured them.
/// Losses are in nats per token. "loss" is that of the whole model, which is also what an export has: with
/// the experts of all sites if sites hold parts, with means of values that differ between sites. It equals
/// mean_site_loss if all sites have the same model.
std::string validation_json(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                            const std::vector<Observation>& observations, const ReportContext& context);

/// A sentence about the network between the processes, for the notes of the report.
std::string note_on_links(const ReportContext& context);

/// Makes the report from the observations of all processes, whose intervals `intervals` has. A flow of a
/// transfer counts as under way at a node from the time when the node and at least one of its partners are
/// ready. Before that time, the node counts as waiting.
costmodel::RunReport measured_report(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                                     const std::vector<Observation>& observations,
                                     const IntervalSummary& intervals, const ReportContext& context);

}  // namespace fomoe::trainer
