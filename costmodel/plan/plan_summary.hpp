// The summary of a plan for the closed form: sums and counts of the mean round, as formulas of the numeric
// axes.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// The quantities that a sweep can vary.
struct Axes {
  double sites;             // M
  double local_steps;       // K
  double expert_overlap;    // O_e; M for methods that keep full replicas
  double reshuffle_rounds;  // T
  double overlap_steps;
  double fragments;
  double tokens;
  double global_batch_sequences;
  double gpus_per_site;
  double bytes_per_element;  // mean, of a gradient, pseudo-gradient or activation on the wire
};

/// The collective of all-reduces, and the number of regions if it is hierarchical.
struct CollectiveShape {
  Collective collective = Collective::ring;
  double regions = 1;
  CollectiveShape() = default;
  CollectiveShape(Collective kind, double regions_ = 1) : collective(kind), regions(regions_) {}  // NOLINT
  friend bool operator==(const CollectiveShape& a, Collective b) { return a.collective == b; }
};

/// How a store treats what the sites upload, see costmodel/plan/plan.hpp.
struct StoreRules {
  bool aggregates = false;
  WireFormat payload;
  std::optional<double> result_share = {};
};

/// The forward and backward passes of a step over a site's part of the batch, one for each micro-batch. All
/// replicas of the site make one at the same time, and the fullest replica decides. The first pass has
/// min(m, b) of the b sequences of that replica, if a micro-batch has m, and the last one has the rest.
struct StepPasses {
  double count = 1;                        // ⌈b/m⌉
  double first_share = 1, last_share = 1;  // of the step's work
  bool given = false;                      // whether the micro-batch of some site is given
};

/// The quantities of a scenario that are the same in all rows of a sweep.
struct Fixed {
  double dense_elements = 0;   // includes the whole router with skip-token
  double expert_elements = 0;  // experts of all layers, with their router columns unless skip-token
  double embedding_elements = 0;
  double layered_elements = 0;  // part of dense_elements that every layer has alike
  double sequence_length = 0;
  double d_model = 0, layers = 0, moe_layers = 0, experts = 0, active_experts = 0;
  CollectiveShape collective;
  StoreRules store;
  PlacementKind placement = PlacementKind::fixed;
  OuterOptimizer outer_optimizer = OuterOptimizer::nesterov;
  double migrated_contents = 1;  // content sent per migrated expert ÷ its parameters; > 1 with outer state
  double parameter_bytes = 0;    // bytes of a parameter on the wire, if given; see bytes_per_parameter()
  bool sparse_payloads = false;  // top-k: payloads of different sites do not add up
  double moment1_period = 1, moment2_period = 1;  // rounds between synchronisations of a moment
  double gossip_peers = 1;
  double global_period = 1;  // rounds between averages over all regions
  FragmentPattern fragment_pattern = FragmentPattern::strided;
  bool layerwise = false;
  bool overlap_dispatch = false;
  double expert_division = 1;  // see SiteGpus::expert_division()
  Sharding sharding = Sharding::full_shard;
  PipelineSchedule schedule = PipelineSchedule::gpipe;
  bool secure_aggregation = false;
  double tied_elements = 0;         // elements of the embedding if it is also the unembedding
  double head_elements = 0;         // elements of an untied unembedding
  double expert_parameters = 0;     // experts of all layers, without router columns
  double expert_compute_share = 0;  // share of the experts in the FLOPs of a pass, if nothing is repeated
  bool timed_passes = false;        // the forward pass's share of a step was measured
  double repeated_share = 0;        // share of the forward pass that activation checkpointing repeats
  double max_sites_per_token = 0;   // 0: unlimited
  double dispatch_bytes = 0;        // bytes of an element that is sent to experts; 0: as other activations
  double sent_rows = 1;             // activations sent ÷ (tokens · k), mean over sites and layers
  double busiest_rows = 1;          // the same for the busiest site of each layer, mean over layers
  double micro_batches = 1;         // n, micro-batches of a pipeline
  double stage_sites = 1;           // sites of each pipeline stage
  bool activation_checkpointing = false;
  StepPasses passes;                                 // of a site's step
  double head_of_forward = 0, head_of_backward = 0;  // see HeadShares
  double module_choices = 1;                         // modules that each level offers to a path
};

/// Bytes that a site sends per round, mean over sites and rounds.
struct SentBytes {
  double dense = 0;
  double expert_sync = 0;
  double migration = 0;
  double activations = 0;
  double data = 0;  // extra traffic beside the synchronisation: extra_traffic.hpp
  double checkpoint = 0;
  double rejoin = 0;
  [[nodiscard]] double total() const {
    return dense + expert_sync + migration + activations + data + checkpoint + rejoin;
  }
};

/// The sites that exchange the bytes of a stage, each pair of them equally many. On a platform whose sites
/// differ, this decides which links count.
enum class Between {
  any,         // other patterns: the slowest links of the platform count
  ring,        // each site and the next one in the ring
  owners,      // likewise, and beside it the next one in rings of the owners of experts
  pairs,       // all pairs of sites at the same time
  first_site,  // the first site and each other one
  store,       // each site and the store; the stage has objects
};

/// Which of the sites exchange the bytes of a stage with each other, if they form regions.
enum class Among {
  all_sites,
  region,               // those of each region, all regions at the same time
  region_then_regions,  // a hierarchical all-reduce: inside each region, and between regions
};

/// Objects of a store, of equal size (costmodel/plan/plan.hpp): each site uploads `count` of them, and each
/// of them, or its result, has `sites` contributors.
struct StoreObjects {
  double bytes = 0, count = 0, sites = 0;
  double result_bytes = 0;  // 0: each site downloads the objects of the others
  [[nodiscard]] double uploaded() const { return count * bytes; }
  [[nodiscard]] double downloaded() const {
    return count * (result_bytes > 0 ? result_bytes : (sites - 1.0) * bytes);
  }
  /// Puts and gets of one site.
  [[nodiscard]] double requests() const { return count * (result_bytes > 0 ? 2.0 : sites); }
};

/// Transfers of a stage that have fewer steps than the others, at the same time: while the ones wait for a
/// latency, the others send.
struct Beside {
  double hops = 0;   // sequential one-way latencies
  double bytes = 0;  // of the stage's bytes; 0: there are none
  /// Of a site in each step, of which each gets as much of a port as the other transfers' flow.
  double flows = 1;
  double largest_share = 1;  // of what a site sends in a step, to one other site
};

/// Transfers that run at the same time. The stages of a summary run one after the other.
struct Stage {
  double latency_hops = 0;     // sequential one-way latencies of the longest transfer
  double bytes = 0;            // bytes through the busiest port, each way; sites are equal
  double pair_bytes = 0;       // most bytes between one ordered pair of sites
  double times_per_round = 1;  // 1/T if the stage runs in every T-th round, n if n times per round
  double hidden_steps = 0;     // local steps that may hide the stage
  bool shown_at_end = false;   // forward passes and whole steps do not hide it in the last round
  double hidden_forwards = 0;  // forward passes, possibly fractional, that may hide the stage
  double hidden_backwards = 0;
  double hidden_optimizers = 0;  // updates of all parameters, possibly fractional
  /// One-way latencies of the next stage that may hide the stage. The next stage begins when the hidden_steps
  /// end, also if this one has not ended.
  double hidden_hops = 0;
  Between between = Between::any;
  Among among = Among::all_sites;
  Beside beside = {};
  bool uneven = false;     // the flows between owners of experts differ in size, and are taken as equal
  bool drawn = false;      // random draws decide how large the flows are
  bool halving = false;    // recursive halving and doubling: each step but the last two has another peer
  bool star = false;       // all bytes pass through the first site: it receives, then it sends
  double out_share = 0.5;  // share of the bytes that the first site of a star sends
  /// A part of the stage before, with the computation that hides this part. It adds no communication: of the
  /// stage and its parts, the one with the longest exposed time counts.
  bool part_of_previous = false;
  /// Whether unequally many layers hide the times_per_round repetitions: each one is hidden by the
  /// computation of `layers_between` more than the one before, as a share of all layers. The hidden passes
  /// above are those of the mean.
  bool hidden_unequally = false;
  double layers_between = 0;                             // above 0 if hidden_unequally
  double layers_of_forward = 1, layers_of_backward = 1;  // all layers of one pass, in passes of a step
  std::array<StoreObjects, 2> objects = {};              // if between == store

  /// Sets objects[index], whose results follow from the rules. The latencies and bytes of the stage are then
  /// those of an upload and a download.
  void set_objects(std::size_t index, StoreObjects of, const StoreRules& rules);
};

struct PlanSummary {
  double steps = 0;  // optimiser steps of the run
  double rounds = 0;
  double compute_factor = 1;  // factor on forward and backward time, mean over sites
  /// Part of compute_factor that a site computes for an equal part of the tokens of all sites, whatever its
  /// part of the batch.
  double shared_factor = 0;
  /// Time that a site waits for others (pipeline bubble), in forward and backward passes.
  double idle_factor = 0;
  double optimizer_factor = 1;  // share of the parameters that a site updates
  double outer_steps_per_round = 0;
  std::vector<Stage> stages;
  SentBytes sent;
  /// Whether layers, steps or sequences do not divide evenly into parts that the stages take as equal, or
  /// transfers overlap that the stages take as consecutive.
  bool approximate = false;
  bool lower_bound = false;  // the schedule may take longer than its stages say
  /// Sites send unequally many bytes in a stage, or receive unequally many. A stage has the bytes of the
  /// busiest port, which is an uplink in one half of the stages and a downlink in the other half.
  bool uneven_ports = false;

  /// compute_factor of a site for which that equal part is `equal_part` of its own.
  [[nodiscard]] double compute_factor_of(double equal_part) const {
    return compute_factor + shared_factor * (equal_part - 1);
  }

  void add(Stage stage) { stages.push_back(std::move(stage)); }

  // Of a site in the mean round.
  [[nodiscard]] double received_bytes() const;
  [[nodiscard]] double uploaded_bytes() const;    // to a store
  [[nodiscard]] double downloaded_bytes() const;  // from a store
  [[nodiscard]] double store_requests() const;    // puts and gets
};

// --- formulas that methods share ------------------------------------------------------------------------

/// Bytes that each of n nodes sends to all-reduce one byte: 2(n−1)/n, for ring and direct alike.
inline double all_reduce_factor(double nodes) { return 2.0 * (nodes - 1.0) / nodes; }
/// Regions of a hierarchical all-reduce that have some of its nodes.
inline double regions_of(const CollectiveShape& shape, double nodes) {
  return std::min(shape.regions, nodes);
}
/// Sequential one-way latencies of an all-reduce: ring 2(n−1), direct 2, hierarchical 2(n/R−1) + 2(R−1),
/// recursive halving and doubling 2·log₂ n (Thakur, Rabenseifner, Gropp 2005); 0 for one node.
double all_reduce_hops(const CollectiveShape& shape, double nodes);
/// The part of all_reduce_factor that a node sends to one peer. ring: all of it. direct: 2/n. hierarchical:
/// the larger of the parts for the neighbour inside the region and for the one in the next region.
double all_reduce_pair_factor(const CollectiveShape& shape, double nodes);

// Bytes that each of n nodes sends to average one byte. Averaging is an all-reduce if payloads add up. Top-k
// payloads do not add up, because each site keeps values at different positions. Each site therefore sends
// its whole payload to all other sites. That is n−1 times the payload of one site, in n−1 hops round the ring
// or in 1 hop directly.
// Through a store, each site sends its payload once.
inline double averaging_factor(const Fixed& fixed, double nodes) {
  if (fixed.collective == Collective::store) return std::min(nodes - 1.0, 1.0);
  return fixed.sparse_payloads ? (nodes - 1.0) : all_reduce_factor(nodes);
}
inline double averaging_hops(const Fixed& fixed, double nodes) {
  return all_reduce_hops(fixed.collective, nodes) * (fixed.sparse_payloads ? 0.5 : 1.0);
}
inline double averaging_pair_factor(const Fixed& fixed, double nodes) {
  if (!fixed.sparse_payloads) return all_reduce_pair_factor(fixed.collective, nodes);
  if (fixed.collective == Collective::ring) return nodes - 1.0;
  return std::min(nodes - 1.0, 1.0);
}

/// Whether `whole` is no multiple of `parts`.
inline bool leaves_remainder(double whole, double parts) {
  const double each = whole / parts;
  return each != std::floor(each);
}

/// Contents that are averaged at once: the parameters and both moments, or one content.
inline double contents_of(OuterOptimizer optimizer) {
  return optimizer == OuterOptimizer::local_adamw ? 3 : 1;
}
/// 1 if averaged pseudo-gradients feed an outer step, 0 if averaging is the whole synchronisation.
inline double outer_steps_of(OuterOptimizer optimizer) {
  return optimizer == OuterOptimizer::average || optimizer == OuterOptimizer::local_adamw ? 0 : 1;
}

// Bytes that a site sends to each other site in a round of secure aggregation
// (costmodel/compose/composition.hpp).
inline constexpr double kPublicKeyBytes = 64, kSecretShareBytes = 64, kUnmaskingBytes = 32;

/// Mean bytes of a parameter, moment or element of outer state on the wire. See parameter_format(): bf16 has
/// 2 bytes.
inline double bytes_per_parameter(const Axes& axes, const Fixed& fixed) {
  if (fixed.parameter_bytes > 0) return fixed.parameter_bytes;
  return fixed.sparse_payloads ? 2.0 : std::max(axes.bytes_per_element, 2.0);
}
/// Mean bytes of an element of the values that sites average with an outer optimiser.
inline double averaged_bytes_per_element(const Axes& axes, const Fixed& fixed, OuterOptimizer optimizer) {
  return outer_steps_of(optimizer) > 0 ? axes.bytes_per_element : bytes_per_parameter(axes, fixed);
}

/// Adds the techniques that combine with every method's formula (here secure aggregation) to its summary.
void compose(PlanSummary& summary, const Axes& axes, const Fixed& fixed);

/// Content that is sent for a migrated expert, in multiples of the elements of its parameters.
inline double migrated_contents_of(OuterOptimizer optimizer, OuterStateOnMigration what) {
  if (what == OuterStateOnMigration::reset_all_owners || outer_steps_of(optimizer) == 0) return 1;
  return optimizer == OuterOptimizer::nesterov ? 2 : 3;  // Adam and Yogi send two moments
}

/// A summary with ⌈tokens ÷ global batch⌉ steps in rounds of `steps_per_round`; the last round may be short.
PlanSummary rounds_of(const Axes& axes, const Fixed& fixed, double steps_per_round);

/// One transfer in which all sites average `bytes` bytes, of one object if it is through a store.
Stage averaging_stage(const Axes& axes, const Fixed& fixed, double bytes);

/// All sites average the dense elements and all experts once a round. Each element has `bytes` bytes, which
/// are the sum over its contents if several contents are averaged.
PlanSummary full_model_summary(const Axes& axes, const Fixed& fixed, double steps_per_round, double bytes);

/// Every K steps, all other sites send the pseudo-gradients of the whole model, S_up bytes, to the first site
/// and receive its parameters, S_down bytes. All bytes pass through the first site's ports, one direction
/// after the other. The mean over the M sites of the bytes that a site sends is
///   ((M−1)·S_up + (M−1)·S_down) ÷ M
PlanSummary through_first_site(const Axes& axes, const Fixed& fixed);

}  // namespace fomoe::costmodel
