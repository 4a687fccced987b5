#include "costmodel/timeline/attendance_report.hpp"

#include <cmath>

namespace fomoe::costmodel {

namespace {

// Adds up which rounds nodes missed.
class Missed {
 public:
  Missed(const RunReport& report, const Plan& plan) : plan_(plan) {
    attendance_.missed_rounds.assign(report.sites.size(), 0);
  }

  /// The rounds of the timeline stand for `count` rounds of the run.
  void add(const Timeline& timeline, double count) {
    if (timeline.missed_rounds.empty() || timeline.rounds.empty()) return;
    any_ = true;
    const double factor = count / static_cast<double>(timeline.rounds.size());
    attendance_.repeated_rounds += factor * static_cast<double>(timeline.repeated_rounds);
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      missed_sequences_ += plan_.nodes[n].sequences * factor * static_cast<double>(timeline.missed_steps[n]);
      if (plan_.nodes[n].kind == NodeKind::worker)
        attendance_.missed_rounds[static_cast<std::size_t>(plan_.nodes[n].site)] +=
            factor * static_cast<double>(timeline.missed_rounds[n]);
    }
  }

  void finish(RunReport& report) {
    if (!any_) return;
    double sequences = 0;  // of one optimiser step, summed over steps
    for (const Node& node : plan_.nodes) sequences += node.sequences * static_cast<double>(plan_.steps);
    if (sequences > 0) attendance_.trained_share = 1 - missed_sequences_ / sequences;
    report.tokens = std::llround(static_cast<double>(report.tokens) * attendance_.trained_share);
    report.attendance = attendance_;
  }

 private:
  const Plan& plan_;
  Attendance attendance_;
  double missed_sequences_ = 0;
  bool any_ = false;
};

}  // namespace

void add_attendance(RunReport& report, const Plan& plan, const std::vector<Timeline>& timelines) {
  Missed missed(report, plan);
  for (std::size_t c = 0; c < timelines.size(); ++c)
    missed.add(timelines[c], static_cast<double>(plan.classes[c].count));
  missed.finish(report);
}

void add_attendance(RunReport& report, const Plan& plan, const std::vector<RoundSample>& samples) {
  Missed missed(report, plan);
  for (const RoundSample& sample : samples) missed.add(sample.timeline, sample.count);
  missed.finish(report);
}

}  // namespace fomoe::costmodel
