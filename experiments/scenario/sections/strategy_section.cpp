#include "costmodel/compose/composition.hpp"
#include "costmodel/methods/all.hpp"
#include "experiments/files/routing_counts_csv.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {
namespace {

// Returns the wire format that the scenario gives, or else the method's default.
costmodel::WireFormat wire_format(const Document& document, const TableReader& strategy,
                                  const costmodel::Method& method) {
  costmodel::WireFormat wire =
      method.usual_wire ? *method.usual_wire : costmodel::plain_format(costmodel::ElementType::bf16);
  if (strategy.has("payload_dtype")) {
    const costmodel::ElementType type =
        costmodel::enum_of<costmodel::ElementType>(strategy.text("payload_dtype")).value();
    wire = wire.sparse() ? costmodel::top_k_format(type, wire.kept_share, wire.index_bits)
                         : costmodel::plain_format(type);
  }
  const toml::table* compression = find_table(document, "strategy.compression");
  if (compression == nullptr) return wire;
  const TableReader table(document, scenario_keys(), "strategy.compression", compression);
  (void)table.text("kind");  // top_k is the only valid value
  costmodel::WireFormat sparse =
      costmodel::top_k_format(wire.type, table.number("kept_share"), table.small_count("index_bits"));
  sparse.entropy_coded = table.boolean("entropy_coded") && sparse.sparse();
  return sparse;
}

}  // namespace

void read_strategy(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "strategy", find_table(document, "strategy"));
  costmodel::Strategy& strategy = scenario.strategy;
  strategy.method = costmodel::find_method(table.text("method"));  // the reader has rejected unknown names
  strategy.expert_overlap = scenario.sites();                      // unless the scenario says otherwise
  table.set_members(scenario);
  if (table.has("routing_counts")) {
    strategy.routing_counts =
        read_routing_counts(table.file("routing_counts"), scenario.model, scenario.platform);
  }
  strategy.wire = wire_format(document, table, *strategy.method);
  if (strategy.secure_aggregation) {
    if (table.has("payload_dtype"))
      table.refuse("payload_dtype", "both payload_dtype and secure_aggregation",
                   "no payload_dtype, because masked payloads are 32-bit integers");
    if (table.has("parameter_dtype"))
      table.refuse("parameter_dtype", "both parameter_dtype and secure_aggregation",
                   "no parameter_dtype, because masked payloads are 32-bit integers");
    strategy.wire = costmodel::masked_format();
  }
  const costmodel::Method& method = *strategy.method;
  if (!table.has("fragments") && method.usual_fragments != nullptr)
    strategy.fragments = method.usual_fragments(scenario.model, strategy);
  if (!table.has("overlap_steps") && costmodel::has_axis(method, "overlap_steps"))
    strategy.overlap_steps = method.usual_overlap_steps;
  table.only_together("straggler_timeout", "quorum");
}

}  // namespace fomoe::scenario
