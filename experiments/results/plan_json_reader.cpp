#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>

#include "experiments/json/json_object.hpp"
#include "experiments/results/plan_json.hpp"
#include "experiments/results/plan_payload_reader.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

using namespace costmodel;

// A plan must contain the first rounds and the last one, from which the steady state of overlapping rounds is
// computed.
constexpr std::int64_t kFewestOverlapping = 5;

class PlanReader {
 public:
  PlanReader(const std::string& path, int sites, bool store)
      : path_(path), sites_(sites), store_(store), json_(read_json_file(path, kPlan)) {}

  Plan read() {
    const JsonObject top = object(json_, "",
                                  {"schema", "optimizer_steps", "nodes", "groups", "classes", "rounds",
                                   "averaged_paths", "placements", "notes"});
    read_nodes(top);
    read_groups(top);
    read_rounds(top);
    read_classes(top);
    read_averaged_paths(top);
    check_placements(top);
    if (top.has("optimizer_steps")) plan_.steps = top.count("optimizer_steps", 1, kMostRounds * kMostSteps);
    if (top.has("notes")) {
      for (const Json& note : top.array("notes")) {
        if (!note.is_string()) top.refuse_value("notes", note, "texts");
        plan_.notes.push_back(note.get<std::string>());
      }
    }
    plan_.notes.push_back("the plan was read from " + path_ + "; the scenario's method did not make it");
    plan_.round = [rounds = rounds_, classes = plan_.classes](std::int64_t index) {
      if (const auto found = rounds.find(index); found != rounds.end()) return *found->second;
      return *rounds.at(like(classes, index));
    };
    return std::move(plan_);
  }

 private:
  /// The described round that is like the one with this index, if the classes list the rounds in turn.
  static std::int64_t like(const std::vector<RoundClass>& classes, std::int64_t index) {
    for (const RoundClass& one : classes) {
      if (index < one.count) return one.round_at(index);
      index -= one.count;
    }
    throw std::out_of_range("the plan has fewer rounds");
  }

  [[nodiscard]] JsonObject object(const Json& json, const std::string& where,
                                  const std::vector<std::string>& keys) const {
    return {path_, kPlan, where, json, keys};
  }

  void read_nodes(const JsonObject& top) {
    for (const Json& json : top.filled_array("nodes")) {
      const JsonObject reader =
          object(json, fmt::format("nodes[{}]", plan_.nodes.size()), {"kind", "site", "sequences"});
      if (static_cast<std::int64_t>(plan_.nodes.size()) == kMostNodes)
        top.refuse("nodes", "more nodes", fmt::format("at most {} nodes", kMostNodes));
      Node node;
      node.kind = choice(reader, "kind", NodeKind::worker, false);
      const bool store = node.kind == NodeKind::store;
      if (store && !store_)
        reader.refuse("kind", "\"store\"", "\"worker\" or \"server\", or a scenario with [platform.store]");
      const int first = store ? sites_ : 0, last = store ? sites_ : sites_ - 1;
      const std::string expected =
          store ? fmt::format("{}, the number of sites, for a store", sites_)
                : fmt::format("a site of the scenario's platform, a whole number from 0 to {}", last);
      const Json& site = reader.at("site", expected);
      if (!site.is_number_integer() || site < first || site > last)
        reader.refuse_value("site", site, expected);
      node.site = site.get<int>();
      if (reader.has("sequences"))
        node.sequences = reader.number("sequences", "sequences of a step, zero or more");
      plan_.nodes.push_back(node);
    }
  }

  static std::pair<std::int64_t, std::int64_t> range(const JsonObject& reader, const std::string& name) {
    const std::string expected = "two whole numbers: the first and one more than the last";
    const auto ends = reader.counts(name, 0, kMostElements, expected);
    if (ends.size() != 2 || ends[0] > ends[1])
      reader.refuse(name, reader.at(name, expected).dump(), expected);
    return {ends[0], ends[1]};
  }

  void read_groups(const JsonObject& top) {
    if (!top.has("groups")) return;
    for (const Json& json : top.array("groups")) {
      const JsonObject reader = object(json, fmt::format("groups[{}]", plan_.groups.size()),
                                       {"classes", "layers", "experts", "elements"});
      TensorGroup group;
      for (const Json& written : reader.array("classes")) {
        const auto& names = names_of(TensorClass{});
        const auto found = std::find_if(names.begin(), names.end(),
                                        [&](const auto& pair) { return written == pair.second; });
        if (found == names.end())
          reader.refuse_value("classes", written,
                              "\"embedding\", \"attention\", \"norm\", \"router\", \"expert\"");
        group.classes.push_back(found->first);
      }
      std::tie(group.layer_begin, group.layer_end) = range(reader, "layers");
      std::tie(group.expert_begin, group.expert_end) = range(reader, "experts");
      group.elements = reader.count("elements", 0, kMostElements);
      plan_.groups.push_back(std::move(group));
    }
  }

  [[nodiscard]] std::vector<NodeId> nodes(const JsonObject& reader) const {
    const auto last = static_cast<std::int64_t>(plan_.nodes.size()) - 1;
    const std::string expected = fmt::format("different nodes of the plan, whole numbers from 0 to {}", last);
    (void)reader.filled_array("nodes");
    std::vector<NodeId> ids;
    std::set<std::int64_t> seen;
    for (const std::int64_t id : reader.counts("nodes", 0, last, expected)) {
      if (!seen.insert(id).second) reader.refuse("nodes", fmt::format("{} twice", id), expected);
      ids.push_back(static_cast<NodeId>(id));
    }
    return ids;
  }

  [[nodiscard]] Transfer transfer(const Json& json, const std::string& where) const {
    const JsonObject reader = object(json, where, {"pattern", "collective", "exchanges"});
    Transfer transfer;
    transfer.pattern = choice(reader, "pattern", Pattern::all_reduce, true);
    transfer.collective = choice(reader, "collective", Collective::direct, false);
    for (const Json& entry : reader.array("exchanges")) {
      const std::string here = fmt::format("{}.exchanges[{}]", where, transfer.exchanges.size());
      const JsonObject inner = object(entry, here, {"nodes", "payloads"});
      Exchange exchange;
      exchange.nodes = nodes(inner);
      if (transfer.pattern == Pattern::point_to_point && exchange.nodes.size() != 2)
        inner.refuse("nodes", fmt::format("{} nodes", exchange.nodes.size()),
                     "the sender and the receiver of point_to_point");
      if (transfer.collective == Collective::store && !costmodel::through_store(transfer))
        reader.refuse("collective", "\"store\"",
                      "another collective, because only all_reduce, all_to_all_broadcast and broadcast pass "
                      "through a store");
      if (transfer.collective == Collective::chain && transfer.pattern != Pattern::reduce &&
          transfer.pattern != Pattern::broadcast)
        reader.refuse("collective", "\"chain\"",
                      "another collective, because only reduce and broadcast pass along a chain");
      if (costmodel::through_store(transfer) &&
          (exchange.nodes.empty() ||
           plan_.nodes[static_cast<std::size_t>(exchange.nodes[0])].kind != NodeKind::store))
        inner.refuse("nodes", "another first node", "the store first, with the collective store");
      const bool halves = transfer.pattern == Pattern::all_reduce ||
                          transfer.pattern == Pattern::reduce_scatter ||
                          transfer.pattern == Pattern::all_gather;
      if (transfer.collective == Collective::recursive && halves &&
          !std::has_single_bit(exchange.nodes.size()))
        inner.refuse("nodes", fmt::format("{} nodes", exchange.nodes.size()),
                     "a power of two, because the collective recursive repeatedly halves the payload");
      for (const Json& part : inner.array("payloads"))
        exchange.payloads.push_back(
            read_payload(path_, part, fmt::format("{}.payloads[{}]", here, exchange.payloads.size()),
                         plan_.groups.size()));
      transfer.exchanges.push_back(std::move(exchange));
    }
    return transfer;
  }

  [[nodiscard]] Compute compute(const Json& json, const std::string& where) const {
    const JsonObject reader = object(json, where, {"work", "nodes", "repeat", "share", "whole_model"});
    Compute compute;
    compute.work = choice(reader, "work", Work::whole_step, true);
    compute.nodes = nodes(reader);
    if (reader.has("repeat")) compute.repeat = reader.count("repeat", 0, kMostSteps);
    if (reader.has("share")) compute.share = reader.number("share", "a share of the work, zero or more");
    if (reader.has("whole_model")) compute.whole_model = reader.boolean("whole_model");
    return compute;
  }

  void after_earlier(const JsonObject& reader, const std::string& where, Op& op) const {
    std::size_t position = 0;
    for (const Json& entry : reader.array("after_earlier")) {
      const std::string here = fmt::format("{}.after_earlier[{}]", where, position++);
      const JsonObject inner = object(entry, here, {"op", "rounds_back"});
      op.after_earlier.push_back({static_cast<OpId>(inner.count("op", 0, most_ops_ - 1)),
                                  inner.count("rounds_back", 1, kMostRounds)});
    }
  }

  /// The two nodes of a transfer that may be in a queue, or nothing.
  static std::vector<costmodel::NodeId> ends_of(const Op& op) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    const bool one = transfer != nullptr && transfer->pattern == Pattern::point_to_point &&
                     transfer->exchanges.size() == 1;
    return one ? transfer->exchanges.front().nodes : std::vector<costmodel::NodeId>{};
  }

  // An operation may wait only for earlier ones, so that no plan can deadlock.
  [[nodiscard]] Op op(const Json& json, const std::string& where, const std::vector<Op>& before) const {
    const auto index = static_cast<std::int64_t>(before.size());
    const JsonObject reader = object(json, where,
                                     {"name", "compute", "transfer", "after", "after_previous_round",
                                      "after_earlier", "detached", "receive_after"});
    Op op;
    op.name = reader.text("name");
    if (reader.has("compute") == reader.has("transfer"))
      reader.refuse("compute", reader.has("compute") ? "both compute and transfer" : "nothing",
                    "exactly one of compute and transfer");
    if (reader.has("compute")) {
      op.what = compute(reader.at("compute", ""), where + ".compute");
    } else {
      op.what = transfer(reader.at("transfer", ""), where + ".transfer");
    }
    const std::string earlier =
        index == 0 ? "no operation, because this is the first one"
                   : fmt::format("earlier operations, whole numbers from 0 to {}", index - 1);
    if (reader.has("after"))
      for (const std::int64_t id : reader.counts("after", 0, index - 1, earlier))
        op.after.push_back(static_cast<OpId>(id));
    if (reader.has("after_previous_round"))
      for (const std::int64_t id :
           reader.counts("after_previous_round", 0, most_ops_ - 1,
                         fmt::format("operations of a round, whole numbers from 0 to {}", most_ops_ - 1)))
        op.after_earlier.push_back({static_cast<OpId>(id), 1});
    if (reader.has("after_earlier")) after_earlier(reader, where, op);
    if (reader.has("detached")) op.detached = reader.boolean("detached");
    if (reader.has("receive_after")) {
      const std::vector<costmodel::NodeId> ends = ends_of(op);
      for (const std::int64_t id : reader.counts("receive_after", 0, index - 1, earlier)) {
        if (ends.empty() || ends != ends_of(before[static_cast<std::size_t>(id)]))
          reader.refuse(
              "receive_after", std::to_string(id),
              "earlier transfers between the same two nodes, with the pattern point_to_point and one "
              "exchange, as this one");
        op.receive_after.push_back(static_cast<OpId>(id));
      }
    }
    return op;
  }

  void read_rounds(const JsonObject& top) {
    const Json& list = top.filled_array("rounds");
    for (const Json& json : list)
      if (json.is_object() && json.contains("ops") && json["ops"].is_array())
        most_ops_ = std::max(most_ops_, static_cast<std::int64_t>(json["ops"].size()));
    std::size_t position = 0;
    for (const Json& json : list) {
      const std::string where = fmt::format("rounds[{}]", position++);
      const JsonObject reader = object(json, where, {"indices", "ops"});
      auto round = std::make_shared<RoundPlan>();
      for (const Json& entry : reader.filled_array("ops")) {
        round->ops.push_back(op(entry, fmt::format("{}.ops[{}]", where, round->ops.size()), round->ops));
      }
      (void)reader.filled_array("indices");
      for (const std::int64_t index :
           reader.counts("indices", 0, kMostRounds, "whole numbers of at least 0")) {
        if (!rounds_.emplace(index, round).second)
          reader.refuse("indices", fmt::format("{} twice", index), "each round once");
      }
    }
  }

  void read_classes(const JsonObject& top) {
    for (const Json& json : top.filled_array("classes")) {
      const JsonObject reader = object(json, fmt::format("classes[{}]", plan_.classes.size()),
                                       {"count", "steps", "identical", "overlapping", "own_pace", "rounds"});
      RoundClass alike;
      alike.count = reader.count("count", 1, kMostRounds);
      alike.steps = reader.count("steps", 0, kMostSteps);
      if (reader.has("identical")) alike.identical = reader.boolean("identical");
      if (reader.has("overlapping")) alike.overlapping = reader.boolean("overlapping");
      if (reader.has("own_pace")) alike.own_pace = reader.boolean("own_pace");
      (void)reader.filled_array("rounds");
      const auto written = reader.counts("rounds", 0, kMostRounds, "indices of rounds");
      const auto known = static_cast<std::int64_t>(written.size());
      for (const std::int64_t index : written)
        if (!rounds_.contains(index))
          reader.refuse("rounds", std::to_string(index), "the index of a round in the list rounds");
      for (const std::int64_t index : written)
        for (const Op& op : rounds_.at(index)->ops)
          for (const EarlierOp& before : op.after_earlier)
            alike.reach = std::max(alike.reach, before.rounds_back);
      if (known > alike.count)
        reader.refuse("rounds", fmt::format("{} rounds", known),
                      fmt::format("at most count = {}", alike.count));
      if (alike.overlapping && known < std::min(kFewestOverlapping, alike.count))
        reader.refuse("rounds", fmt::format("{} rounds", known),
                      fmt::format("at least {} if rounds overlap: the first rounds and the last round",
                                  std::min(kFewestOverlapping, alike.count)));
      if (!alike.identical || alike.overlapping) alike.known = known;
      alike.round_at = [written, last = alike.count - 1](std::int64_t i) {
        return i == last ? written.back()
                         : written[std::min(static_cast<std::size_t>(i), written.size() - 1)];
      };
      plan_.rounds += alike.count;
      plan_.steps += alike.count * alike.steps;
      plan_.classes.push_back(std::move(alike));
    }
    if (plan_.steps == 0) top.refuse("classes", "no optimiser steps", "at least one step in some class");
  }

  void read_averaged_paths(const JsonObject& top) {
    if (!top.has("averaged_paths")) return;
    for (const Json& json : top.array("averaged_paths")) {
      const JsonObject reader = object(json, fmt::format("averaged_paths[{}]", plan_.averaged_paths.size()),
                                       {"from", "to", "bytes_per_s"});
      PathRate rate;
      rate.from = static_cast<int>(reader.count("from", 0, sites_ - 1));
      rate.to = static_cast<int>(reader.count("to", 0, sites_ - 1));
      if (rate.from == rate.to) reader.refuse_value("to", reader.at("to", ""), "another site than \"from\"");
      const std::string expected = "bytes per second, more than zero";
      rate.bytes_per_s = reader.number("bytes_per_s", expected);
      if (rate.bytes_per_s <= 0) reader.refuse_value("bytes_per_s", reader.at("bytes_per_s", ""), expected);
      plan_.averaged_paths.push_back(rate);
    }
  }

  // Who holds which expert matters to executors with models; the simulator moves bytes. So only the form is
  // checked.
  void check_placements(const JsonObject& top) const {
    if (!top.has("placements")) return;
    std::size_t position = 0;
    for (const Json& json : top.array("placements")) {
      const JsonObject reader = object(json, fmt::format("placements[{}]", position++), {"rounds", "owners"});
      (void)reader.counts("rounds", 0, kMostRounds, "indices of rounds");
      (void)reader.filled_array("owners");
    }
  }

  const std::string& path_;
  int sites_;
  bool store_;
  Json json_;
  Plan plan_;
  std::map<std::int64_t, std::shared_ptr<const RoundPlan>> rounds_;
  std::int64_t most_ops_ = 0;
};

}  // namespace

costmodel::Plan read_plan(const std::string& path, int sites, bool store) {
  return PlanReader(path, sites, store).read();
}

}  // namespace fomoe::scenario
