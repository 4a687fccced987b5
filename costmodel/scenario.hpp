// What a user asks: model, workload, strategy, compute, platform. Plain data in SI units; every value is
// legal once the reader has made it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "costmodel/model_shape.hpp"
#include "costmodel/network_model.hpp"
#include "costmodel/step_profile.hpp"
#include "costmodel/wire_format.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

enum class PlacementKind { fixed, random };
enum class Collective { ring, direct };
enum class RingOrder { given, best };  // of the sites in a ring; best: see ring_order.hpp

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
  Collective collective = Collective::ring;
  RingOrder ring_order = RingOrder::best;
  std::int64_t bucket_bytes = 0;  // most that one call of a collective sends at once; 0: everything
  WireFormat wire = plain_format(ElementType::bf16);
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
/// FLOPs ÷ (MFU · peak).
struct AssumedDevice {
  double peak_flops = 0;  // FLOP/s of one GPU
  double mfu = 0;         // (0, 1]
  int gpus_per_site = 1;
};
using ComputeSpec = std::variant<ProfiledCompute, GivenStepTime, AssumedDevice>;

struct Scenario {
  ModelShape model;
  Workload workload;
  Strategy strategy;
  ComputeSpec compute;
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
const char* to_string(RingOrder order);

}  // namespace fomoe::costmodel
