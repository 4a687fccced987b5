#include "tests/oracles/ns3/ns3.hpp"

#include <cmath>
#include <deque>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sim/tcp/tcp_network.hpp"
#include "tests/oracles/comparison.hpp"
#include "tests/sim/transfers.hpp"

namespace fomoe::oracles {

Ns3Answer ns3_transfer(const std::string& traffic, const Tcp& tcp, const Star& star, long bytes) {
  std::ostringstream command;
  command.precision(15);
  command << '\'' << FOMOE_BINARY_DIR << "/oracle_tcp_transfer' " << traffic << ' ' << tcp.kind << ' '
          << static_cast<long>(tcp.queue_bytes) << ' ' << tcp.window_bytes << ' ' << tcp.segments_an_ack
          << ' ' << bytes;
  for (const StarSite& site : star)
    command << ' ' << site.up_bits_per_s << ',' << site.down_bits_per_s << ',' << site.half_latency_s;
  // A cache, since cases that differ only in fomoe's terms have the same ns-3 result.
  static std::map<std::string, Ns3Answer> known;
  if (const auto found = known.find(command.str()); found != known.end()) return found->second;
  const std::string output = output_of(command.str());
  Ns3Answer answer{std::vector<double>(star.size(), -1), -1};
  std::istringstream lines(output);
  for (std::string word; lines >> word;) {
    int site = 0;
    double end_s = 0;
    if (word == "end" && lines >> site >> end_s) answer.end_s.at(static_cast<std::size_t>(site)) = end_s;
    if (word == "dropped") lines >> answer.dropped;
  }
  if (answer.dropped < 0 || latest(answer.end_s) <= 0)
    throw std::runtime_error("no answer in the output of ns-3:\n" + output);
  return known[command.str()] = answer;
}

namespace {

platforms::Platform platform_of(const Star& star) {
  const int n = static_cast<int>(star.size());
  platforms::Platform platform = platforms::uniform(n, 1, 1, 0);
  for (int a = 0; a < n; ++a) {
    const StarSite& site = star[static_cast<std::size_t>(a)];
    platform.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s = site.up_bits_per_s / 8;
    platform.sites[static_cast<std::size_t>(a)].downlink_bytes_per_s = site.down_bits_per_s / 8;
    for (int b = 0; b < n; ++b)
      platform.set_latency(a, b, site.half_latency_s + star[static_cast<std::size_t>(b)].half_latency_s);
  }
  return platform;
}

struct Flow {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
};

/// The flows of each step, as in tcp_transfer.cpp.
std::vector<std::vector<Flow>> steps_of(const std::string& traffic, int n, long bytes) {
  std::vector<Flow> step;
  for (int a = 0; a < n; ++a) {
    for (int shift = 1; shift < n; ++shift) {
      const int b = (a + shift) % n;
      const bool next = b == (a + 1) % n, bulk = traffic == "bulk" || traffic == "again";
      if ((traffic == "ring" && next) || traffic == "direct") step.push_back({a, b, bytes / n});
      if ((bulk && a == 0 && b == 1) || (traffic == "fan" && a == 0) || (traffic == "fan-in" && b == 0))
        step.push_back({a, b, bytes});
    }
  }
  const int count = traffic == "ring" ? 2 * (n - 1) : traffic == "direct" || traffic == "again" ? 2 : 1;
  return std::vector<std::vector<Flow>>(static_cast<std::size_t>(count), step);
}

/// The traffic over fomoe's connections alone, without the protocol of messages.
class Transfer {
 public:
  Transfer(const std::string& traffic, const Star& star, long bytes, const costmodel::NetworkModel& network)
      : steps_(steps_of(traffic, static_cast<int>(star.size()), bytes)),
        pause_s_(traffic == "again" ? kPause_s : 0),
        platform_(costmodel::effective_platform(platform_of(star), network)),
        network_(network),
        nodes_(nodes(star.size())),
        tcp_(nodes_, network_, /*seed=*/1, [](int, int) {}),
        step_(star.size(), -1),
        end_s_(star.size(), 0) {
    tcp_.restart(platform_, platform_, 0);
  }

  std::vector<double> run() {
    for (int site = 0; site < static_cast<int>(step_.size()); ++site) next_step(0, site);
    for (double at_s = tcp_.next_event_s(); std::isfinite(at_s); at_s = tcp_.next_event_s()) {
      tcp_.run(at_s);
      for (const Flow& flow : std::exchange(arrived_, {})) received(at_s, flow);
    }
    return end_s_;
  }

 private:
  class Part : public sim::PartEvents {
   public:
    Part(Transfer& transfer, const Flow& flow) : transfer_(transfer), flow_(flow) {}
    void written(double) override {}
    void delivered(double) override { transfer_.arrived_.push_back(flow_); }

   private:
    Transfer& transfer_;
    Flow flow_;
  };

  static std::vector<costmodel::Node> nodes(std::size_t count) {
    std::vector<costmodel::Node> list;
    for (std::size_t i = 0; i < count; ++i)
      list.push_back({costmodel::NodeKind::worker, static_cast<int>(i), 1});
    return list;
  }

  void next_step(double now_s, int site) {
    const int step = ++step_[static_cast<std::size_t>(site)];
    if (step == static_cast<int>(steps_.size())) return;
    for (const Flow& flow : steps_[static_cast<std::size_t>(step)]) {
      if (flow.to == site) ++missing_[site];
      if (flow.from != site) continue;
      parts_.emplace_back(*this, flow);
      tcp_.put(now_s, flow.from, flow.to, 0, flow.bytes, 1, parts_.back());
    }
  }

  void received(double now_s, const Flow& flow) {
    --missing_[flow.to];
    const auto site = static_cast<std::size_t>(flow.to);
    while (missing_[flow.to] <= 0 && step_[site] < static_cast<int>(steps_.size())) {
      end_s_[site] = now_s;
      if (step_[site] + 1 == static_cast<int>(steps_.size())) return;
      if (pause_s_ > 0) next_step(now_s + pause_s_, flow.from);
      next_step(now_s + pause_s_, flow.to);
      if (pause_s_ > 0) return;
    }
  }

  std::vector<std::vector<Flow>> steps_;
  double pause_s_;
  platforms::Platform platform_;
  costmodel::NetworkModel network_;
  std::vector<costmodel::Node> nodes_;
  sim::TcpNetwork tcp_;
  std::vector<int> step_;       // [site]: its current step
  std::map<int, int> missing_;  // by site: flows of its steps so far that have not arrived
  std::vector<double> end_s_;
  std::vector<Flow> arrived_;
  std::deque<Part> parts_;
};

}  // namespace

std::vector<double> fomoe_transfer(const std::string& traffic, const Star& star, long bytes,
                                   const costmodel::NetworkModel& network) {
  if (network.initial_window_bytes) return Transfer(traffic, star, bytes, network).run();
  if (traffic != "bulk") throw std::invalid_argument("without connections, only one transfer is compared");
  return fomoe_end_s(
      tests::transfer_only(static_cast<int>(star.size()), costmodel::Pattern::point_to_point,
                           costmodel::Collective::ring, {tests::exchange_of(std::vector{0, 1}, bytes / 4)}),
      platform_of(star), network, 0);
}

}  // namespace fomoe::oracles
