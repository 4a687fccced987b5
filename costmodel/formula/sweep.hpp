// The whole closed form as a function of numbers, for sweeps: a configuration has the numeric values that
// vary freely. Choices between formulas (model, method, placement kind, collective and others) are in
// SweepContext. The values of a configuration must be values that check() accepts.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/formula/approximations.hpp"
#include "costmodel/formula/links.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct Configuration {
  Axes axes;
  // Raw rates, before bandwidth_efficiency.
  double uplink_bytes_per_s, downlink_bytes_per_s, path_bytes_per_s, latency_s, bandwidth_efficiency;
  double free_share;  // payload share of the links: see network_model.hpp
  // Values of [compute], for sites that are alike; the first three are used if its kind needs them. The
  // degrees of SweepSite divide gpus_per_site.
  double step_time_s, peak_flops, share_of_peak, gpus_per_site;
};

/// The fields of RunReport and of `fomoe cost` that do not belong to a named site or link, with the same
/// definitions.
struct Outcome {
  double wall_clock_s, compute_utilization, tokens_per_s;
  double bytes_per_token, bytes_sent_per_site_per_round;
  SentBytes sent;
  /// Of the site whose GPUs are fullest; gpu_memory_bytes is 0 if unknown.
  double memory_bytes_per_site, memory_bytes_per_gpu, gpu_memory_bytes;
  double flops_per_token;
  double optimizer_steps, tokens;
  double round_count, round_duration_s, round_compute_s, round_communication_s, round_exposed_communication_s,
      round_idle_s;
  double link_busy_share;
  double cost_total, energy_kwh;  // NaN if the context has no prices, or no power
  bool approximate;  // whether the closed form only approximates the configuration; see approximations()
};

/// GPUs, step times and costs of a site, or of all sites if they are alike.
struct SweepSite {
  enum class Compute { given, assumed, profiled };
  /// Values of [compute] of a site that differs from others; they replace those of the configuration.
  struct Own {
    double step_time_s = 0, peak_flops = 0, share_of_peak = 0, gpus = 1;
  };

  SiteModel site;
  std::optional<Own> own;
  Compute compute = Compute::given;
  bool counts_repeated = false;    // the step time follows from the executed FLOPs
  double unembedding_flops = 0;    // per token
  bool adds_communication = true;  // communication inside a site comes on top of the step time
  bool includes_optimizer = true;  // the step time includes AdamW
  double step_factor = 1;          // factor of slow sites and stragglers on every step
  // From a profile, indexed by the number of local experts 0 … N_e.
  double micro_batch_sequences = 1;
  std::vector<double> micro_batch_s, accumulation_s, forward_share, optimizer_s;
  std::optional<GpuPower> power;
  /// Each element is a price list and the share of all sites that pay these prices. The vector is empty if no
  /// prices are given.
  std::vector<std::pair<SitePrices, double>> prices;
  double sites_share = 1;  // share of all sites that this one stands for
};

/// Values that all configurations of a sweep have in common.
struct SweepContext {
  const Method* method = nullptr;
  Fixed fixed;
  bool skip_token = false;
  FlopsPerToken full_flops;
  /// One element if all sites are alike, otherwise one for each site.
  std::vector<SweepSite> sites;
  std::vector<double> share_limits;  // see share_limits(); empty if the sites have equal parts of the batch
  ExtraTraffic traffic;
  double state_bytes_per_parameter = 0;
  /// Links of sites that differ, with their raw rates. Its lists are empty if sites are equal; then the
  /// configuration's rates represent all sites.
  LinkSets links;
  FormulaLimits limits;
};

SweepContext sweep_context(const Scenario& scenario);

/// Configuration of a scenario. Its rates are those of the slowest link, and its latency is the longest one.
Configuration configuration_of(const Scenario& scenario);
/// Evaluates the closed form.
void evaluate(const SweepContext& context, const Configuration& configuration, Outcome& outcome);

}  // namespace fomoe::costmodel
