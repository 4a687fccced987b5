// The scenario: model, workload, strategy, compute and platform that the user asks about. Plain data in SI
// units; the reader has validated every value.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "costmodel/inputs/energy.hpp"
#include "costmodel/inputs/enum_names.hpp"
#include "costmodel/inputs/failures.hpp"
#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/inputs/network_model.hpp"
#include "costmodel/inputs/prices.hpp"
#include "costmodel/inputs/quality_model.hpp"
#include "costmodel/inputs/routing_counts.hpp"
#include "costmodel/inputs/site_gpus.hpp"
#include "costmodel/inputs/step_profile.hpp"
#include "costmodel/inputs/wire_format.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

struct Method;  // defined in costmodel/plan/method.hpp

/// Which sites own an expert (costmodel/plan/placement.hpp).
enum class PlacementKind { fixed, random, affinity, rotated };
/// ring, direct, recursive, chain: see costmodel/plan/collective_steps.hpp; hierarchical:
/// costmodel/compose/composition.hpp; store: sites upload to the store of the platform, and download from it.
enum class Collective { ring, direct, hierarchical, recursive, store, chain };
enum class Granularity { flat, tensor };  // what one call of a collective sends: everything, or one tensor
enum class RingOrder { given, best };     // order of the sites in a ring; best: see ring_order.hpp
/// How the sites' parameters are combined after K local steps. nesterov, adam, yogi: an outer step on
/// averaged pseudo-gradients (DiLoCo; FedOpt, Reddi et al. 2021, arXiv 2003.00295). average: parameters are
/// averaged. local_adamw: parameters and both AdamW moments are averaged.
enum class OuterOptimizer { nesterov, adam, yogi, average, local_adamw };
/// Outer momentum of an expert whose owners change. reset_all_owners: all owners, old ones included, restart
/// it at zero, so that they agree. transfer: the momentum is sent with the expert.
enum class OuterStateOnMigration { reset_all_owners, transfer };
/// Layers of a fragment: every P-th one of P fragments, consecutive ones, or each layer
/// in the fragment that has the fewest bytes so far.
enum class FragmentPattern { strided, sequential, balanced };
/// Order of the micro-batches of a pipeline: all forward passes first (GPipe), or one forward and one
/// backward pass in turn (1F1B).
enum class PipelineSchedule { gpipe, one_f_one_b };
/// Which sites fsdp shards among, and which gradients it reduces when: see
/// costmodel/methods/model_parallel/fsdp.cpp.
enum class Sharding { full_shard, full_shard_no_sync, shard_grad_op, hybrid_shard };
/// Model of how many tokens each expert receives (costmodel/model/router_load.hpp).
enum class RouterModel { uniform, hash, expert_choice };

constexpr auto enum_names(PlacementKind) {
  return std::to_array<EnumName<PlacementKind>>({{PlacementKind::fixed, "fixed"},
                                                 {PlacementKind::random, "random"},
                                                 {PlacementKind::affinity, "affinity"},
                                                 {PlacementKind::rotated, "rotated"}});
}
constexpr auto enum_names(Collective) {
  return std::to_array<EnumName<Collective>>({{Collective::ring, "ring"},
                                              {Collective::direct, "direct"},
                                              {Collective::hierarchical, "hierarchical"},
                                              {Collective::recursive, "recursive"},
                                              {Collective::store, "store"},
                                              {Collective::chain, "chain"}});
}
constexpr auto enum_names(Granularity) {
  return std::to_array<EnumName<Granularity>>({{Granularity::flat, "flat"}, {Granularity::tensor, "tensor"}});
}
constexpr auto enum_names(RingOrder) {
  return std::to_array<EnumName<RingOrder>>({{RingOrder::given, "given"}, {RingOrder::best, "best"}});
}
constexpr auto enum_names(OuterOptimizer) {
  return std::to_array<EnumName<OuterOptimizer>>({{OuterOptimizer::nesterov, "nesterov"},
                                                  {OuterOptimizer::adam, "adam"},
                                                  {OuterOptimizer::yogi, "yogi"},
                                                  {OuterOptimizer::average, "average"},
                                                  {OuterOptimizer::local_adamw, "local_adamw"}});
}
constexpr auto enum_names(OuterStateOnMigration) {
  return std::to_array<EnumName<OuterStateOnMigration>>(
      {{OuterStateOnMigration::reset_all_owners, "reset_all_owners"},
       {OuterStateOnMigration::transfer, "transfer"}});
}
constexpr auto enum_names(Sharding) {
  return std::to_array<EnumName<Sharding>>({{Sharding::full_shard, "full_shard"},
                                            {Sharding::full_shard_no_sync, "full_shard_no_sync"},
                                            {Sharding::shard_grad_op, "shard_grad_op"},
                                            {Sharding::hybrid_shard, "hybrid_shard"}});
}
constexpr auto enum_names(FragmentPattern) {
  return std::to_array<EnumName<FragmentPattern>>({{FragmentPattern::strided, "strided"},
                                                   {FragmentPattern::sequential, "sequential"},
                                                   {FragmentPattern::balanced, "balanced"}});
}
constexpr auto enum_names(PipelineSchedule) {
  return std::to_array<EnumName<PipelineSchedule>>(
      {{PipelineSchedule::gpipe, "gpipe"}, {PipelineSchedule::one_f_one_b, "1f1b"}});
}
constexpr auto enum_names(RouterModel) {
  return std::to_array<EnumName<RouterModel>>({{RouterModel::uniform, "uniform"},
                                               {RouterModel::hash, "hash"},
                                               {RouterModel::expert_choice, "expert_choice"}});
}

struct Workload {
  std::int64_t tokens = 0;                  // training tokens of all sites together
  std::int64_t global_batch_sequences = 0;  // sequences per optimiser step, all sites together
  /// Relative parts of the batch, one for each site; empty: equal parts.
  std::vector<double> batch_shares = {};
  bool batch_in_tokens = false;  // the scenario gives the tokens of a batch instead of its sequences
};

struct Strategy {
  const Method* method = nullptr;  // a method that `fomoe list methods` prints; the reader always sets it
  std::int64_t local_steps = 1;    // K, optimiser steps between synchronisations
  int expert_overlap = 0;          // O_e: number of sites that hold each expert, 1 … sites
  std::int64_t overlap_steps = 0;  // local steps that may hide a synchronisation, if the method supports it
  int fragments = 1;  // parts of the model that are sent in turn; gradient buckets of ddp, units of fsdp
  FragmentPattern fragment_pattern = FragmentPattern::strided;
  /// Each layer is sent as soon as the last backward pass has left it, and the next forward pass waits for it
  /// only where it needs it.
  bool layerwise = false;
  Sharding sharding = Sharding::full_shard;
  PlacementKind placement = PlacementKind::fixed;
  std::int64_t reshuffle_rounds = 1;  // T: a random placement is redrawn at the end of every T-th round
  bool skip_token = false;
  RoutingCounts routing_counts;  // used if placement is affinity
  Collective collective = Collective::ring;
  RingOrder ring_order = RingOrder::best;
  std::vector<int>
      ring_of_run;  // the order of the sites in the rings of a measured run; empty: by ring_order
  std::int64_t bucket_bytes = 0;  // most bytes of one call of a collective; 0: unlimited
  Granularity granularity = Granularity::flat;
  WireFormat wire = plain_format(ElementType::bf16);  // of gradients, pseudo-gradients and activations
  /// Element type of parameters, moments and outer state on the wire; empty: see parameter_format().
  std::optional<ElementType> parameter_dtype;
  std::optional<ElementType> dispatch_dtype;  // of what is sent to experts; empty: that of `wire`
  OuterOptimizer outer_optimizer = OuterOptimizer::nesterov;
  OuterStateOnMigration outer_state_on_migration = OuterStateOnMigration::reset_all_owners;
  std::int64_t moment1_period = 3;  // rounds between synchronisations of the first moment
  std::int64_t moment2_period = 6;
  std::int64_t global_period = 4;  // rounds between averages over all regions, with hierarchical_diloco
  std::optional<std::int64_t> staleness;  // rounds that a site may be ahead of the slowest; empty: unlimited
  /// Slow sites of async_diloco have fewer local steps in a cycle (DyLU).
  bool dynamic_local_steps = false;
  int gossip_peers = 1;  // sites with which each site exchanges in a round
  /// Maximum number of sites that hold the experts of one token; 0: unlimited.
  int max_sites_per_token = 0;
  RouterModel router = RouterModel::uniform;
  double capacity_factor = 0;      // capacity of an expert's buffer, in mean loads; 0: unlimited
  std::int64_t micro_batches = 8;  // n, micro-batches of a pipeline in a step
  PipelineSchedule schedule = PipelineSchedule::gpipe;
  int stage_sites = 1;  // sites of each pipeline stage
  /// Each site computes two halves of its batch in turn: one half computes while the other's activations
  /// travel to experts and back.
  bool overlap_dispatch = false;
  int module_levels = 1;   // modules of a path from input to output
  int module_choices = 1;  // modules that each level offers
  /// Regions of a hierarchical all-reduce, with equally many sites each: see costmodel/plan/regions.hpp.
  int regions = 1;
  bool secure_aggregation = false;  // sums of masked payloads (costmodel/compose/composition.hpp)
  /// Sites that must be ready before a synchronisation may begin without the others; empty: all. See
  /// costmodel/plan/attendance.hpp.
  std::optional<std::int64_t> quorum;
  double straggler_timeout_s = 0;  // time for which the quorum waits for the other sites
};

/// Compute times from a step profile, and the micro-batch size with which a site accumulates gradients.
struct ProfiledCompute {
  StepProfile profile;
  std::int64_t micro_batch_sequences = 0;
};
/// A given time for one optimiser step of one site, whatever the batch.
struct GivenStepTime {
  double seconds = 0;
};
/// Compute times from a peak rate, as FLOPs ÷ (share · peak of all GPUs of a site), with one of two shares.
///   mfu                model FLOPs ÷ (step time · peak), as papers and logs report it. Model FLOPs are
///                      6 per parameter and token plus attention, without recomputation. The step includes
///                      everything: recomputation, communication inside the site, the optimiser.
///   kernel_efficiency  executed FLOPs ÷ (time of forward and backward pass · peak). Recomputation counts as
///                      executed, and of attention what causal masking leaves. Communication inside the site
///                      comes on top.
/// The other one is 0.
struct AssumedDevice {
  double peak_flops = 0;  // FLOP/s of one GPU
  double mfu = 0;
  double kernel_efficiency = 0;
  [[nodiscard]] double share_of_peak() const { return mfu > 0 ? mfu : kernel_efficiency; }
};
/// How long a straggling site stays slow: one step, a round (all of its steps), or the whole run.
enum class StragglerLasts { step, round, run };
constexpr auto enum_names(StragglerLasts) {
  return std::to_array<EnumName<StragglerLasts>>(
      {{StragglerLasts::step, "step"}, {StragglerLasts::round, "round"}, {StragglerLasts::run, "run"}});
}
/// Random variation of step times around their mean. Each step of each site is drawn independently; only
/// stragglers may persist, or be slow together.
struct StepVariation {
  double coefficient = 0;       // coefficient of variation of a log-normal factor with mean 1
  double straggler_share = 0;   // share of the steps that are stragglers
  double straggler_factor = 1;  // factor on the time of a straggler step
  StragglerLasts straggler_lasts = StragglerLasts::step;
  /// Probability that a decision about stragglers is made for all sites together instead of for each by
  /// itself. It is the correlation of two sites' decisions.
  double stragglers_together = 0;
  bool from_samples = false;  // draws a profile's samples with replacement instead of the log-normal
  [[nodiscard]] bool varies() const { return coefficient > 0 || straggler_share > 0 || from_samples; }
};

using ComputeSpec = std::variant<ProfiledCompute, GivenStepTime, AssumedDevice>;

/// GPUs and step times of one site, in a scenario whose sites differ.
struct SiteCompute {
  ComputeSpec compute;
  SiteGpus gpus;
  double peak_flops = 0;  // FLOP/s of one GPU; 0: unknown
  std::optional<GpuPower> power;
  std::vector<Provenance> catalogue;
};

/// Traffic beside the synchronisation, all off by default. Sites are given by their index in the platform.
struct ExtraTraffic {
  std::optional<int> data_site;  // site with the data set; the other sites read their sequences from it
  double data_bytes_per_token = 0;
  /// Site to which every other site uploads its state once in checkpoint_rounds
  std::optional<int> checkpoint_site;
  std::int64_t checkpoint_rounds = 1;
  std::optional<int> rejoin_site;  // site that returns without its state once in rejoin_rounds and fetches it
  std::int64_t rejoin_rounds = 1;
};

struct Scenario {
  std::string name;  // title for reports; empty: none
  ModelShape model;
  Workload workload;
  Strategy strategy;
  ComputeSpec compute;
  StepVariation variation;
  SiteGpus gpus;  // GPUs of each site
  /// GPUs and step times of each site, if sites differ. Otherwise it is empty, and `compute`, `gpus`,
  /// `peak_flops`, `power` and `catalogue` hold for all sites. AtSite selects those of one site.
  std::vector<SiteCompute> site_compute;
  std::vector<Provenance> catalogue;  // values from catalogues, and what was guessed about the model
  double peak_flops = 0;              // FLOP/s of one GPU; 0: unknown
  platforms::Platform platform;       // raw, before the network model applies
  NetworkModel network;
  ExtraTraffic traffic;
  std::optional<Prices> prices;
  std::optional<GpuPower> power;
  std::optional<QualityModel> quality;
  std::optional<Failures> failures;
  std::uint64_t seed = 42;

  [[nodiscard]] int sites() const { return platform.size(); }
};

}  // namespace fomoe::costmodel
