#include "tests/benchmarks/by_hand.hpp"

#include <algorithm>
#include <simgrid/kernel/Timer.hpp>
#include <string>
#include <vector>

#include "platforms/support/child.hpp"
#include "sim/fluid/simgrid_engine.hpp"
#include "sim/fluid/simgrid_version.hpp"

namespace fomoe::tests {

namespace s4u = simgrid::s4u;

namespace {

class Ring {
 public:
  Ring(int sites, int rounds, std::uint64_t bytes, double bytes_per_s, double latency_s)
      : sites_(sites), steps_(rounds * 2 * (sites - 1)), bytes_(bytes), latency_s_(latency_s) {
    s4u::NetZone* zone = sim::make_zone(sim::simgrid_engine(), "ring");
    std::vector<s4u::Link*> up, down;
    for (int site = 0; site < sites; ++site) {
      const std::string name = std::to_string(site);
      hosts_.push_back(sim::make_host(*zone, name, 1)->seal());
      up.push_back(sim::make_link(*zone, "up" + name, bytes_per_s)->set_latency(0)->seal());
      down.push_back(sim::make_link(*zone, "down" + name, bytes_per_s)->set_latency(0)->seal());
    }
    zone->seal();
    for (int site = 0; site < sites; ++site) {
      const auto next = static_cast<std::size_t>((site + 1) % sites), from = static_cast<std::size_t>(site);
      sim::add_route(*zone, hosts_[from], hosts_[next],
                     {s4u::LinkInRoute(up[from]), s4u::LinkInRoute(down[next])});
    }
    sent_.assign(static_cast<std::size_t>(sites), 0);
    received_ = step_ = sent_;
    flows_.resize(static_cast<std::size_t>(sites));
    s4u::Comm::on_completion_cb([this](const auto& comm) {
      const auto* sender = static_cast<const s4u::Comm&>(comm).template get_data<int>();
      ended(*sender);
    });
    for (int site = 0; site < sites; ++site) numbers_.push_back(site);
  }

  double run() {
    for (int site = 0; site < sites_; ++site) send(site);
    sim::simgrid_engine().run();
    return s4u::Engine::get_clock();
  }

 private:
  void send(int site) {
    simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + latency_s_, [this, site] {
      const auto at = static_cast<std::size_t>(site);
      auto flow = s4u::Comm::sendto_init(hosts_[at], hosts_[static_cast<std::size_t>((site + 1) % sites_)]);
      flow->set_payload_size(bytes_);
      flow->set_data(&numbers_[at]);
      flow->start();
      flows_[at] = flow;
    });
  }

  // A site goes on when it has sent and received its chunks of a step.
  void ended(int sender) {
    const int receiver = (sender + 1) % sites_;
    ++sent_[static_cast<std::size_t>(sender)];
    ++received_[static_cast<std::size_t>(receiver)];
    for (const int site : {sender, receiver}) {
      const auto at = static_cast<std::size_t>(site);
      if (std::min(sent_[at], received_[at]) == step_[at]) continue;
      if (++step_[at] < steps_) send(site);
    }
  }

  int sites_, steps_;
  std::uint64_t bytes_;
  double latency_s_;
  std::vector<s4u::Host*> hosts_;
  std::vector<int> sent_, received_, step_, numbers_;
  std::vector<s4u::CommPtr> flows_;
};

}  // namespace

double rings_by_hand(int sites, int rounds, std::uint64_t bytes, double bytes_per_s, double latency_s) {
  (void)sim::simgrid_engine();
  Child child([&](ChildOutput& output) {
    auto* ring = new Ring(sites, rounds, bytes, bytes_per_s, latency_s);
    output.put(ring->run());
  });
  double seconds = 0;
  child.get(seconds);
  child.finish();
  return seconds;
}

}  // namespace fomoe::tests
