// Tests of Method::averages_everything against the plans. `fomoe plan` uses it to compare the quality of
// methods.
#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

/// True if in one round every holder of a tensor group receives the contribution of every other holder,
/// directly or through others.
bool joins_all_holders(const Scenario& scenario, const Plan& plan) {
  const std::size_t nodes = plan.nodes.size();
  std::vector<std::vector<std::size_t>> leader(plan.groups.size());  // [group][node], a union-find forest
  for (auto& of_group : leader) {
    of_group.resize(nodes);
    std::iota(of_group.begin(), of_group.end(), std::size_t{0});
  }
  const auto root = [&](std::size_t group, std::size_t node) {
    while (leader[group][node] != node) node = leader[group][node];
    return node;
  };
  for (const Op& op : plan.round(0).ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const Exchange& exchange : transfer->exchanges) {
      for (const Payload& payload : exchange.payloads) {
        if (payload.traffic != TrafficClass::dense && payload.traffic != TrafficClass::expert_sync) continue;
        for (const GroupId group : payload.groups) {
          for (const NodeId node : exchange.nodes) {
            const auto g = static_cast<std::size_t>(group);
            leader[g][root(g, static_cast<std::size_t>(node))] =
                root(g, static_cast<std::size_t>(exchange.nodes.front()));
          }
        }
      }
    }
  }
  for (std::size_t group = 0; group < plan.groups.size(); ++group) {
    std::set<std::size_t> roots;
    for (std::size_t node = 0; node < nodes; ++node) {
      const bool holds = !plan.placement || group == 0 || [&] {
        const TensorGroup& of = plan.groups[group];
        const Placement placement = plan.placement(0);
        const auto owners =
            placement.owners(static_cast<int>(*moe_layer_of_layer(scenario.model, of.layer_begin)),
                             static_cast<int>(of.expert_begin));
        return std::find(owners.begin(), owners.end(), static_cast<int>(node)) != owners.end();
      }();
      if (holds) roots.insert(root(group, node));
    }
    if (roots.size() > 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("averages_everything holds exactly for methods whose round joins all sites that hold a parameter") {
  std::set<std::string> apart;
  for (const Method& method : methods()) {
    // Where sites hold different parts there is nothing to average, and transfers inside a step do not
    // average parameters.
    if (method.residency != Residency::replica || method.inside_step) continue;
    Scenario scenario = tests::every_axis_scenario(std::string(method.name), 4, 2);
    scenario.strategy.module_choices = 2;  // with one choice all sites are on one path
    CAPTURE(method.name);
    CHECK(joins_all_holders(scenario, tests::plan_of(scenario)) == method.averages_everything);
    if (!method.averages_everything) apart.insert(std::string(method.name));
  }
  CHECK(apart == std::set<std::string>{"dept", "di_paco", "gossip", "hierarchical_diloco", "noloco"});
}
