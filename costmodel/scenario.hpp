// What a user asks: model, workload, strategy, compute, platform. Plain data in SI units; every value is
// legal once the reader has made it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "costmodel/model_shape.hpp"
#include "costmodel/routing_counts.hpp"
#include "costmodel/site_gpus.hpp"
#include "costmodel/step_profile.hpp"
#include "costmodel/wire_format.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

enum class PlacementKind { fixed, random };
enum class Collective { ring, direct, hierarchical };
/// Who decides how many tokens each expert gets (costmodel/router_load.hpp).
enum class RouterModel { uniform, hash, expert_choice };

struct Workload {
  std::int64_t tokens = 0;                  // to be processed by all sites together
  std::int64_t global_batch_sequences = 0;  // per optimiser step, over all sites
};

struct Strategy {
  std::string method;              // a name that `fomoe list methods` prints
  std::int64_t local_steps = 1;    // K
  int expert_overlap = 0;          // O_e: how many sites hold each expert, 1 … sites
  std::int64_t overlap_steps = 0;  // steps that a synchronisation may hide behind, where the method can
  int fragments = 1;               // parts of the model that are synchronised in turn
  PlacementKind placement = PlacementKind::fixed;
  std::int64_t reshuffle_rounds = 1;  // T: a random placement is redrawn at the end of every T-th round
  bool skip_token = false;
  RoutingCounts routing_counts;  // of the user's router; empty: not measured
  Collective collective = Collective::ring;
  WireFormat wire = plain_format(ElementType::bf16);
  int max_sites_per_token = 0;  // that the experts of one token are on; 0: as many as there are experts
  RouterModel router = RouterModel::uniform;
  double capacity_factor = 0;       // of an expert's buffer, in mean loads; 0: buffers grow as needed
  std::int64_t micro_batches = 8;   // n, that a pipeline cuts the global batch into
  int module_levels = 1;            // of a path, from input to output
  int module_choices = 1;           // modules that each level offers
  int regions = 1;                  // of equally many consecutive sites, for hierarchical all-reduces
  bool secure_aggregation = false;  // sums of masked payloads (costmodel/methods/composition.hpp)
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
using ComputeSpec = std::variant<ProfiledCompute, GivenStepTime, AssumedDevice>;

/// How a ring is simulated: every chunk a flow, each step after the one before; or one flow a hop, as if the
/// ring were pipelined in slices so fine that latency hides behind bytes.
enum class RingModel { stepwise, fluid };

/// Every factor between a raw link and what payload gets.
struct NetworkModel {
  double bandwidth_efficiency = 1.0;  // (0, 1]
  RingModel ring_model = RingModel::stepwise;
};

struct Scenario {
  ModelShape model;
  Workload workload;
  Strategy strategy;
  ComputeSpec compute;
  SiteGpus gpus;                 // of every site
  platforms::Platform platform;  // raw, before the network model
  NetworkModel network;
  std::uint64_t seed = 42;

  [[nodiscard]] int sites() const { return platform.size(); }
};

/// Refuses combinations that no single key shows: throws InputError naming the key and the nearest legal
/// values.
void check(const Scenario& scenario);

const char* to_string(PlacementKind kind);
const char* to_string(Collective collective);
const char* to_string(RouterModel router);
const char* to_string(RingModel model);

}  // namespace fomoe::costmodel
