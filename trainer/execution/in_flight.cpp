// Executor: transfers that continue into the next round, in checkpoints. What arrives does not depend on when
// it arrives, so that a checkpoint waits for it and keeps it beside the weights. The round that follows
// applies it after the same step as without the checkpoint.
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/execution/executor.hpp"

namespace fomoe::trainer {

using costmodel::NodeId;
using costmodel::OpId;
using costmodel::Pattern;
using costmodel::Payload;
using costmodel::Transfer;

namespace {

// Of a tensor in a checkpoint. A transfer sends each group of tensors once.
std::string name_in_flight(OpId op, const Payload& payload) {
  return kInFlight + std::to_string(op) + "." + std::to_string(static_cast<int>(payload.content)) + "." +
         std::to_string(payload.groups.front());
}
std::string name_of_steps(OpId op) { return kInFlight + std::to_string(op) + ".steps"; }

bool gets_result(const Transfer& transfer, std::size_t position) {
  switch (transfer.pattern) {
    case Pattern::reduce:
      return position == 0;
    case Pattern::broadcast:
    case Pattern::point_to_point:
      return position > 0;
    default:
      return true;
  }
}

}  // namespace

NamedTensors Executor::in_flight(NodeId node) {
  NamedTensors state;
  for (const auto& [which, flight] : in_flight_) {
    if (which.first != round_) throw std::logic_error("a transfer has outlasted the round after its own");
    flight->done.get();
    bool takes_part = false;
    flight->run->deliver([&, op = which.second](const PayloadAt& at, const at::Tensor& mean) {
      if (at.node != node) return;
      takes_part = true;
      state.emplace_back(name_in_flight(op, at.payload),
                         mean.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    });
    if (takes_part)
      state.emplace_back(name_of_steps(which.second),
                         at::full({1}, started_at_.at(which).at(node), at::TensorOptions().dtype(at::kLong)));
  }
  return state;
}

void Executor::restore_in_flight(std::int64_t index, const ReadInFlight& read) {
  const auto plan = std::make_shared<const costmodel::RoundPlan>(plan_.round(index));
  for (OpId op = 0; op < static_cast<OpId>(plan->ops.size()); ++op) {
    const auto* work = std::get_if<Transfer>(&plan->ops[static_cast<std::size_t>(op)].what);
    if (work == nullptr || !plan->ops[static_cast<std::size_t>(op)].detached) continue;
    Arrived arrived{plan, work};
    std::map<NodeId, std::int64_t> sent_after;  // steps, by node
    for (const costmodel::Exchange& exchange : work->exchanges) {
      for (const Payload& payload : exchange.payloads) {
        for (std::size_t p = 0; p < exchange.nodes.size(); ++p) {
          const NodeId node = exchange.nodes[p];
          if (!transport_.hosts(node) || to_partial(*work, payload) || !gets_result(*work, p)) continue;
          arrived.means.emplace_back(PayloadAt{exchange, payload, node},
                                     read(node, name_in_flight(op, payload), payload.elements));
          if (!sent_after.contains(node))
            sent_after[node] = read(node, name_of_steps(op), 1).item<std::int64_t>();
        }
      }
    }
    if (arrived.means.empty()) continue;
    started_at_[{index, op}] = std::move(sent_after);
    arrived_.emplace(OpOfRound{index, op}, std::move(arrived));
  }
}

void Executor::settle_arrived(const OpOfRound& which) {
  const auto found = arrived_.find(which);
  if (found == arrived_.end()) return;
  for (const auto& [at, mean] : found->second.means) sink(*found->second.work, at, mean.to(options_.device));
  settle_ages(*found->second.work);
  arrived_.erase(found);
}

}  // namespace fomoe::trainer
