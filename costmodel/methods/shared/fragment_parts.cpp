#include "costmodel/methods/shared/fragment_parts.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

// The parts of the model in a fragment. Layers are in ascending order.
struct Fragment {
  std::vector<int> layers;
  bool has_tables = false;
};

class PartBuilder {
 public:
  PartBuilder(const ExpertTransfers& experts, const std::vector<Content>& contents,
              const Placement* placement)
      : experts_(experts),
        scenario_(*experts.scenario()),
        groups_(experts.groups()),
        contents_(contents),
        placement_(placement) {}

  [[nodiscard]] FragmentPart whole(const Fragment& fragment) const {
    return {transfers("", "the dense part of ", "the experts of ", fragment.layers, fragment.has_tables), 0};
  }

  [[nodiscard]] std::vector<FragmentPart> by_layer(const Fragment& fragment) const {
    std::vector<FragmentPart> parts;
    const auto add = [&](const std::vector<int>& layers, bool with_tables, int ready_at) {
      parts.push_back(
          {transfers("a part of ", "a dense part of ", "experts of ", layers, with_tables), ready_at});
    };
    if (fragment.has_tables && untied_head_elements(scenario_.model) > 0) {
      Exchange head{all_workers(scenario_), {}};
      for (const Content content : contents_)
        head.payloads.push_back(make_payload(groups_, content, TrafficClass::dense,
                                             format_of(scenario_.strategy, content),
                                             {static_cast<GroupId>(groups_.size()) - 1}));
      parts.push_back({{{"a part of ", {std::move(head)}}}, static_cast<int>(scenario_.model.layers)});
    }
    for (auto layer = fragment.layers.rbegin(); layer != fragment.layers.rend(); ++layer)
      add({*layer}, false, *layer);
    if (fragment.has_tables) add({}, true, 0);
    return parts;
  }

 private:
  [[nodiscard]] std::vector<PartTransfer> transfers(const char* all, const char* dense, const char* experts,
                                                    const std::vector<int>& layers, bool with_tables) const {
    Exchange among_all{all_workers(scenario_), {}};
    for (const Content content : contents_) {
      for (Payload& payload : layers_exchange(scenario_, groups_, content, layers, with_tables).payloads) {
        const bool of_owners = placement_ != nullptr && payload.traffic == TrafficClass::expert_sync;
        if (payload.elements > 0 && !of_owners) among_all.payloads.push_back(std::move(payload));
      }
    }
    if (placement_ == nullptr) return {{all, {std::move(among_all)}}};
    std::vector<Exchange> of_experts;
    for (const int layer : layers) {
      if (const auto moe_layer = moe_layer_of_layer(scenario_.model, layer))
        experts_.add_averages(contents_, *placement_, static_cast<int>(*moe_layer), of_experts);
    }
    std::vector<PartTransfer> both = {{dense, {std::move(among_all)}}};
    if (!of_experts.empty()) both.push_back({experts, std::move(of_experts)});
    return both;
  }

  const ExpertTransfers& experts_;
  const Scenario& scenario_;
  const std::vector<TensorGroup>& groups_;
  const std::vector<Content>& contents_;
  const Placement* placement_;
};

// Bytes that a site sends for an element of an expert, mean over the sites, in multiples of those for an
// element that all sites hold: O_e/M of the experts, and 2(O_e−1)/O_e instead of 2(M−1)/M of them.
double expert_weight(const Scenario& scenario) {
  const double overlap = effective_overlap(scenario), sites = scenario.sites();
  return overlap == sites ? 1.0 : (overlap - 1.0) / (sites - 1.0);
}

std::vector<Fragment> fragments_of(const Scenario& scenario) {
  const int fragments = scenario.strategy.fragments, all = static_cast<int>(scenario.model.layers);
  std::vector<Fragment> of(static_cast<std::size_t>(fragments));
  of.back().has_tables = true;
  const std::vector<TensorGroup> groups =
      tensor_groups_by_layer(scenario.model, scenario.strategy.skip_token);
  std::vector<double> elements(of.size(), 0);
  elements.back() = static_cast<double>(groups[kEmbeddingGroup].elements);
  for (int layer = 0; layer < all; ++layer) {
    std::size_t to = 0;
    switch (scenario.strategy.fragment_pattern) {
      case FragmentPattern::strided:
        to = static_cast<std::size_t>(layer % fragments);
        break;
      case FragmentPattern::sequential:
        while ((static_cast<int>(to) + 1) * all / fragments <= layer) ++to;
        break;
      case FragmentPattern::balanced:
        to = static_cast<std::size_t>(std::min_element(elements.begin(), elements.end()) - elements.begin());
        for (const Payload& payload :
             layers_exchange(scenario, groups, Content::parameter, {layer}, false).payloads)
          elements[to] += static_cast<double>(payload.elements) *
                          (payload.traffic == TrafficClass::expert_sync ? expert_weight(scenario) : 1.0);
        break;
    }
    of[to].layers.push_back(layer);
  }
  return of;
}

}  // namespace

std::vector<FragmentTransfers> fragment_transfers(const ExpertTransfers& experts,
                                                  const std::vector<Content>& contents,
                                                  const Placement* placement) {
  const PartBuilder builder(experts, contents, placement);
  std::vector<FragmentTransfers> all;
  for (const Fragment& fragment : fragments_of(*experts.scenario())) {
    FragmentTransfers& of = all.emplace_back();
    if (experts.scenario()->strategy.layerwise) {
      of.parts = builder.by_layer(fragment);
    } else {
      of.parts = {builder.whole(fragment)};
    }
    of.first_layer = fragment.has_tables || fragment.layers.empty() ? 0 : fragment.layers.front();
  }
  return all;
}

}  // namespace fomoe::costmodel
