// From what each process saw to one RunReport, executor "measured": the same assembly as the simulator's.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/round_timeline.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

/// What one process hands to rank 0.
struct Observation {
  struct OfNode {
    costmodel::NodeId node = 0;
    Traffic traffic;
    double validation_loss = 0;                     // mean cross-entropy; negative: not validated
    std::vector<std::vector<std::int64_t>> routed;  // [layer][expert]: slots of its tokens that chose it
  };
  std::vector<OfNode> nodes;
  std::vector<costmodel::Interval> intervals;  // seconds since the barrier at the start
  std::int64_t peak_memory_bytes = 0;          // of the process
};
std::string to_text(const Observation& observation);
Observation observation_from(const std::string& text);

/// CSV with the columns layer,expert,site,count, as strategy.routing_counts reads it.
std::string routing_csv(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                        const std::vector<Observation>& observations);

struct ReportContext {
  std::int64_t first_round = 0;  // of those executed: a resumed run starts later
  std::int64_t steps = 0;        // executed
  bool in_turn = false;          // one process trained every site
  bool paced = false;            // see TrainingOptions
  std::vector<Provenance> pace;  // of the step times that were slept
  std::int64_t validation_sequences = 0;
  std::string device;  // for provenance
  std::string links;   // FOMOE_LINKS of the environment, which fomoe-wan sets; empty: nobody said
};

/// What lay between the processes, in a sentence for the report's notes.
std::string note_on_links(const ReportContext& context);

/// Of all processes' observations. A transfer's flows are under way at a node from when it and one of its
/// partners are ready; before that it waits.
costmodel::RunReport measured_report(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                                     const std::vector<Observation>& observations,
                                     const ReportContext& context);

/// One of the rounds, to be drawn: the middle one of those that were executed.
costmodel::RoundTimeline measured_round(const costmodel::Plan& plan,
                                        const std::vector<Observation>& observations,
                                        std::int64_t first_round);

}  // namespace fomoe::trainer
