#include <set>
#include <string>

#include "platforms/input_error.hpp"
#include "trainer/executor.hpp"
#include "trainer/wire_codec.hpp"

namespace fomoe::trainer {

using costmodel::Compute;
using costmodel::Content;
using costmodel::Pattern;
using costmodel::TrafficClass;
using costmodel::Transfer;
using costmodel::Work;

namespace {

[[noreturn]] void refuse_method(const std::string& got) {
  throw InputError(
      "strategy.method", got,
      "a method that fomoe-train executes: sums and averages after steps, reductions to a server, "
      "migration of experts; nothing inside a step, such as buckets behind the backward pass",
      "method = \"diloco\"");
}

void check_model(const costmodel::ModelShape& shape) {
  if (shape.architecture != costmodel::ModelShape{}.architecture || shape.dense_layers > 0 ||
      shape.experts < 1 || shape.opaque) {
    throw InputError("model", "a model of architecture " + shape.architecture,
                     "one of the FoMoE paper's family, a preset or shape keys", "preset = \"small\"");
  }
}

void check_transfer(const costmodel::Scenario& scenario, const costmodel::Op& op, const Transfer& transfer) {
  const std::string got = "\"" + scenario.strategy.method + "\", which has the operation \"" + op.name + "\"";
  for (const costmodel::Exchange& exchange : transfer.exchanges) {
    for (const costmodel::Payload& payload : exchange.payloads) {
      if (payload.traffic == TrafficClass::data || payload.traffic == TrafficClass::checkpoint ||
          payload.traffic == TrafficClass::rejoin) {
        throw InputError("traffic", "a [traffic] table",
                         "none: fomoe-train sends what the method sends and nothing beside it",
                         "a scenario without [traffic]");
      }
      if (payload.content == Content::activation || payload.content == Content::training_state ||
          payload.content == Content::sequences || payload.content == Content::key || payload.chunks != 1 ||
          payload.format.type == costmodel::ElementType::int32) {
        refuse_method(got);
      }
      if (payload.traffic == TrafficClass::migration && payload.groups.size() != 1) refuse_method(got);
      if (transfer.pattern == Pattern::point_to_point && payload.traffic != TrafficClass::migration)
        refuse_method(got);
      try {
        (void)WireCodec(payload.format);
      } catch (const std::invalid_argument& error) {
        throw InputError("strategy.payload_dtype", error.what(), "fp32, bf16 or fp16 with compression",
                         "payload_dtype = \"bf16\"");
      }
    }
  }
  if (transfer.pattern == Pattern::reduce_scatter || transfer.pattern == Pattern::all_gather ||
      transfer.pattern == Pattern::all_to_all) {
    refuse_method(got);
  }
}

bool lossy(const costmodel::WireFormat& format) { return format.sparse() || format.block_elements > 0; }

void note_transfer(const Transfer& transfer, PlanNeeds& needs) {
  for (const costmodel::Exchange& exchange : transfer.exchanges) {
    for (const costmodel::Payload& payload : exchange.payloads) {
      if (payload.content != Content::pseudo_gradient) continue;
      needs.residuals = needs.residuals || lossy(payload.format);
      for (std::size_t p = 0; p < exchange.nodes.size(); ++p) {
        const bool receives_only = transfer.pattern == Pattern::reduce && p == 0;
        if (!receives_only) needs.pseudo_gradients[static_cast<std::size_t>(exchange.nodes[p])] = true;
      }
    }
  }
}

}  // namespace

PlanNeeds needs_of(const costmodel::Scenario& scenario, const costmodel::Plan& plan) {
  check_model(scenario.model);
  PlanNeeds needs;
  needs.outer_steps.resize(plan.nodes.size(), false);
  needs.pseudo_gradients.resize(plan.nodes.size(), false);
  std::set<std::int64_t> rounds = {plan.rounds - 1};
  for (const costmodel::RoundClass& kind : plan.classes) rounds.insert(kind.round_at(0));
  for (const std::int64_t index : rounds) {
    for (const costmodel::Op& op : plan.round(index).ops) {
      const std::string got =
          "\"" + scenario.strategy.method + "\", which has the operation \"" + op.name + "\"";
      needs.detached = needs.detached || op.detached;
      if (const auto* transfer = std::get_if<Transfer>(&op.what)) {
        check_transfer(scenario, op, *transfer);
        note_transfer(*transfer, needs);
        continue;
      }
      const auto& compute = std::get<Compute>(op.what);
      // The differences of a whole model that is still under way would be overwritten before they are sent.
      if (!op.after_earlier.empty() && (compute.work != Work::outer_step || compute.whole_model))
        refuse_method(got);
      if (compute.work == Work::outer_step) {
        for (const costmodel::NodeId node : compute.nodes)
          needs.outer_steps[static_cast<std::size_t>(node)] = true;
      } else if (compute.share != 1 || compute.work == Work::forward || compute.work == Work::backward) {
        refuse_method(got);
      }
    }
  }
  return needs;
}

}  // namespace fomoe::trainer
