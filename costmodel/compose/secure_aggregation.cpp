#include <algorithm>

#include "costmodel/compose/composition.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

namespace {

bool is_sum(const Op& op) {
  const auto* transfer = std::get_if<Transfer>(&op.what);
  return transfer != nullptr && transfer->pattern == Pattern::all_reduce;
}

// Every site sends `bytes` to every other site. The operation is detached if the sum is.
Op to_all_others(const Scenario& scenario, const char* name, double bytes, const Op& sum,
                 std::vector<OpId> after) {
  const Payload payload{Content::key,
                        TrafficClass::dense,
                        {},
                        WireFormat{ElementType::int8, 1, 0, 0, 0},
                        static_cast<std::int64_t>(bytes)};
  const Transfer transfer{
      Pattern::all_to_all_broadcast, Collective::direct, {{all_workers(scenario), {payload}}}};
  return {name, transfer, std::move(after), {}, sum.detached};
}

}  // namespace

WireFormat masked_format() { return plain_format(ElementType::int32); }

Composed with_masks(const Scenario& scenario, const RoundPlan& plain) {
  Composed composed;
  auto& ops = composed.round.ops;
  const auto append = [&](Op op) {
    ops.push_back(std::move(op));
    return static_cast<OpId>(ops.size()) - 1;
  };
  const auto sums = std::count_if(plain.ops.begin(), plain.ops.end(), is_sum);
  std::ptrdiff_t summed = 0;
  OpId shared = 0, unmasked = 0;
  std::vector<OpId> sum_ids;
  for (Op op : plain.ops) {
    const bool sum = is_sum(op);
    for (OpId& before : op.after) before = composed.last[static_cast<std::size_t>(before)];
    for (OpId& before : op.receive_after) before = composed.last[static_cast<std::size_t>(before)];
    if (sum && summed == 0) {
      Op first = to_all_others(scenario, "advertise keys", kPublicKeyBytes, op, op.after);
      first.after_earlier = op.after_earlier;
      const OpId keys = append(std::move(first));
      shared = append(to_all_others(scenario, "share secrets", kSecretShareBytes, op, {keys}));
    }
    if (sum) op.after = {shared};
    composed.last.push_back(append(op));
    if (!sum) continue;
    sum_ids.push_back(composed.last.back());
    if (++summed < sums) continue;
    unmasked = append(to_all_others(scenario, "remove masks", kUnmaskingBytes, op, sum_ids));
    for (OpId& last : composed.last) {
      if (std::find(sum_ids.begin(), sum_ids.end(), last) != sum_ids.end()) last = unmasked;
    }
  }
  return composed;
}

}  // namespace fomoe::costmodel
