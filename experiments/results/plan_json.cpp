#include "experiments/results/plan_json.hpp"

#include <set>

#include "experiments/results/json_values.hpp"
#include "experiments/results/plan_names.hpp"

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
  if (format.entropy_coded) json["entropy_coded"] = true;
  if (format.block_elements != 0) json["block_elements"] = format.block_elements;
  if (format.scale_bits != 0) json["scale_bits"] = format.scale_bits;
  return json;
}

Json payload_json(const Payload& payload) {
  Json json = {{"content", name_of(payload.content)}, {"traffic", name_of(payload.traffic)}};
  if (!payload.groups.empty()) json["groups"] = payload.groups;
  json["elements"] = payload.elements;
  json["format"] = format_json(payload.format);
  if (payload.result) json["result"] = format_json(*payload.result);
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
  // A pattern that is not a collective keeps the scenario's "hierarchical", which has no effect on it.
  const Collective collective =
      transfer.collective == Collective::hierarchical ? Collective::direct : transfer.collective;
  return {{"pattern", name_of(transfer.pattern)},
          {"collective", name_of(collective)},
          {"exchanges", std::move(exchanges)}};
}

Json compute_json(const Compute& compute) {
  Json json = {{"work", name_of(compute.work)}, {"nodes", compute.nodes}};
  if (compute.repeat != 1) json["repeat"] = compute.repeat;
  if (compute.share != 1) json["share"] = compute.share;
  if (!compute.whole_model) json["whole_model"] = false;
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
  for (const EarlierOp& before : op.after_earlier) {
    if (before.rounds_back == 1) {
      json["after_previous_round"].push_back(before.op);
    } else {
      json["after_earlier"].push_back({{"op", before.op}, {"rounds_back", before.rounds_back}});
    }
  }
  if (op.detached) json["detached"] = true;
  if (!op.receive_after.empty()) json["receive_after"] = op.receive_after;
  return json;
}

std::string written(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Writes one entry per line. The file stays readable, and a large plan is not held in memory twice.
std::string list(const std::vector<std::string>& entries, const std::string& indent) {
  if (entries.empty()) return "[]";
  std::string text = "[";
  for (const std::string& entry : entries)
    text.append(text == "[" ? "\n" : ",\n").append(indent).append("  ").append(entry);
  return text + '\n' + indent + ']';
}

/// Rounds with the same operations, or with the same owners of experts, form one entry with several indices.
struct Described {
  std::vector<std::int64_t> indices;
  std::string ops;
};

void describe(std::vector<Described>& rounds, const Plan& plan, std::int64_t index) {
  std::vector<std::string> lines;
  for (const Op& op : plan.round(index).ops) lines.push_back(written(op_json(op)));
  std::string ops = list(lines, "    ");
  for (Described& round : rounds) {
    if (round.ops != ops) continue;
    round.indices.push_back(index);
    return;
  }
  rounds.push_back({{index}, std::move(ops)});
}

/// The nodes that hold each expert: [layer with experts][expert].
Json owners_json(const Placement& placement) {
  Json layers = Json::array();
  for (int layer = 0; layer < placement.layers(); ++layer) {
    Json experts = Json::array();
    for (int expert = 0; expert < placement.experts(); ++expert) {
      const auto owners = placement.owners(layer, expert);
      experts.push_back(std::vector<int>(owners.begin(), owners.end()));
    }
    layers.push_back(std::move(experts));
  }
  return layers;
}

/// Who holds which expert while each executed round trains, and after it. Exchanges alone do not tell: an
/// expert with one owner is in none.
std::vector<std::string> placements(const Plan& plan,
                                    const std::vector<std::vector<std::int64_t>>& executed) {
  if (!plan.placement) return {};
  std::set<std::int64_t> indices;
  for (const std::vector<std::int64_t>& of_class : executed) {
    for (const std::int64_t index : of_class) indices.insert({index, index + 1});
  }
  std::vector<Described> different;
  for (const std::int64_t index : indices) {
    std::string owners = written(owners_json(plan.placement(index)));
    if (different.empty() || different.back().ops != owners) different.push_back({{}, std::move(owners)});
    different.back().indices.push_back(index);
  }
  std::vector<std::string> entries;
  for (const Described& one : different)
    entries.push_back("{\"rounds\": " + written(one.indices) + ", \"owners\": " + one.ops + '}');
  return entries;
}

}  // namespace

std::string plan_json(const Plan& plan, const std::vector<std::vector<std::int64_t>>& executed) {
  std::vector<std::string> nodes, groups, classes, rounds, averaged, notes;
  std::vector<Described> described;
  for (const Node& node : plan.nodes)
    nodes.push_back(
        written({{"kind", name_of(node.kind)}, {"site", node.site}, {"sequences", node.sequences}}));
  for (const TensorGroup& group : plan.groups) groups.push_back(written(group_json(group)));
  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const RoundClass& alike = plan.classes[c];
    Json one = {{"count", alike.count},
                {"steps", alike.steps},
                {"identical", alike.identical},
                {"overlapping", alike.overlapping}};
    if (alike.own_pace) one["own_pace"] = true;
    one["rounds"] = executed[c];
    classes.push_back(written(one));
    for (const std::int64_t index : executed[c]) describe(described, plan, index);
  }
  for (Described& round : described) {
    rounds.push_back("{\"indices\": " + written(round.indices) + ", \"ops\": " + round.ops + '}');
    round.ops.clear();
  }
  for (const PathRate& rate : plan.averaged_paths)
    averaged.push_back(written({{"from", rate.from}, {"to", rate.to}, {"bytes_per_s", rate.bytes_per_s}}));
  for (const std::string& note : plan.notes) notes.push_back(written(note));
  const std::vector<std::string> owners = placements(plan, executed);
  return "{\n  \"schema\": \"fomoe.plan/1\",\n  \"optimizer_steps\": " + std::to_string(plan.steps) +
         ",\n  \"nodes\": " + list(nodes, "  ") + ",\n  \"groups\": " + list(groups, "  ") +
         ",\n  \"classes\": " + list(classes, "  ") + ",\n  \"rounds\": " + list(rounds, "  ") +
         (averaged.empty() ? "" : ",\n  \"averaged_paths\": " + list(averaged, "  ")) +
         (owners.empty() ? "" : ",\n  \"placements\": " + list(owners, "  ")) +
         ",\n  \"notes\": " + list(notes, "  ") + "\n}\n";
}

}  // namespace fomoe::scenario
