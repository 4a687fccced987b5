#include <algorithm>
#include <stdexcept>

#include "costmodel/compose/composition.hpp"
#include "costmodel/inputs/strategy_keys.hpp"
#include "costmodel/methods/all.hpp"
#include "experiments/files/routing_counts_csv.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {
namespace {

/// Reads one key into its field of Strategy. The row in training_keys.cpp decides how the value is written in
/// TOML.
struct FieldReader {
  const TableReader& table;
  const Key& key;
  costmodel::Strategy& strategy;

  void operator()(std::int64_t costmodel::Strategy::*field) const {
    strategy.*field = key.kind == Kind::size
                          ? static_cast<std::int64_t>(std::max(1.0, table.quantity(key.name)))
                          : table.count(key.name);
  }
  void operator()(int costmodel::Strategy::*field) const { strategy.*field = table.small_count(key.name); }
  void operator()(bool costmodel::Strategy::*field) const { strategy.*field = table.boolean(key.name); }
  void operator()(double costmodel::Strategy::*field) const {
    strategy.*field = key.kind == Kind::latency ? table.quantity(key.name) : table.multiple(key.name);
  }
  void operator()(std::optional<std::int64_t> costmodel::Strategy::*field) const {
    strategy.*field = table.count(key.name);
  }
  template <costmodel::NamedEnum Value>
  void operator()(Value costmodel::Strategy::*field) const {
    strategy.*field =
        costmodel::enum_of<Value>(table.text(key.name)).value();  // the table refuses other names
  }
};

const Key& key_of(std::string_view name) {
  for (const Key& key : scenario_keys()) {
    if (key.table == "strategy" && key.name == name) return key;
  }
  throw std::logic_error("no row in training_keys.cpp for strategy." + std::string(name));
}

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
      costmodel::top_k_format(wire.type, table.share("kept_share"), table.small_count("index_bits"));
  sparse.entropy_coded = table.boolean("entropy_coded");
  return sparse;
}

}  // namespace

costmodel::Strategy read_strategy(const Document& document, const costmodel::ModelShape& model,
                                  const platforms::Platform& platform) {
  const TableReader table(document, scenario_keys(), "strategy", find_table(document, "strategy"));
  costmodel::Strategy strategy;
  strategy.method = costmodel::find_method(table.text("method"));  // the reader has rejected unknown names
  strategy.expert_overlap = platform.size();                       // unless the scenario says otherwise
  for (const costmodel::StrategyKey& row : costmodel::kStrategyKeys) {
    const Key& key = key_of(row.name);
    if (table.has(key.name) || !key.fallback.empty())
      std::visit(FieldReader{table, key, strategy}, row.field);
  }
  if (table.has("routing_counts")) {
    strategy.routing_counts = read_routing_counts(table.file("routing_counts"), model, platform);
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
  if (table.has("parameter_dtype"))
    strategy.parameter_dtype =
        costmodel::enum_of<costmodel::ElementType>(table.text("parameter_dtype")).value();
  if (table.has("dispatch_dtype"))
    strategy.dispatch_dtype =
        costmodel::enum_of<costmodel::ElementType>(table.text("dispatch_dtype")).value();
  const costmodel::Method& method = *strategy.method;
  if (!table.has("fragments") && method.usual_fragments != nullptr)
    strategy.fragments = method.usual_fragments(model, strategy);
  if (!table.has("overlap_steps") && costmodel::has_axis(method, "overlap_steps"))
    strategy.overlap_steps = method.usual_overlap_steps;
  if (table.has("straggler_timeout") && !strategy.quorum)
    table.refuse("straggler_timeout", "straggler_timeout without quorum",
                 "straggler_timeout only together with quorum");
  return strategy;
}

}  // namespace fomoe::scenario
