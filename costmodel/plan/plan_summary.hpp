// The summary of a plan for the closed form: sums and counts of the mean round, as formulas of the numeric
// axes.
//
// The formulas are written once, as templates over V: `double` for one scenario, `Block` for a sweep, where
// each lane is a configuration. Branches on an axis must therefore be arithmetic (min, max, products with 0
// or 1).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"

namespace fomoe::costmodel {

/// The quantities that a sweep can vary.
template <class V>
struct Axes {
  V sites;             // M
  V local_steps;       // K
  V expert_overlap;    // O_e; M for methods that keep full replicas
  V reshuffle_rounds;  // T
  V overlap_steps;
  V fragments;
  V tokens;
  V global_batch_sequences;
  V gpus_per_site;
  V bytes_per_element;  // mean bytes of an element of a gradient, pseudo-gradient or activation on the wire
};

/// The collective of all-reduces, and the number of regions if it is hierarchical.
struct CollectiveShape {
  Collective collective = Collective::ring;
  double regions = 1;
  CollectiveShape() = default;
  CollectiveShape(Collective kind, double regions_ = 1) : collective(kind), regions(regions_) {}  // NOLINT
  friend bool operator==(const CollectiveShape& a, Collective b) { return a.collective == b; }
};

/// The quantities of a scenario that are the same in all lanes of a sweep.
struct Fixed {
  double dense_elements = 0;   // includes the whole router with skip-token
  double expert_elements = 0;  // experts of all layers, with their router columns unless skip-token
  double embedding_elements = 0;
  double layered_elements = 0;  // part of dense_elements that every layer has alike
  double sequence_length = 0;
  double d_model = 0, layers = 0, moe_layers = 0, experts = 0, active_experts = 0;
  CollectiveShape collective;
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
  double expert_parallel = 1;  // GPUs of a site that divide the experts
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
  /// Sequences of a site in one forward and backward pass, for each of its GPUs; 0: all at once.
  double sequences_per_pass_and_gpu = 0;
  double module_choices = 1;  // modules that each level offers to a path
};

/// Bytes that a site sends per round, mean over sites and rounds.
template <class V>
struct SentBytes {
  V dense = constant<V>(0);
  V expert_sync = constant<V>(0);
  V migration = constant<V>(0);
  V activations = constant<V>(0);
  V data = constant<V>(0);  // extra traffic beside the synchronisation: extra_traffic.hpp
  V checkpoint = constant<V>(0);
  V rejoin = constant<V>(0);
  [[nodiscard]] V total() const {
    return dense + expert_sync + migration + activations + data + checkpoint + rejoin;
  }
};

/// The sites that exchange the bytes of a stage, each pair of them equally many. On a platform whose sites
/// differ, this decides which links count.
enum class Between {
  any,         // other patterns: the slowest links of the platform count
  ring,        // each site and the next one in the ring
  pairs,       // all pairs of sites at the same time
  first_site,  // the first site and each other one
};

/// Transfers that run at the same time. The stages of a summary run one after the other.
template <class V>
struct Stage {
  V latency_hops = constant<V>(0);     // sequential one-way latencies of the longest transfer
  V bytes = constant<V>(0);            // bytes through the busiest port, each way; sites are equal
  V pair_bytes = constant<V>(0);       // most bytes between one ordered pair of sites
  V times_per_round = constant<V>(1);  // 1/T if the stage runs in every T-th round, n if n times per round
  V hidden_steps = constant<V>(0);     // local steps that may hide the stage
  bool shown_at_end = false;           // forward passes and whole steps do not hide it in the last round
  V hidden_forwards = constant<V>(0);  // forward passes, possibly fractional, that may hide the stage
  V hidden_backwards = constant<V>(0);
  V hidden_optimizers = constant<V>(0);  // updates of all parameters, possibly fractional
  /// One-way latencies of the next stage that may hide the stage. The next stage begins when the hidden_steps
  /// end, also if this one has not ended.
  V hidden_hops = constant<V>(0);
  Between between = Between::any;
  bool star = false;               // all bytes pass through the first site: it receives, then it sends
  V out_share = constant<V>(0.5);  // share of the bytes that the first site of a star sends
  /// A part of the stage before, with the computation that hides this part. It adds no communication: of the
  /// stage and its parts, the one with the longest exposed time counts.
  bool part_of_previous = false;
  /// Whether unequally many layers hide the times_per_round repetitions: each one is hidden by the
  /// computation of `layers_between` more than the one before, as a share of all layers. The hidden passes
  /// above are those of the mean.
  bool hidden_unequally = false;
  V layers_between = constant<V>(0);  // above 0 if hidden_unequally
  V share_of_pass = constant<V>(1);   // share of a site's batch in the pass of these layers
};

/// The stages of a summary. Only those that were added are initialised: a block of lanes is large.
template <class V>
class StageList {
 public:
  static constexpr std::size_t kMost = 13;  // fsdp has eleven, and extra traffic adds two
  Stage<V>& operator[](std::size_t i) { return *stages_[i]; }
  const Stage<V>& operator[](std::size_t i) const { return *stages_[i]; }
  void set(std::size_t i, Stage<V> stage) { stages_.at(i).emplace(std::move(stage)); }

 private:
  std::array<std::optional<Stage<V>>, kMost> stages_;
};

template <class V>
struct Summary {
  V steps = constant<V>(0);  // optimiser steps of the run
  V rounds = constant<V>(0);
  V compute_factor = constant<V>(1);  // factor on forward and backward time, mean over sites
  /// Time that a site waits for others (pipeline bubble), in forward and backward passes.
  V idle_factor = constant<V>(0);
  V optimizer_factor = constant<V>(1);  // share of the parameters that a site updates
  V outer_steps_per_round = constant<V>(0);
  StageList<V> stages;
  int stage_count = 0;
  SentBytes<V> sent;
  /// 1 where layers, steps or sequences do not divide evenly into parts that the stages take as equal, or
  /// where transfers overlap that the stages take as consecutive; else 0.
  V approximate = constant<V>(0);
  bool lower_bound = false;  // the schedule may take longer than its stages say
  /// Sites send unequally many bytes in a stage, or receive unequally many. A stage has the bytes of the
  /// busiest port, which is an uplink in one half of the stages and a downlink in the other half.
  bool uneven_ports = false;

  void add(Stage<V> stage) { stages.set(static_cast<std::size_t>(stage_count++), std::move(stage)); }
};
using PlanSummary = Summary<double>;

// --- formulas that methods share ------------------------------------------------------------------------

/// Bytes that each of n nodes sends to all-reduce one byte: 2(n−1)/n, for ring and direct alike.
template <class V>
V all_reduce_factor(const V& nodes) {
  return 2.0 * (nodes - 1.0) / nodes;
}
/// Regions of a hierarchical all-reduce that have some of its nodes.
template <class V>
V regions_of(const CollectiveShape& shape, const V& nodes) {
  return min_of(constant<V>(shape.regions), nodes);
}
/// Sequential one-way latencies of an all-reduce: ring 2(n−1), direct 2, hierarchical 2(n/R−1) + 2(R−1),
/// recursive halving and doubling 2·log₂ n (Thakur, Rabenseifner, Gropp 2005); 0 for one node.
template <class V>
V all_reduce_hops(const CollectiveShape& shape, const V& nodes) {
  if (shape == Collective::ring) return 2.0 * (nodes - 1.0);
  if (shape == Collective::hierarchical) {
    const V regions = regions_of(shape, nodes);
    return 2.0 * (nodes / regions - 1.0) + 2.0 * (regions - 1.0);
  }
  if (shape == Collective::recursive) return 2.0 * log2_of(nodes);
  return 2.0 * min_of(V(nodes - 1.0), constant<V>(1));
}
/// The part of all_reduce_factor that a node sends to one peer. ring: all of it. direct: 2/n. hierarchical:
/// the larger of the parts for the neighbour inside the region and for the one in the next region.
template <class V>
V all_reduce_pair_factor(const CollectiveShape& shape, const V& nodes) {
  if (shape == Collective::ring) return all_reduce_factor(nodes);
  if (shape == Collective::recursive) return all_reduce_factor(nodes);  // one peer at a time
  if (shape == Collective::hierarchical) {
    const V regions = regions_of(shape, nodes), inside = nodes / regions;
    return max_of(V(all_reduce_factor(inside)), V(all_reduce_factor(regions) / inside));
  }
  return 2.0 / nodes * min_of(V(nodes - 1.0), constant<V>(1));
}

// Bytes that each of n nodes sends to average one byte. Averaging is an all-reduce if payloads add up. Top-k
// payloads do not add up, because each site keeps values at different positions. Each site therefore sends
// its whole payload to all other sites. That is n−1 times the payload of one site, in n−1 hops round the ring
// or in 1 hop directly.
template <class V>
V averaging_factor(const Fixed& fixed, const V& nodes) {
  return fixed.sparse_payloads ? V(nodes - 1.0) : all_reduce_factor(nodes);
}
template <class V>
V averaging_hops(const Fixed& fixed, const V& nodes) {
  return all_reduce_hops(fixed.collective, nodes) * (fixed.sparse_payloads ? 0.5 : 1.0);
}
template <class V>
V averaging_pair_factor(const Fixed& fixed, const V& nodes) {
  if (!fixed.sparse_payloads) return all_reduce_pair_factor(fixed.collective, nodes);
  if (fixed.collective == Collective::ring) return nodes - 1.0;
  return min_of(V(nodes - 1.0), constant<V>(1));
}

/// 1 if `whole` is no multiple of `parts`, else 0.
template <class V>
V leaves_remainder(const V& whole, const V& parts) {
  const V each = whole / parts;
  return ceil_of(each) - floor_of(each);
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
template <class V>
V bytes_per_parameter(const Axes<V>& axes, const Fixed& fixed) {
  if (fixed.parameter_bytes > 0) return constant<V>(fixed.parameter_bytes);
  return fixed.sparse_payloads ? constant<V>(2) : max_of(axes.bytes_per_element, constant<V>(2));
}
/// Mean bytes of an element of the values that sites average with an outer optimiser.
template <class V>
V averaged_bytes_per_element(const Axes<V>& axes, const Fixed& fixed, OuterOptimizer optimizer) {
  return outer_steps_of(optimizer) > 0 ? axes.bytes_per_element : bytes_per_parameter(axes, fixed);
}

/// The links that averaging among all sites uses.
inline Between averaging_between(const Fixed& fixed) {
  if (fixed.collective == Collective::ring) return Between::ring;
  return fixed.collective == Collective::direct ? Between::pairs : Between::any;
}

/// Adds the techniques that combine with every method's formula (here secure aggregation) to its summary.
template <class V>
void compose(Summary<V>& summary, const Axes<V>& axes, const Fixed& fixed) {
  if (!fixed.secure_aggregation) return;
  const double bytes = kPublicKeyBytes + kSecretShareBytes + kUnmaskingBytes;
  const V others = axes.sites - 1.0;
  const V any = min_of(others, constant<V>(1));  // 0 if there is only one site
  Stage<V>& sums = summary.stages[0];
  sums.latency_hops += 3.0 * any;
  sums.between = Between::any;
  sums.bytes += bytes * others;
  sums.pair_bytes += bytes * any;
  summary.sent.dense += bytes * others * sums.times_per_round;
}

/// Content that is sent for a migrated expert, in multiples of the elements of its parameters.
inline double migrated_contents_of(OuterOptimizer optimizer, OuterStateOnMigration what) {
  if (what == OuterStateOnMigration::reset_all_owners || outer_steps_of(optimizer) == 0) return 1;
  return optimizer == OuterOptimizer::nesterov ? 2 : 3;  // Adam and Yogi send two moments
}

/// A summary with ⌈tokens ÷ global batch⌉ steps in rounds of `steps_per_round`; the last round may be short.
template <class V>
Summary<V> rounds_of(const Axes<V>& axes, const Fixed& fixed, const V& steps_per_round) {
  Summary<V> summary;
  summary.steps = ceil_of(V(axes.tokens / (axes.global_batch_sequences * fixed.sequence_length)));
  summary.rounds = ceil_of(V(summary.steps / steps_per_round));
  return summary;
}

/// Share of a site's batch in one forward and backward pass, see pass_share(); 1 if it is not given. The
/// first site has ⌈batch ÷ sites⌉ sequences.
template <class V>
V share_of_pass(const Axes<V>& axes, const Fixed& fixed) {
  if (fixed.sequences_per_pass_and_gpu == 0) return constant<V>(1);
  const V sequences = ceil_of(V(axes.global_batch_sequences / axes.sites));
  return min_of(V(fixed.sequences_per_pass_and_gpu * axes.gpus_per_site / sequences), constant<V>(1));
}

/// One transfer in which all sites average `bytes` bytes.
template <class V>
Stage<V> averaging_stage(const Axes<V>& axes, const Fixed& fixed, const V& bytes) {
  Stage<V> stage;
  stage.latency_hops = averaging_hops(fixed, axes.sites);
  stage.bytes = averaging_factor(fixed, axes.sites) * bytes;
  stage.pair_bytes = averaging_pair_factor(fixed, axes.sites) * bytes;
  stage.between = averaging_between(fixed);
  return stage;
}

/// All sites average the dense elements and all experts once a round. Each element has `bytes` bytes, which
/// are the sum over its contents if several contents are averaged.
template <class V>
Summary<V> full_model_summary(const Axes<V>& axes, const Fixed& fixed, const V& steps_per_round,
                              const V& bytes) {
  Summary<V> summary = rounds_of(axes, fixed, steps_per_round);
  const V factor = averaging_factor(fixed, axes.sites) * bytes;
  summary.sent.dense = factor * fixed.dense_elements;
  summary.sent.expert_sync = factor * fixed.expert_elements;
  summary.add(averaging_stage(axes, fixed, V(bytes * (fixed.dense_elements + fixed.expert_elements))));
  return summary;
}

/// Every K steps, all other sites send the pseudo-gradients of the whole model, S_up bytes, to the first site
/// and receive its parameters, S_down bytes. All bytes pass through the first site's ports, one direction
/// after the other. The mean over the M sites of the bytes that a site sends is
///   ((M−1)·S_up + (M−1)·S_down) ÷ M
template <class V>
Summary<V> through_first_site(const Axes<V>& axes, const Fixed& fixed) {
  Summary<V> summary = rounds_of(axes, fixed, axes.local_steps);
  summary.outer_steps_per_round = constant<V>(1);
  const V others = axes.sites - 1.0;
  const V up = axes.bytes_per_element, down = bytes_per_parameter(axes, fixed);  // of an element
  const V both_ways = others / axes.sites * (up + down);
  summary.sent.dense = both_ways * fixed.dense_elements;
  summary.sent.expert_sync = both_ways * fixed.expert_elements;
  Stage<V> stage;
  stage.latency_hops = 2.0 * min_of(others, constant<V>(1));  // one up, one down
  stage.star = true;
  stage.out_share = down / (up + down);
  stage.bytes = axes.sites * summary.sent.total();
  stage.pair_bytes = summary.sent.total() * axes.sites / max_of(others, constant<V>(1));
  stage.between = Between::first_site;
  summary.add(stage);
  return summary;
}

}  // namespace fomoe::costmodel
