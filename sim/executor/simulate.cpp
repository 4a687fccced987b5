#include "sim/executor/simulate.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "platforms/support/child.hpp"
#include "sim/executor/executor.hpp"

namespace fomoe::sim {

namespace {

using costmodel::Timeline;

struct PairSum {
  int from = 0, to = 0;
  double bytes = 0;
};

std::vector<PairSum> listed(const costmodel::PairBytes& sent) {
  std::vector<PairSum> list;
  list.reserve(sent.bytes.size());
  for (const auto& [pair, bytes] : sent.bytes) list.push_back({pair.first, pair.second, bytes});
  return list;
}

void put(ChildOutput& output, const Timeline& timeline) {
  output.put(timeline.round_end_s);
  output.put(timeline.intervals);
  output.put(timeline.flows);
  output.put(listed(timeline.sent));
  output.put(timeline.flow_records);
  output.put(std::uint64_t{timeline.op_names.size()});
  for (const std::vector<std::string>& names : timeline.op_names) output.put(names);
  output.put(timeline.missed_rounds);
  output.put(timeline.repeated_rounds);
}

void get(Child& child, Timeline& timeline) {
  child.get(timeline.round_end_s);
  child.get(timeline.intervals);
  child.get(timeline.flows);
  std::vector<PairSum> sent;
  child.get(sent);
  for (const PairSum& sum : sent) timeline.sent.add(sum.from, sum.to, sum.bytes);
  child.get(timeline.flow_records);
  std::uint64_t lists = 0;
  child.get(lists);
  timeline.op_names.resize(lists);
  for (std::vector<std::string>& names : timeline.op_names) child.get(names);
  child.get(timeline.missed_rounds);
  child.get(timeline.repeated_rounds);
}

}  // namespace

Timeline simulate(const costmodel::Plan& plan, const std::vector<std::int64_t>& rounds,
                  const platforms::Platform& platform, const ComputeSeconds& seconds,
                  const Options& options) {
  const Sequence sequence{rounds, platform.changes_start_s, 0, 0};
  return std::move(simulate_each(plan, {sequence}, platform, seconds, options).front());
}

std::vector<Timeline> simulate_each(const costmodel::Plan& plan, const std::vector<Sequence>& sequences,
                                    const platforms::Platform& platform, const ComputeSeconds& seconds,
                                    const Options& options) {
  Fluid::prepare();
  Child child([&](ChildOutput& output) {
    // The transport is never destroyed: the process ends first, and SimGrid complains of flows that a failed
    // run leaves behind.
    auto* transport = new Transport(plan.nodes, platform, options.network, options.seed);
    std::vector<Timeline> timelines;
    for (const Sequence& sequence : sequences) {
      transport->restart(sequence.changes_clock_s, sequence.held_rounds > 0, sequence.stream);
      timelines.push_back(Executor(plan, sequence, *transport, seconds, options).run());
    }
    if (options.advanced) options.advanced({.ended = true});
    for (const Timeline& timeline : timelines) put(output, timeline);
  });
  std::vector<Timeline> timelines;
  for (const Sequence& sequence : sequences) {
    Timeline& timeline = timelines.emplace_back();
    timeline.rounds = sequence.rounds;
    get(child, timeline);
  }
  child.finish();
  return timelines;
}

}  // namespace fomoe::sim
