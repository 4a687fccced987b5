#include <algorithm>

#include "costmodel/compose/composition.hpp"
#include "costmodel/methods/all.hpp"
#include "experiments/files/routing_counts_csv.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

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

costmodel::PlacementKind placement_kind(const std::string& name) {
  using costmodel::PlacementKind;
  for (const PlacementKind kind : {PlacementKind::random, PlacementKind::affinity}) {
    if (name == to_string(kind)) return kind;
  }
  return PlacementKind::fixed;
}

costmodel::OuterOptimizer outer_optimizer(const std::string& name) {
  using costmodel::OuterOptimizer;
  for (const OuterOptimizer optimizer :
       {OuterOptimizer::adam, OuterOptimizer::yogi, OuterOptimizer::average, OuterOptimizer::local_adamw}) {
    if (name == to_string(optimizer)) return optimizer;
  }
  return OuterOptimizer::nesterov;
}

// The scenario's value, or else the method's default.
costmodel::WireFormat wire_format(const Document& document, const TableReader& strategy,
                                  const costmodel::Method& method) {
  costmodel::WireFormat wire =
      method.usual_wire ? *method.usual_wire : costmodel::plain_format(costmodel::ElementType::bf16);
  if (strategy.has("payload_dtype")) {
    const costmodel::ElementType type = element_type(strategy.text("payload_dtype"));
    wire = wire.sparse() ? costmodel::top_k_format(type, wire.kept_share, wire.index_bits)
                         : costmodel::plain_format(type);
  }
  const toml::table* compression = find_table(document, "strategy.compression");
  if (compression == nullptr) return wire;
  const TableReader table(document, scenario_keys(), "strategy.compression", compression);
  (void)table.text("kind");  // top_k is the only valid value
  return costmodel::top_k_format(wire.type, table.share("kept_share"), table.small_count("index_bits"));
}

costmodel::Collective collective(const std::string& name) {
  using costmodel::Collective;
  for (const Collective kind : {Collective::direct, Collective::hierarchical, Collective::recursive}) {
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

costmodel::Strategy read_strategy(const Document& document, const costmodel::ModelShape& model,
                                  const platforms::Platform& platform) {
  const TableReader table(document, scenario_keys(), "strategy", find_table(document, "strategy"));
  costmodel::Strategy strategy;
  strategy.method = costmodel::find_method(table.text("method"));  // the reader has rejected unknown names
  strategy.local_steps = table.count("local_steps");
  strategy.expert_overlap =
      table.has("expert_overlap") ? table.small_count("expert_overlap") : platform.size();
  strategy.placement = placement_kind(table.text("placement"));
  if (table.has("routing_counts")) {
    strategy.routing_counts =
        read_routing_counts(document.beside(table.text("routing_counts")), model, platform);
  }
  strategy.reshuffle_rounds = table.count("reshuffle_rounds");
  strategy.skip_token = table.boolean("skip_token");
  strategy.collective = collective(table.text("collective"));
  strategy.ring_order =
      table.text("ring_order") == "given" ? costmodel::RingOrder::given : costmodel::RingOrder::best;
  if (table.text("granularity") == "tensor") strategy.granularity = costmodel::Granularity::tensor;
  if (table.has("bucket_bytes"))
    strategy.bucket_bytes = static_cast<std::int64_t>(std::max(1.0, table.quantity("bucket_bytes")));
  strategy.wire = wire_format(document, table, *strategy.method);
  strategy.outer_optimizer = outer_optimizer(table.text("outer_optimizer"));
  if (table.text("outer_state_on_migration") == "transfer")
    strategy.outer_state_on_migration = costmodel::OuterStateOnMigration::transfer;
  strategy.overlap_steps = table.count("overlap_steps");
  strategy.fragments = table.small_count("fragments");
  strategy.moment1_period = table.count("moment1_period");
  strategy.moment2_period = table.count("moment2_period");
  if (table.has("staleness")) strategy.staleness = table.count("staleness");
  strategy.gossip_peers = table.small_count("gossip_peers");
  strategy.regions = table.small_count("regions");
  strategy.secure_aggregation = table.boolean("secure_aggregation");
  if (strategy.secure_aggregation) {
    if (table.has("payload_dtype"))
      table.refuse("payload_dtype", "it beside secure_aggregation",
                   "no payload_dtype there: masked payloads are 32-bit integers");
    strategy.wire = costmodel::masked_format();
  }
  strategy.router = router_model(table.text("router"));
  if (table.has("capacity_factor")) strategy.capacity_factor = table.multiple("capacity_factor");
  if (table.has("max_sites_per_token"))
    strategy.max_sites_per_token = table.small_count("max_sites_per_token");
  strategy.micro_batches = table.count("micro_batches");
  strategy.module_levels = table.small_count("module_levels");
  strategy.module_choices = table.small_count("module_choices");
  return strategy;
}

}  // namespace fomoe::scenario
