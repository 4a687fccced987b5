#include "sim/executor/simulate.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "platforms/support/child.hpp"
#include "sim/executor/plan_simulator.hpp"
#include "sim/transport/fluid_transport.hpp"
#include "sim/transport/tcp_transport.hpp"

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
  output.put(timeline.missed_steps);
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
  child.get(timeline.missed_steps);
  child.get(timeline.repeated_rounds);
}

constexpr std::chrono::milliseconds kBetweenProgress{200};

/// Memory that this process shares with its children: they set the progress, and the parent gets it.
class SharedProgress {
 public:
  SharedProgress()
      : memory_(::mmap(nullptr, sizeof(Values), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw std::runtime_error(std::string("cannot share memory with a child process: ") +
                               std::strerror(errno));
    values_ = new (memory_) Values;
  }
  ~SharedProgress() { ::munmap(memory_, sizeof(Values)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;

  void set(const SimulationProgress& progress) const {
    values_->simulated_s = progress.simulated_s;
    values_->rounds_finished = progress.rounds_finished;
    values_->rounds = progress.rounds;
  }
  [[nodiscard]] SimulationProgress get() const {
    return {values_->simulated_s, values_->rounds_finished, values_->rounds};
  }

 private:
  struct Values {
    std::atomic<double> simulated_s = 0;
    std::atomic<std::size_t> rounds_finished = 0, rounds = 0;
  };
  void* memory_;
  Values* values_;
};

std::unique_ptr<Transport> make_transport(const costmodel::Plan& plan, const platforms::Platform& platform,
                                          const Options& options) {
  if (options.network.initial_window_bytes)
    return std::make_unique<TcpTransport>(plan.nodes, platform, options.network, options.seed);
  return std::make_unique<FluidTransport>(plan.nodes, platform, options.network, options.seed);
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
  const SharedProgress progress;
  Child child([&](ChildOutput& output) {
    // The transport is never destroyed: the process ends first, and SimGrid complains of flows that a failed
    // run leaves behind.
    Transport* transport = make_transport(plan, platform, options).release();
    std::vector<Timeline> timelines;
    for (const Sequence& sequence : sequences) {
      transport->restart(sequence.changes_clock_s, sequence.held_rounds > 0, sequence.stream);
      PlanSimulator simulator(plan, sequence, *transport, seconds, options);
      if (options.on_progress) transport->fluid().on_event([&] { progress.set(simulator.progress()); });
      timelines.push_back(simulator.run());
      transport->fluid().on_event({});
    }
    for (const Timeline& timeline : timelines) put(output, timeline);
  });
  if (options.on_progress)
    while (!child.has_output_within(kBetweenProgress)) options.on_progress(progress.get());
  std::vector<Timeline> timelines;
  for (const Sequence& sequence : sequences) {
    Timeline& timeline = timelines.emplace_back();
    timeline.rounds = sequence.rounds;
    get(child, timeline);
  }
  child.finish();
  if (options.on_progress) options.on_progress({.ended = true});
  return timelines;
}

}  // namespace fomoe::sim
