// Checks for every training method that the models of the sending nodes hold what the plan sends.
#include <map>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/placement.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/model/tensor_groups.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

constexpr int kSites = 4;

costmodel::Scenario tiny_scenario(const costmodel::Method& method, costmodel::PlacementKind placement,
                                  bool skip_token) {
  costmodel::Scenario scenario;
  scenario.model = tiny_shape();
  scenario.workload = {/*tokens=*/4800, /*global_batch_sequences=*/8};  // 100 steps
  scenario.strategy.method = &method;
  scenario.strategy.local_steps = 4;
  scenario.strategy.expert_overlap = method.partial_experts ? 2 : kSites;
  scenario.strategy.placement = placement;
  scenario.strategy.skip_token = skip_token;
  scenario.compute = costmodel::GivenStepTime{1};
  scenario.platform = fomoe::platforms::uniform(kSites, 1, 1, 0);
  return scenario;
}

Model model_of(const costmodel::Scenario& scenario, int node) {
  const int layers = static_cast<int>(scenario.model.layers),
            experts = static_cast<int>(scenario.model.experts);
  const int overlap = scenario.strategy.expert_overlap;
  const costmodel::Placement placement =
      scenario.strategy.placement == costmodel::PlacementKind::fixed
          ? costmodel::fixed_placement(layers, experts, kSites, overlap)
          : costmodel::random_placement(layers, experts, kSites, overlap, scenario.seed, /*epoch=*/0);
  ModelOptions options;
  options.experts.skip_token = scenario.strategy.skip_token;
  for (int layer = 0; layer < layers; ++layer)
    options.experts.local.push_back(placement.local_experts(layer, node));
  return {scenario.model, options};
}

void check_round(const costmodel::Scenario& scenario) {
  const costmodel::Plan plan = scenario.strategy.method->plan(scenario);
  std::map<int, Model> models;
  for (int node = 0; node < kSites; ++node) models.emplace(node, model_of(scenario, node));
  int payloads = 0;
  for (const costmodel::Op& op : plan.round(0).ops) {
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      std::vector<int> senders = exchange.nodes;
      // only the first node sends
      if (transfer->pattern == costmodel::Pattern::point_to_point) senders.resize(1);
      for (const costmodel::Payload& payload : exchange.payloads) {
        if (payload.content ==
            costmodel::Content::activation) {  // an intermediate result of the step, not a tensor of a model
          CHECK(payload.groups.empty());
          ++payloads;
          continue;
        }
        for (const int sender : senders) {
          CAPTURE(op.name);
          std::int64_t elements = 0;
          for (const costmodel::GroupId id : payload.groups) {
            const costmodel::TensorGroup& group = plan.groups[static_cast<std::size_t>(id)];
            // A server holds the same tensors as the worker of its site.
            const int site = plan.nodes[static_cast<std::size_t>(sender)].site;
            for (const at::Tensor& view : parameter_views(models.at(site), group)) elements += view.numel();
          }
          CHECK(elements == payload.elements);
          CHECK(payload.format.bytes(elements) == payload.bytes());
          ++payloads;
        }
      }
    }
  }
  CHECK((payloads > 0) == !scenario.strategy.method->one_site);
}

}  // namespace

TEST_CASE("the modules of di_paco are made of whole layers, and of the norms before and after them") {
  for (const int layers : {3, 4, 5, 6}) {
    for (const int levels : {1, 2, 3}) {
      CAPTURE(layers);
      CAPTURE(levels);
      costmodel::Scenario scenario =
          tiny_scenario(*costmodel::find_method("di_paco"), costmodel::PlacementKind::fixed, false);
      scenario.model.layers = layers;
      scenario.strategy.module_levels = levels;
      scenario.strategy.module_choices = 2;
      check_round(scenario);
    }
  }
}

TEST_CASE("every payload of every method's first round is made of tensors that its senders hold") {
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const auto placement : {costmodel::PlacementKind::fixed, costmodel::PlacementKind::random}) {
      for (const bool skip_token : {false, true}) {
        CAPTURE(method.name);
        CAPTURE(skip_token);
        check_round(tiny_scenario(method, placement, skip_token));
      }
    }
  }
}
