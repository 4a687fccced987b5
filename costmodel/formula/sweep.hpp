// The whole closed form for many configurations side by side: one lane is one configuration.
//
// Numeric values that vary freely are axes of Configuration. Choices between formulas (model, method,
// placement kind, collective and others) are in SweepContext. All sites are equal. The values of every lane
// must be values that check() accepts.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/formula/links.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

template <class V>
struct Configuration {
  Axes<V> axes;
  // Raw rates, before bandwidth_efficiency.
  V uplink_bytes_per_s, downlink_bytes_per_s, path_bytes_per_s, latency_s, bandwidth_efficiency;
  V free_share;  // payload share of the links: see network_model.hpp
  // Values of [compute]; the first three are used if its kind needs them. The degrees of SweepContext divide
  // gpus_per_site.
  V step_time_s, peak_flops, share_of_peak, gpus_per_site;
};

/// The fields of RunReport and of `fomoe cost` that do not belong to a named site or link, with the same
/// definitions.
template <class V>
struct Outcome {
  V wall_clock_s, compute_utilization, tokens_per_s;
  V bytes_per_token, bytes_sent_per_site_per_round;
  SentBytes<V> sent;
  V memory_bytes_per_site, memory_bytes_per_gpu, flops_per_token;  // memory_bytes_per_gpu: fullest GPU
  V optimizer_steps, tokens;
  V round_count, round_duration_s, round_compute_s, round_communication_s, round_exposed_communication_s,
      round_idle_s;
  V link_busy_share;
  V cost_total, energy_kwh;  // NaN if the context has no prices, or no power
};

/// Values that all configurations of a block have in common.
struct SweepContext {
  enum class Compute { given, assumed, profiled };

  const Method* method = nullptr;
  Fixed fixed;
  bool skip_token = false;
  FlopsPerToken full_flops;
  SiteModel site;
  Compute compute = Compute::given;
  double recomputation = 1;        // executed FLOPs ÷ model FLOPs, where the step time follows from FLOPs
  bool adds_communication = true;  // communication inside a site comes on top of the step time
  double step_factor = 1;          // factor of slow sites and stragglers on every step
  // From a profile, indexed by the number of local experts 0 … N_e.
  double micro_batch_sequences = 1;
  std::vector<double> micro_batch_s, forward_share, optimizer_s;
  ExtraTraffic traffic;
  double state_bytes_per_parameter = 0;
  /// Sites can differ in their prices only. Each element is a price list and the share of the sites that pay
  /// these prices. The vector is empty if no prices are given.
  std::vector<std::pair<SitePrices, double>> prices;
  std::optional<GpuPower> power;
  /// Links of sites that differ, with their raw rates. Its lists are empty if sites are equal; then the
  /// configuration's rates represent all sites.
  LinkSets<double> links;
};

SweepContext sweep_context(const Scenario& scenario);

/// Configuration of a scenario. Its rates are those of the slowest link, and its latency is the longest one.
Configuration<double> configuration_of(const Scenario& scenario);
/// A block with the same configuration in all lanes.
Configuration<Block> replicated(const Configuration<double>& configuration);

/// Evaluates the closed form, for V = double and V = Block.
template <class V>
void evaluate(const SweepContext& context, const Configuration<V>& configuration, Outcome<V>& outcome);
extern template void evaluate(const SweepContext&, const Configuration<double>&, Outcome<double>&);
extern template void evaluate(const SweepContext&, const Configuration<Block>&, Outcome<Block>&);

}  // namespace fomoe::costmodel
