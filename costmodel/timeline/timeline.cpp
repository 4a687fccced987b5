#include "costmodel/timeline/timeline.hpp"

#include <algorithm>

namespace fomoe::costmodel {

double end_of(const Timeline& timeline) {
  const std::vector<double>& ends = timeline.round_end_s;
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

Timeline concatenated(const std::vector<Timeline>& timelines) {
  Timeline all;
  double start_s = 0;
  for (const Timeline& part : timelines) {
    const auto first = static_cast<std::int64_t>(all.rounds.size());
    all.rounds.insert(all.rounds.end(), part.rounds.begin(), part.rounds.end());
    for (const double end_s : part.round_end_s) all.round_end_s.push_back(start_s + end_s);
    for (Interval interval : part.intervals) {
      interval.round += first;
      interval.start_s += start_s;
      interval.end_s += start_s;
      all.intervals.push_back(interval);
    }
    for (FlowSpan span : part.flows) {
      span.round += first;
      span.start_s += start_s;
      span.end_s += start_s;
      all.flows.push_back(span);
    }
    for (FlowRecord record : part.flow_records) {
      record.start_s += start_s;
      record.end_s += start_s;
      all.flow_records.push_back(record);
    }
    all.op_names.insert(all.op_names.end(), part.op_names.begin(), part.op_names.end());
    for (const auto& [pair, bytes] : part.sent.bytes) all.sent.add(pair.first, pair.second, bytes);
    all.missed_rounds.resize(std::max(all.missed_rounds.size(), part.missed_rounds.size()));
    for (std::size_t n = 0; n < part.missed_rounds.size(); ++n) all.missed_rounds[n] += part.missed_rounds[n];
    all.missed_steps.resize(std::max(all.missed_steps.size(), part.missed_steps.size()));
    for (std::size_t n = 0; n < part.missed_steps.size(); ++n) all.missed_steps[n] += part.missed_steps[n];
    all.repeated_rounds += part.repeated_rounds;
    start_s = end_of(all);
  }
  return all;
}

}  // namespace fomoe::costmodel
