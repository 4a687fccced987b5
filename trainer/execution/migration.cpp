// Executor::migrate: moves experts to their new owners.
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "trainer/execution/executor.hpp"

namespace fomoe::trainer {

using costmodel::Content;
using costmodel::NodeId;
using costmodel::NodeKind;
using costmodel::Payload;
using costmodel::TensorGroup;
using costmodel::TrafficClass;
using costmodel::Transfer;

namespace {

bool contains(std::span<const int> nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

bool migrates(const Transfer& transfer) {
  return std::any_of(transfer.exchanges.begin(), transfer.exchanges.end(), [](const auto& exchange) {
    return std::any_of(exchange.payloads.begin(), exchange.payloads.end(),
                       [](const Payload& payload) { return payload.traffic == TrafficClass::migration; });
  });
}

// Migration has three steps:
//   - The old owners send the experts.
//   - Every node changes to the next round's experts.
//   - The new owners write the values that arrived. Owners that stay also write the values that the new
//     owners decoded, since all owners must agree even if the wire format is lossy.
// If the outer optimiser's state is not sent, this state is reset for every expert whose owners change, at
// all its owners, including those that stay.
void Executor::migrate(const Transfer& work, std::int64_t round, const std::string& name) {
  const double start_s = now_s();
  std::vector<std::pair<PayloadAt, at::Tensor>> arrived;
  const TransferOptions options = transfer_options(work, round);
  const std::unique_ptr<TransferRun> run = std::move(expected_[static_cast<std::size_t>(op_)]);
  run->read([this, &work](const PayloadAt& at) { return source(work, at); });
  // Run the transfer on the background threads, so that it takes its turn if transfers run one after another.
  background_.run([&run] { run->exchange(); }).get();
  run->deliver([&](const PayloadAt& at, const at::Tensor& values) { arrived.emplace_back(at, values); });

  const costmodel::Placement before = plan_.placement(round), next = plan_.placement(round + 1);
  for (auto& [node, worker] : workers_) {
    if (plan_.nodes[static_cast<std::size_t>(node)].kind != NodeKind::worker) continue;
    worker->change_experts(expert_choice(&next, node, scenario_.strategy.skip_token));
  }
  std::vector<std::pair<int, int>> moved;
  std::vector<bool> took_part(plan_.nodes.size(), false);
  std::set<std::tuple<Content, int, int>> sent;  // an expert may have several new owners
  bool with_outer_state = false;
  for (const costmodel::Exchange& exchange : work.exchanges) {
    for (const NodeId node : exchange.nodes) took_part[static_cast<std::size_t>(node)] = true;
    for (const Payload& payload : exchange.payloads) {
      with_outer_state = with_outer_state || payload.content == Content::outer_moment1;
      const TensorGroup& group = plan_.groups[static_cast<std::size_t>(payload.groups.front())];
      const int layer = static_cast<int>(group.layer_begin), expert = static_cast<int>(group.expert_begin);
      moved.emplace_back(layer, expert);
      ages_.restarted(exchange.nodes.back(), layer, expert);
      if (!sent.insert({payload.content, layer, expert}).second) continue;
      for (const NodeId node : next.owners(layer, expert)) {
        const auto found = workers_.find(node);
        if (found == workers_.end() || !contains(before.owners(layer, expert), node)) continue;
        found->second->write(payload, as_read(payload, found->second->read(payload), options),
                             Anchor::replaced);
      }
    }
  }
  for (const auto& [at, values] : arrived) sink(work, at, values);
  for (auto& [node, worker] : workers_) {
    if (!with_outer_state) worker->reset_outer_state(moved);
    if (took_part[static_cast<std::size_t>(node)]) note_transfer(node, {round, op_}, name, start_s, now_s());
  }
}

}  // namespace fomoe::trainer
