// A training method: a pure function from a scenario to a plan, and the same method as a closed formula. Each
// method has one file and one test.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Which part of the parameters, moments and gradients a site keeps.
enum class Residency {
  replica,           // everything, or O_e/M of the experts if the method places experts
  sharded,           // a pipeline stage: 1/M of the layers, and an embedding table at each end
  sharded_gathered,  // 1/M of everything; during a step also what Sharding gathers
  experts_sharded,   // everything except the experts, and 1/M of the experts
};

struct Method {
  std::string name;                    // value of strategy.method
  std::string_view summary;            // one line: what is sent, to whom and when
  std::vector<std::string_view> axes;  // keys of [strategy] that affect the method
  std::string_view source;
  /// For `fomoe list methods --details`: variants of the source that are not modelled, and what is assumed
  /// where the source says nothing.
  std::string_view not_modelled = {}, assumptions = {};
  /// Supports sites that hold a part of the experts (expert_overlap < sites).
  bool partial_experts = false;
  bool without_outer_momentum = false;    // something else stands in place of Nesterov's momentum
  double outer_bytes_per_parameter = 0;   // outer optimiser state that a site keeps
  double moment_bytes_per_parameter = 8;  // state of the inner optimiser: AdamW's two fp32 moments
  /// Payloads of the whole model that a site encodes and decodes with an outer step, in pairs of one encoded
  /// and one decoded payload: differences, and parameters, which have a format of their own.
  double encoded_differences = 1, encoded_parameters = 0;
  bool own_embedding = false;  // each site keeps its own embedding, without outer state for it
  bool every_step = false;     // synchronises after each step; local_steps does not apply
  bool through_store = false;  // its synchronisations can pass through a store (collective = store)
  bool through_chain = false;  // a server reduces and broadcasts, along a chain with collective = chain
  /// The first site trains on the whole global batch, the others are idle.
  bool one_site = false;
  std::optional<WireFormat> usual_wire = {};  // default if the scenario has no payload_dtype; empty: bf16
  /// Default of strategy.fragments, for the rest of the strategy; nullptr: 1.
  int (*usual_fragments)(const ModelShape&, const Strategy&) = nullptr;
  std::int64_t usual_overlap_steps = 0;  // default of strategy.overlap_steps
  double rounds_late = 0;  // rounds that pass before an update counts, beside strategy.overlap_steps
  /// True if, after a synchronisation, all sites that hold a parameter hold the same average over all of
  /// them.
  bool averages_everything = true;
  /// Whether the method sends data within a step, so that forward and backward pass are timed separately.
  /// nullptr: it never does.
  bool (*inside_step)(const Scenario&) = nullptr;
  /// Whether workers never wait for each other, so that the closed form is that of own_pace.hpp. nullptr:
  /// they always do.
  bool (*own_pace)(const Strategy&) = nullptr;
  Residency residency = Residency::replica;
  void (*check)(const Scenario&) = nullptr;  // throws InputError if the method cannot run the scenario
  Plan (*plan)(const Scenario&) = nullptr;
  /// Summary of the mean round of `plan`, without the techniques that combine with every method: see
  /// summarise().
  PlanSummary (*formula)(const Axes&, const Fixed&) = nullptr;
};

/// Summary of the mean round of the method's plan.
PlanSummary summarise(const Method& method, const Axes& axes, const Fixed& fixed);

/// Value of Method::inside_step for methods that always send within a step.
inline bool always(const Scenario&) { return true; }

/// Residency of the method. With hybrid_shard, every site of fsdp has a replica.
inline Residency residency_of(const Method& method, Sharding sharding) {
  const bool hybrid = method.residency == Residency::sharded_gathered && sharding == Sharding::hybrid_shard;
  return hybrid ? Residency::replica : method.residency;
}

/// Whether sites may process parts of the batch that differ: each site computes all of its own part.
inline bool allows_unequal_parts(const Method& method) {
  return method.residency != Residency::sharded && method.residency != Residency::experts_sharded;
}

/// Whether the sites train at their own pace.
inline bool at_own_pace(const Strategy& strategy) {
  return strategy.method->own_pace != nullptr && strategy.method->own_pace(strategy);
}

bool has_axis(const Method& method, std::string_view key);
/// Whether the method averages parts of the model at different times of a round, or while steps follow: with
/// fragments or overlap_steps, where they affect it. Buckets of gradients are no such parts.
bool in_fragments(const Strategy& strategy);
/// Notes in words on the keys that the scenario sets although its method ignores them.
std::vector<std::string> ignored_axes(const Scenario& scenario);

}  // namespace fomoe::costmodel
