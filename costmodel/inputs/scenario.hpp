// What a user asks: model, workload, strategy, compute, platform. Plain data in SI units; every value is
// legal once the reader has made it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "costmodel/inputs/energy.hpp"
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

struct Method;  // costmodel/plan/method.hpp

enum class PlacementKind { fixed, random, affinity };
enum class Collective { ring, direct, hierarchical, recursive };
enum class Granularity { flat, tensor };  // what one call of a collective sends: everything, or one tensor
enum class RingOrder { given, best };     // of the sites in a ring; best: see ring_order.hpp
/// What is made of the sites' differences after K local steps. nesterov, adam, yogi: an outer step on
/// averaged pseudo-gradients (DiLoCo; FedOpt, Reddi et al. 2021, arXiv 2003.00295). average: parameters are
/// averaged. local_adamw: parameters and both moments are.
enum class OuterOptimizer { nesterov, adam, yogi, average, local_adamw };
/// What becomes of an expert's outer momentum when its owners change. reset: all owners, old ones included,
/// start anew, so that they agree. transfer: it travels with the expert.
enum class OuterStateOnMigration { reset_all_owners, transfer };
/// Who decides how many tokens each expert gets (costmodel/model/router_load.hpp).
enum class RouterModel { uniform, hash, expert_choice };

struct Workload {
  std::int64_t tokens = 0;                  // to be processed by all sites together
  std::int64_t global_batch_sequences = 0;  // per optimiser step, over all sites
};

struct Strategy {
  const Method* method = nullptr;  // one that `fomoe list methods` prints; the reader always sets it
  std::int64_t local_steps = 1;    // K
  int expert_overlap = 0;          // O_e: how many sites hold each expert, 1 … sites
  std::int64_t overlap_steps = 0;  // steps that a synchronisation may hide behind, where the method can
  int fragments = 1;  // parts of the model that are synchronised in turn; of ddp, buckets of gradients
  PlacementKind placement = PlacementKind::fixed;
  std::int64_t reshuffle_rounds = 1;  // T: a random placement is redrawn at the end of every T-th round
  bool skip_token = false;
  RoutingCounts routing_counts;  // of placement = affinity
  Collective collective = Collective::ring;
  RingOrder ring_order = RingOrder::best;
  std::int64_t bucket_bytes = 0;  // most that one call of a collective sends at once; 0: everything
  Granularity granularity = Granularity::flat;
  WireFormat wire = plain_format(ElementType::bf16);
  OuterOptimizer outer_optimizer = OuterOptimizer::nesterov;
  OuterStateOnMigration outer_state_on_migration = OuterStateOnMigration::reset_all_owners;
  std::int64_t moment1_period = 3;  // rounds from one synchronisation of the first moment to the next
  std::int64_t moment2_period = 6;
  std::optional<std::int64_t> staleness;  // rounds that a site may be ahead of the slowest; none: any
  int gossip_peers = 1;                   // sites that each site exchanges with in a round
  int max_sites_per_token = 0;  // that the experts of one token are on; 0: as many as there are experts
  RouterModel router = RouterModel::uniform;
  double capacity_factor = 0;       // of an expert's buffer, in mean loads; 0: buffers grow as needed
  std::int64_t micro_batches = 8;   // n, that a pipeline cuts the global batch into
  int module_levels = 1;            // of a path, from input to output
  int module_choices = 1;           // modules that each level offers
  int regions = 1;                  // of equally many consecutive sites, for hierarchical all-reduces
  bool secure_aggregation = false;  // sums of masked payloads (costmodel/compose/composition.hpp)
};

/// A step profile, and the micro-batch a site accumulates from.
struct ProfiledCompute {
  StepProfile profile;
  std::int64_t micro_batch_sequences = 0;
};
/// One optimiser step of one site, whatever the batch.
struct GivenStepTime {
  double seconds = 0;
};
/// FLOPs ÷ (MFU · peak of all GPUs of a site). Recomputed FLOPs count as executed.
struct AssumedDevice {
  double peak_flops = 0;  // FLOP/s of one GPU
  double mfu = 0;         // (0, 1]
};
/// How long steps take beside their mean. Each step of each site is drawn by itself.
struct StepVariation {
  double coefficient = 0;       // of variation, of a log-normal draw with mean 1
  double straggler_share = 0;   // of the steps …
  double straggler_factor = 1;  // … that take so many times as long
  bool from_samples = false;    // a profile's samples, drawn with replacement, instead of the log-normal
  [[nodiscard]] bool varies() const { return coefficient > 0 || straggler_share > 0 || from_samples; }
};

using ComputeSpec = std::variant<ProfiledCompute, GivenStepTime, AssumedDevice>;

/// Traffic beside the synchronisation, all off by default. Sites by their index in the platform.
struct ExtraTraffic {
  std::optional<int>
      data_site;  // holds the data set; the other sites read their sequences from it as they train
  double data_bytes_per_token = 0;
  std::optional<int> checkpoint_site;  // every other site uploads its state there, once in checkpoint_rounds
  std::int64_t checkpoint_rounds = 1;
  std::optional<int> rejoin_site;  // comes back without its state once in rejoin_rounds, and fetches it
  std::int64_t rejoin_rounds = 1;
};

struct Scenario {
  ModelShape model;
  Workload workload;
  Strategy strategy;
  ComputeSpec compute;
  StepVariation variation;
  SiteGpus gpus;                      // of every site
  std::vector<Provenance> catalogue;  // what the accelerator catalogue filled in
  platforms::Platform platform;       // raw, before the network model
  NetworkModel network;
  ExtraTraffic traffic;
  std::optional<Prices> prices;
  std::optional<GpuPower> power;
  std::optional<QualityModel> quality;
  std::optional<Failures> failures;
  std::uint64_t seed = 42;

  [[nodiscard]] int sites() const { return platform.size(); }
};

const char* to_string(PlacementKind kind);
const char* to_string(Collective collective);
const char* to_string(RingOrder order);
const char* to_string(Granularity granularity);
const char* to_string(OuterOptimizer optimizer);
const char* to_string(OuterStateOnMigration what);
const char* to_string(RouterModel router);

}  // namespace fomoe::costmodel
