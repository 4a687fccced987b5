#include <algorithm>

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
  strategy.collective =
      table.text("collective") == "direct" ? costmodel::Collective::direct : costmodel::Collective::ring;
  strategy.ring_order =
      table.text("ring_order") == "given" ? costmodel::RingOrder::given : costmodel::RingOrder::best;
  if (table.has("bucket_bytes"))
    strategy.bucket_bytes = static_cast<std::int64_t>(std::max(1.0, table.quantity("bucket_bytes")));
  strategy.wire = costmodel::plain_format(element_type(table.text("payload_dtype")));
  (void)table.count("overlap_steps");  // checked to be 0, the only value that any method here supports
  return strategy;
}

}  // namespace fomoe::scenario
