#include "costmodel/plan/plan_summary.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

double all_reduce_hops(const CollectiveShape& shape, double nodes) {
  if (shape == Collective::ring) return 2.0 * (nodes - 1.0);
  if (shape == Collective::hierarchical) {
    const double regions = regions_of(shape, nodes);
    return 2.0 * (nodes / regions - 1.0) + 2.0 * (regions - 1.0);
  }
  if (shape == Collective::recursive) return 2.0 * std::log2(nodes);
  return 2.0 * std::min(nodes - 1.0, 1.0);
}

double all_reduce_pair_factor(const CollectiveShape& shape, double nodes) {
  if (shape == Collective::ring) return all_reduce_factor(nodes);
  if (shape == Collective::recursive) return all_reduce_factor(nodes);  // one peer at a time
  if (shape == Collective::hierarchical) {
    const double regions = regions_of(shape, nodes), inside = nodes / regions;
    return std::max(all_reduce_factor(inside), all_reduce_factor(regions) / inside);
  }
  return 2.0 / nodes * std::min(nodes - 1.0, 1.0);
}

void compose(PlanSummary& summary, const Axes& axes, const Fixed& fixed) {
  if (!fixed.secure_aggregation) return;
  const double bytes = kPublicKeyBytes + kSecretShareBytes + kUnmaskingBytes;
  const double others = axes.sites - 1.0;
  const double any = std::min(others, 1.0);  // 0 if there is only one site
  Stage& sums = summary.stages[0];
  sums.latency_hops += 3.0 * any;
  sums.between = Between::any;
  sums.among = Among::all_sites;
  sums.halving = false;  // not only that any more
  sums.bytes += bytes * others;
  sums.pair_bytes += bytes * any;
  summary.sent.dense += bytes * others * sums.times_per_round;
}

PlanSummary rounds_of(const Axes& axes, const Fixed& fixed, double steps_per_round) {
  PlanSummary summary;
  summary.steps = std::ceil(axes.tokens / (axes.global_batch_sequences * fixed.sequence_length));
  summary.rounds = std::ceil(summary.steps / steps_per_round);
  return summary;
}

void Stage::set_objects(std::size_t index, StoreObjects of, const StoreRules& rules) {
  if (rules.aggregates) {
    const WireFormat result = result_format(rules.payload, of.sites, rules.result_share);
    of.result_bytes = of.bytes * result.bytes_per_element() / rules.payload.bytes_per_element();
  }
  objects[index] = of;
  between = Between::store;
  latency_hops = 2.0;
  bytes = pair_bytes = 0.0;
  for (const StoreObjects& each : objects) pair_bytes += each.uploaded() + each.downloaded();
  bytes = pair_bytes;
}

namespace {

template <class OfObjects>
double of_mean_round(const std::vector<Stage>& stages, OfObjects of_objects) {
  double sum = 0;
  for (const Stage& stage : stages) {
    for (const StoreObjects& each : stage.objects)
      if (each.count > 0) sum += stage.times_per_round * (each.*of_objects)();
  }
  return sum;
}

}  // namespace

double PlanSummary::uploaded_bytes() const { return of_mean_round(stages, &StoreObjects::uploaded); }
double PlanSummary::downloaded_bytes() const { return of_mean_round(stages, &StoreObjects::downloaded); }
double PlanSummary::store_requests() const { return of_mean_round(stages, &StoreObjects::requests); }
double PlanSummary::received_bytes() const { return sent.total() - uploaded_bytes() + downloaded_bytes(); }

Stage averaging_stage(const Axes& axes, const Fixed& fixed, double bytes) {
  Stage stage;
  if (fixed.collective == Collective::store) {
    if (axes.sites > 1.0) stage.set_objects(0, {bytes, 1.0, axes.sites}, fixed.store);
    return stage;
  }
  stage.latency_hops = averaging_hops(fixed, axes.sites);
  stage.bytes = averaging_factor(fixed, axes.sites) * bytes;
  stage.pair_bytes = averaging_pair_factor(fixed, axes.sites) * bytes;
  if (fixed.collective == Collective::ring) stage.between = Between::ring;
  if (fixed.collective == Collective::direct) stage.between = Between::pairs;
  stage.halving = fixed.collective == Collective::recursive && !fixed.sparse_payloads && axes.sites > 1.0;
  if (fixed.collective == Collective::hierarchical && !fixed.sparse_payloads) {
    stage.between = Between::ring;
    stage.among = Among::region_then_regions;
  }
  return stage;
}

PlanSummary full_model_summary(const Axes& axes, const Fixed& fixed, double steps_per_round, double bytes) {
  PlanSummary summary = rounds_of(axes, fixed, steps_per_round);
  const double factor = averaging_factor(fixed, axes.sites) * bytes;
  summary.sent.dense = factor * fixed.dense_elements;
  summary.sent.expert_sync = factor * fixed.expert_elements;
  summary.add(averaging_stage(axes, fixed, bytes * (fixed.dense_elements + fixed.expert_elements)));
  return summary;
}

PlanSummary through_first_site(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  summary.outer_steps_per_round = 1.0;
  const double others = axes.sites - 1.0;
  const double up = axes.bytes_per_element, down = bytes_per_parameter(axes, fixed);  // of an element
  const double both_ways = others / axes.sites * (up + down);
  summary.sent.dense = both_ways * fixed.dense_elements;
  summary.sent.expert_sync = both_ways * fixed.expert_elements;
  Stage stage;
  stage.latency_hops = 2.0 * std::min(others, 1.0);  // one up, one down
  stage.star = true;
  stage.out_share = down / (up + down);
  stage.bytes = axes.sites * summary.sent.total();
  stage.pair_bytes = summary.sent.total() * axes.sites / std::max(others, 1.0);
  stage.between = Between::first_site;
  summary.add(stage);
  return summary;
}

}  // namespace fomoe::costmodel
