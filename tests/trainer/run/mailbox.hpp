// Runs the sites of a scenario in one process, each on its own thread. Their messages go through a mailbox in
// which a test can hold messages back: what must run at the same time then does so, or the test ends with an
// error. No test depends on a clock.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "tests/trainer/run/training_case.hpp"

namespace fomoe::trainer::testing {

class Mailbox {
 public:
  using NodeId = costmodel::NodeId;
  /// Whether `site` may receive messages of the channel; called with the mailbox locked. Empty: always.
  std::function<bool(NodeId site, int channel)> opens;
  /// Number of calls of move(), by site.
  std::map<NodeId, int> moves;

  [[nodiscard]] bool posted(NodeId site, int channel) const { return posted_.contains({site, channel}); }
  /// Makes a change to data on which `opens` depends, and wakes the waiting sites.
  void changed(const std::function<void()>& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  void move(NodeId site, const std::vector<Message*>& messages, int channel) {
    std::unique_lock lock(mutex_);
    ++moves[site];
    posted_.insert({site, channel});
    for (Message* message : messages) {
      if (message->from == site)
        queues_[{channel, message->from, message->to}].push_back(message->sent.clone());
    }
    changed_.notify_all();
    for (Message* message : messages) {
      if (message->from == site) continue;
      auto& queue = queues_[{channel, message->from, message->to}];
      const bool came = changed_.wait_for(lock, std::chrono::seconds(20),
                                          [&] { return !queue.empty() && (!opens || opens(site, channel)); });
      if (!came) throw std::runtime_error("a message was held back for 20 s: what should go on did not");
      message->received = queue.front();
      queue.pop_front();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<NodeId, int>> posted_;
  std::map<std::tuple<int, NodeId, NodeId>, std::deque<at::Tensor>> queues_;
};

class MailboxTransport : public Transport {
 public:
  MailboxTransport(const std::vector<costmodel::Node>& nodes, costmodel::NodeId own, Mailbox& mailbox)
      : Transport(nodes, {own}), own_(own), mailbox_(&mailbox) {}

 protected:
  void move(const std::vector<Message*>& messages, int channel) override {
    mailbox_->move(own_, messages, channel);
  }

 private:
  costmodel::NodeId own_;
  Mailbox* mailbox_;
};

/// One site of a scenario in which each site has one node.
struct Site {
  Site(const costmodel::Scenario& what, const TrainingOptions& options, costmodel::NodeId own,
       Mailbox& mailbox)
      : scenario(what),
        node(own),
        plan(costmodel::make_plan(scenario)),
        transport(plan.nodes, own, mailbox),
        batches(Corpus::synthetic(scenario.model.vocabulary, 50'000, scenario.seed),
                scenario.model.sequence_length, scenario.workload.global_batch_sequences,
                /*validation_sequences=*/8, scenario.seed),
        executor(scenario, plan, transport, batches, options) {
    executor.on_transfer = [this](const TransferRecord& record) { transfers.push_back(record); };
  }
  void run() {
    at::set_num_threads(1);
    for (std::int64_t round = 0; round < plan.rounds; ++round) executor.run_round(round);
    executor.finish();
  }
  [[nodiscard]] at::Tensor weights() {
    std::vector<at::Tensor> parts;
    for (const Parameter& parameter : executor.worker(node).model().parameters())
      parts.push_back(parameter.master.detach().reshape({-1}));
    return at::cat(parts);
  }

  costmodel::Scenario scenario;
  costmodel::NodeId node;
  costmodel::Plan plan;
  MailboxTransport transport;
  Batches batches;
  Executor executor;
  std::vector<TransferRecord> transfers;
};

using Sites = std::vector<std::unique_ptr<Site>>;

inline Sites sites_of(const costmodel::Scenario& scenario, const TrainingOptions& options, Mailbox& mailbox) {
  at::set_num_threads(1);
  Sites sites;
  for (int site = 0; site < scenario.sites(); ++site)
    sites.push_back(std::make_unique<Site>(scenario, options, site, mailbox));
  return sites;
}

/// Runs all sites at the same time to the end of the run. Throws what the first failing site threw.
inline void run(const Sites& sites) {
  std::vector<std::future<void>> running;
  for (const auto& site : sites) running.push_back(std::async(std::launch::async, [&site] { site->run(); }));
  for (auto& one : running) one.wait();
  for (auto& one : running) one.get();
}

/// Checks that each site has the same bits, and has sent as many bytes, as in one process that trains all
/// sites in turn.
inline void check_as_in_turn(const Sites& sites, const costmodel::Scenario& scenario,
                             const TrainingOptions& options = real_options()) {
  Training in_turn(scenario, options);
  in_turn.run();
  in_turn.executor.finish();
  for (const auto& site : sites) {
    CHECK(at::equal(site->weights(), in_turn.weights(site->node)));
    CHECK(site->transport.traffic(site->node).sent == in_turn.transport.traffic(site->node).sent);
  }
}

}  // namespace fomoe::trainer::testing
