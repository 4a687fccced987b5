#include "experiments/results/trace_json.hpp"

#include <map>
#include <set>

#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr int kComputeThread = 0, kFlowThread = 1, kFirstTransferThread = 2;

Json metadata(const char* what, int process, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string trace_json(const costmodel::Plan& plan, const platforms::Platform& platform,
                       const costmodel::Timeline& timeline) {
  Json events = Json::array();
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    const int process = static_cast<int>(node);
    events.push_back(
        metadata("process_name", process, 0, platforms::site_name(platform, plan.nodes[node].site)));
    events.push_back(metadata("thread_name", process, kComputeThread, "compute"));
    events.push_back(metadata("thread_name", process, kFlowThread, "bytes under way"));
  }
  std::map<std::int64_t, costmodel::RoundPlan> rounds;
  std::set<std::pair<int, int>> named;  // (process, thread)
  for (const costmodel::Interval& interval : timeline.intervals) {
    if (interval.activity == costmodel::Activity::upkeep) continue;  // traces are those of simulations
    const std::int64_t index = timeline.rounds[static_cast<std::size_t>(interval.round)];
    if (!rounds.contains(index)) rounds[index] = plan.round(index);
    const costmodel::Op& op = rounds[index].ops[static_cast<std::size_t>(interval.op)];
    const bool computes = interval.activity == costmodel::Activity::compute;
    const int thread = computes ? kComputeThread : interval.op + kFirstTransferThread;
    if (!computes && named.emplace(interval.node, thread).second) {
      events.push_back(metadata("thread_name", interval.node, thread, op.name));
    }
    Json arguments = {{"round", index}};
    if (const auto* transfer = std::get_if<costmodel::Transfer>(&op.what)) {
      arguments["exchanges"] = transfer->exchanges.size();
    } else {
      arguments["repeat"] = std::get<costmodel::Compute>(op.what).repeat;
    }
    events.push_back({{"ph", "X"},
                      {"name", op.name},
                      {"cat", computes ? "compute" : "transfer"},
                      {"pid", interval.node},
                      {"tid", thread},
                      {"ts", interval.start_s * kMicroseconds},
                      {"dur", (interval.end_s - interval.start_s) * kMicroseconds},
                      {"args", arguments}});
  }
  for (const costmodel::FlowSpan& span : timeline.flows) {
    events.push_back({{"ph", "X"},
                      {"name", "bytes under way"},
                      {"cat", "flow"},
                      {"pid", span.node},
                      {"tid", kFlowThread},
                      {"ts", span.start_s * kMicroseconds},
                      {"dur", (span.end_s - span.start_s) * kMicroseconds},
                      {"args", {{"round", timeline.rounds[static_cast<std::size_t>(span.round)]}}}});
  }
  return to_text({{"displayTimeUnit", "ms"}, {"traceEvents", events}});
}

}  // namespace fomoe::scenario
