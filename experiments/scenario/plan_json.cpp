#include "experiments/scenario/plan_json.hpp"

#include "experiments/scenario/json_values.hpp"
#include "experiments/scenario/plan_names.hpp"

namespace fomoe::scenario {
namespace {

using namespace costmodel;

Json group_json(const TensorGroup& group) {
  Json classes = Json::array();
  for (const TensorClass c : group.classes) classes.push_back(name_of(c));
  return {{"classes", classes},
          {"layers", {group.layer_begin, group.layer_end}},
          {"experts", {group.expert_begin, group.expert_end}},
          {"elements", group.elements}};
}

Json format_json(const WireFormat& format) {
  Json json = {{"type", name_of(format.type)}};
  if (format.sparse()) json["kept_share"] = format.kept_share;
  if (format.index_bits != 0) json["index_bits"] = format.index_bits;
  if (format.block_elements != 0) json["block_elements"] = format.block_elements;
  if (format.scale_bits != 0) json["scale_bits"] = format.scale_bits;
  return json;
}

Json payload_json(const Payload& payload) {
  Json json = {{"content", name_of(payload.content)}, {"traffic", name_of(payload.traffic)}};
  if (!payload.groups.empty()) json["groups"] = payload.groups;
  json["elements"] = payload.elements;
  json["format"] = format_json(payload.format);
  if (payload.chunks != 1) {
    json["chunk"] = payload.chunk;
    json["chunks"] = payload.chunks;
  }
  return json;
}

Json transfer_json(const Transfer& transfer) {
  Json exchanges = Json::array();
  for (const Exchange& exchange : transfer.exchanges) {
    Json payloads = Json::array();
    for (const Payload& payload : exchange.payloads) payloads.push_back(payload_json(payload));
    exchanges.push_back({{"nodes", exchange.nodes}, {"payloads", std::move(payloads)}});
  }
  // Patterns that are no collective keep the scenario's "hierarchical", which means nothing to them.
  const Collective collective =
      transfer.collective == Collective::ring ? Collective::ring : Collective::direct;
  return {{"pattern", name_of(transfer.pattern)},
          {"collective", name_of(collective)},
          {"exchanges", std::move(exchanges)}};
}

Json compute_json(const Compute& compute) {
  Json json = {{"work", name_of(compute.work)}, {"nodes", compute.nodes}};
  if (compute.repeat != 1) json["repeat"] = compute.repeat;
  if (compute.share != 1) json["share"] = compute.share;
  return json;
}

Json op_json(const Op& op) {
  Json json = {{"name", op.name}};
  if (const auto* transfer = std::get_if<Transfer>(&op.what)) {
    json["transfer"] = transfer_json(*transfer);
  } else {
    json["compute"] = compute_json(std::get<Compute>(op.what));
  }
  json["after"] = op.after;
  if (!op.after_previous_round.empty()) json["after_previous_round"] = op.after_previous_round;
  if (op.detached) json["detached"] = true;
  return json;
}

// Rounds with the same operations become one entry with several indices.
void add_round(Json& rounds, const Plan& plan, std::int64_t index) {
  Json ops = Json::array();
  for (const Op& op : plan.round(index).ops) ops.push_back(op_json(op));
  for (Json& entry : rounds) {
    if (entry["ops"] != ops) continue;
    entry["indices"].push_back(index);
    return;
  }
  rounds.push_back({{"indices", Json::array({index})}, {"ops", std::move(ops)}});
}

}  // namespace

std::string plan_json(const Plan& plan, const std::vector<std::vector<std::int64_t>>& executed) {
  Json nodes = Json::array(), groups = Json::array(), classes = Json::array(), rounds = Json::array();
  for (const Node& node : plan.nodes)
    nodes.push_back({{"kind", name_of(node.kind)}, {"site", node.site}, {"sequences", node.sequences}});
  for (const TensorGroup& group : plan.groups) groups.push_back(group_json(group));
  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const RoundClass& rounds_alike = plan.classes[c];
    classes.push_back({{"count", rounds_alike.count},
                       {"steps", rounds_alike.steps},
                       {"identical", rounds_alike.identical},
                       {"overlapping", rounds_alike.overlapping},
                       {"rounds", executed[c]}});
    for (const std::int64_t index : executed[c]) add_round(rounds, plan, index);
  }
  return to_text({{"schema", "fomoe.plan/1"},
                  {"optimizer_steps", plan.steps},
                  {"nodes", nodes},
                  {"groups", groups},
                  {"classes", classes},
                  {"rounds", rounds},
                  {"notes", plan.notes}});
}

}  // namespace fomoe::scenario
