#include "costmodel/methods/composition.hpp"
#include "experiments/scenario/sections.hpp"
#include "experiments/scenario/table_reader.hpp"

namespace fomoe::scenario {
namespace {

costmodel::ElementType element_type(const std::string& name) {
  using costmodel::ElementType;
  for (const ElementType type : {ElementType::fp32, ElementType::fp16, ElementType::fp8, ElementType::int8,
                                 ElementType::int4, ElementType::int2}) {
    if (name == to_string(type)) return type;
  }
  return ElementType::bf16;
}

costmodel::Collective collective(const std::string& name) {
  using costmodel::Collective;
  for (const Collective kind : {Collective::direct, Collective::hierarchical}) {
    if (name == to_string(kind)) return kind;
  }
  return Collective::ring;
}

costmodel::RouterModel router_model(const std::string& name) {
  using costmodel::RouterModel;
  for (const RouterModel model : {RouterModel::hash, RouterModel::expert_choice}) {
    if (name == to_string(model)) return model;
  }
  return RouterModel::uniform;
}

}  // namespace

costmodel::Strategy read_strategy(const Document& document, int sites) {
  const TableReader table(document, scenario_keys(), "strategy", find_table(document, "strategy"));
  costmodel::Strategy strategy;
  strategy.method = table.text("method");
  strategy.local_steps = table.count("local_steps");
  strategy.expert_overlap = table.has("expert_overlap") ? table.small_count("expert_overlap") : sites;
  strategy.placement = table.text("placement") == "random" ? costmodel::PlacementKind::random
                                                           : costmodel::PlacementKind::fixed;
  strategy.reshuffle_rounds = table.count("reshuffle_rounds");
  strategy.skip_token = table.yes_no("skip_token");
  strategy.collective = collective(table.text("collective"));
  strategy.wire = costmodel::plain_format(element_type(table.text("payload_dtype")));
  strategy.regions = table.small_count("regions");
  strategy.secure_aggregation = table.yes_no("secure_aggregation");
  if (strategy.secure_aggregation) {
    if (table.has("payload_dtype"))
      table.refuse("payload_dtype", "it beside secure_aggregation",
                   "no payload_dtype there: masked payloads are 32-bit integers");
    strategy.wire = costmodel::masked_format();
  }
  strategy.router = router_model(table.text("router"));
  if (table.has("capacity_factor")) strategy.capacity_factor = table.factor("capacity_factor");
  if (table.has("max_sites_per_token"))
    strategy.max_sites_per_token = table.small_count("max_sites_per_token");
  strategy.micro_batches = table.count("micro_batches");
  strategy.module_levels = table.small_count("module_levels");
  strategy.module_choices = table.small_count("module_choices");
  (void)table.count("overlap_steps");  // checked to be 0, the only value that any method here supports
  return strategy;
}

}  // namespace fomoe::scenario
