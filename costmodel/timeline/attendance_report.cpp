#include "costmodel/timeline/attendance_report.hpp"

#include <cmath>

namespace fomoe::costmodel {

void add_attendance(RunReport& report, const Plan& plan, const std::vector<Timeline>& timelines) {
  Attendance attendance;
  attendance.missed_rounds.assign(report.sites.size(), 0);
  double sequences = 0, missed_sequences = 0;  // of one optimiser step each, summed over steps
  bool any = false;
  for (std::size_t c = 0; c < timelines.size(); ++c) {
    const Timeline& timeline = timelines[c];
    if (timeline.missed_rounds.empty() || timeline.rounds.empty()) continue;
    any = true;
    const RoundClass& kind = plan.classes[c];
    const auto steps = static_cast<double>(kind.steps);
    const double factor = static_cast<double>(kind.count) / static_cast<double>(timeline.rounds.size());
    attendance.repeated_rounds += factor * static_cast<double>(timeline.repeated_rounds);
    for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
      const double missed = factor * static_cast<double>(timeline.missed_rounds[n]);
      sequences += plan.nodes[n].sequences * steps * static_cast<double>(kind.count);
      missed_sequences += plan.nodes[n].sequences * steps * missed;
      if (plan.nodes[n].kind == NodeKind::worker)
        attendance.missed_rounds[static_cast<std::size_t>(plan.nodes[n].site)] += missed;
    }
  }
  if (!any) return;
  if (sequences > 0) attendance.trained_share = 1 - missed_sequences / sequences;
  report.tokens = std::llround(static_cast<double>(report.tokens) * attendance.trained_share);
  report.attendance = attendance;
}

}  // namespace fomoe::costmodel
