#include "costmodel/methods/shared/fragment_rounds.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "costmodel/methods/shared/fragment_parts.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/fragment_turns.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

struct Turns : FragmentTurns {
  bool layerwise;

  // Layer by layer, a site waits in a step that follows.
  [[nodiscard]] bool reaches_next_round(std::int64_t p) const {
    return waited_at(p) > local_steps - (layerwise ? 1 : 0);
  }
};

// What is in flight when a round begins and when it ends.
struct Ends {
  bool starts_empty = false;  // no fragment of the round before is in flight
  bool ends_whole = false;    // all fragments are sent after the last step, and the sites wait for them
};

// By fragment: the operations that send it, or its last part.
using SentOps = std::vector<std::vector<OpId>>;

// Builds one round step by step. The operations of full rounds have the same ids in every round, so that a
// round can refer to operations of the previous one.
class RoundBuilder {
 public:
  RoundBuilder(const Scenario& scenario, const std::vector<FragmentTransfers>& fragments, const Turns& turns,
               bool outer_steps, Ends ends, std::int64_t steps)
      : scenario_(scenario),
        fragments_(fragments),
        turns_(turns),
        outer_steps_(outer_steps ? 1 : 0),
        passes_(step_passes(scenario)),
        head_(head_shares(scenario.model, scenario.gpus, flops_per_token(scenario))),
        ends_(ends),
        steps_(steps),
        sent_(fragments.size()),
        merged_(fragments.size(), -1) {}

  RoundPlan build(const SentOps& sent_in_previous) {
    std::set<std::int64_t> stops = {steps_};
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      stops.insert({sent_at(p), arrives_at(p), arrives_from_previous_at(p)});
    }
    std::int64_t step = 0;
    for (const std::int64_t stop : stops) {
      if (stop > steps_) break;
      train(step, stop);
      step = stop;
      stop_at(stop, sent_in_previous);
    }
    for (const Merge& merge : merges_) wait_for(merge);  // no step follows
    return std::move(round_);
  }
  [[nodiscard]] const SentOps& sent() const { return sent_; }
  /// The last outer steps of the fragments in this round.
  [[nodiscard]] const std::vector<OpId>& merged() const { return merged_; }

 private:
  // A fragment whose average is needed, and the operations that carry it.
  struct Merge {
    std::int64_t fragment;
    std::vector<OpId> arrived;
    bool in_previous_round;
  };

  [[nodiscard]] std::int64_t sent_at(std::int64_t p) const {
    return ends_.ends_whole ? steps_ : std::min(turns_.sent_at(p), steps_);
  }
  [[nodiscard]] std::int64_t arrives_at(std::int64_t p) const {
    const std::int64_t at = sent_at(p) + turns_.overlap_steps;
    return ends_.ends_whole ? std::min(at, steps_) : at;
  }
  [[nodiscard]] std::int64_t arrives_from_previous_at(std::int64_t p) const {
    const std::int64_t at = turns_.waited_at(p) - turns_.local_steps;
    return turns_.reaches_next_round(p) ? std::min(at, steps_) : steps_;
  }
  [[nodiscard]] bool leaves_round(std::int64_t p) const {
    return !ends_.ends_whole && arrives_at(p) > steps_ - (turns_.layerwise ? 1 : 0);
  }
  [[nodiscard]] const FragmentTransfers& fragment(std::int64_t p) const {
    return fragments_[static_cast<std::size_t>(p)];
  }

  OpId add(Op op) {
    round_.ops.push_back(std::move(op));
    return static_cast<OpId>(round_.ops.size()) - 1;
  }
  void compute(std::string name, Work work, double share, std::int64_t repeat = 1) {
    if (share <= 0) return;
    Op op = compute_op(scenario_, std::move(name), work, repeat, gates_);
    std::get<Compute>(op.what).share = share;
    trained_ = add(std::move(op));
    gates_ = {trained_};
  }

  // Trains the steps [from, to). The first one is split where it waits for layers, and the last one where it
  // sends them.
  void train(std::int64_t from, std::int64_t to) {
    if (from == to) return;
    if (!merges_.empty()) split_step(++from);
    const bool splits_last = turns_.layerwise && from < to && sends_at(to);
    if (from < to - splits_last) compute("local steps", Work::whole_step, 1, to - splits_last - from);
    if (splits_last) split_step(to);
  }

  [[nodiscard]] bool sends_at(std::int64_t stop) const {
    for (std::int64_t p = 0; p < turns_.count; ++p)
      if (sent_at(p) == stop) return true;
    return false;
  }

  // One step that ends at `end`.
  void split_step(std::int64_t end) {
    const auto layers = static_cast<double>(scenario_.model.layers);
    std::stable_sort(merges_.begin(), merges_.end(), [this](const Merge& a, const Merge& b) {
      return fragment(a.fragment).first_layer < fragment(b.fragment).first_layer;
    });
    double done = 0;
    for (const Merge& merge : merges_) {
      const int layer = fragment(merge.fragment).first_layer;
      const double until = passes_.first_share * (1 - head_.forward) * layer / layers;
      compute("forward to layer " + std::to_string(layer), Work::forward, until - done);
      done = std::max(done, until);
      wait_for(merge);
    }
    merges_.clear();
    compute("forward", Work::forward, 1 - done);
    if (!sends_at(end)) {
      compute("backward", Work::backward, 1);
      return compute("optimizer", Work::optimizer, 1);
    }
    compute("backward of all micro-batches but one", Work::backward, 1 - passes_.last_share);
    send_parts(end);
  }

  // The last backward pass of a step, and the parts that follow it one after another.
  void send_parts(std::int64_t end) {
    const auto layers = static_cast<int>(scenario_.model.layers);
    int layer = layers;
    const auto back_to = [&](int to) {
      const double share = static_cast<double>(layer - to) / layers;
      compute("backward to layer " + std::to_string(to), Work::backward,
              passes_.last_share * (1 - head_.backward) * share);
      compute("optimizer of these layers", Work::optimizer, share);
      layer = std::min(layer, to);
    };
    std::vector<std::pair<std::int64_t, const FragmentPart*>> parts;
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (sent_at(p) != end) continue;
      for (const FragmentPart& part : fragment(p).parts) parts.emplace_back(p, &part);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.second->ready_at > b.second->ready_at; });
    std::vector<OpId> before;
    compute("backward of the unembedding", Work::backward, passes_.last_share * head_.backward);
    for (const auto& [p, part] : parts) {
      if (part->ready_at < layer) back_to(part->ready_at);
      std::vector<OpId> after = gates_;
      after.insert(after.end(), before.begin(), before.end());
      before = send(p, *part, after);
    }
    back_to(0);
  }

  // Starts the transfers of the part.
  const std::vector<OpId>& send(std::int64_t p, const FragmentPart& part, const std::vector<OpId>& after) {
    std::vector<OpId>& sent = sent_[static_cast<std::size_t>(p)];
    sent.clear();
    for (const PartTransfer& transfer : part.transfers) {
      Op op = average_op(scenario_, "average " + transfer.what + "fragment " + std::to_string(p),
                         transfer.exchanges, after);
      op.detached = leaves_round(p);
      sent.push_back(add(std::move(op)));
    }
    return sent;
  }

  // The outer step with the average of the fragment. Without an outer optimiser, it takes no time.
  void wait_for(const Merge& merge) {
    std::vector<OpId> after = trained_ < 0 ? std::vector<OpId>{} : std::vector<OpId>{trained_};
    if (!merge.in_previous_round) after.insert(after.end(), merge.arrived.begin(), merge.arrived.end());
    const bool none = ends_.starts_empty && merge.in_previous_round;
    Op op = compute_op(scenario_, "outer step of fragment " + std::to_string(merge.fragment),
                       Work::outer_step, none ? 0 : outer_steps_, std::move(after));
    std::get<Compute>(op.what).share = 1.0 / static_cast<double>(turns_.count);
    std::get<Compute>(op.what).whole_model = false;  // the outer step does not touch the other fragments
    for (const OpId arrived : merge.arrived)
      if (merge.in_previous_round && !none) op.after_earlier.push_back({arrived, 1});
    const OpId merged = merged_[static_cast<std::size_t>(merge.fragment)] = add(std::move(op));
    gates_.push_back(merged);
  }

  void arrive(const Merge& merge) {
    if (turns_.layerwise) {
      merges_.push_back(merge);
    } else {
      wait_for(merge);
    }
  }

  void stop_at(std::int64_t stop, const SentOps& sent_in_previous) {
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (turns_.reaches_next_round(p) && arrives_from_previous_at(p) == stop)
        arrive({p, sent_in_previous[static_cast<std::size_t>(p)], true});
    }
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (turns_.layerwise || sent_at(p) != stop) continue;
      std::vector<OpId> after = trained_ < 0 ? std::vector<OpId>{} : std::vector<OpId>{trained_};
      if (merged_[static_cast<std::size_t>(p)] >= 0) after.push_back(merged_[static_cast<std::size_t>(p)]);
      send(p, fragment(p).parts.front(), after);
    }
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (!leaves_round(p) && arrives_at(p) == stop) arrive({p, sent_[static_cast<std::size_t>(p)], false});
    }
  }

  const Scenario& scenario_;
  const std::vector<FragmentTransfers>& fragments_;
  Turns turns_;
  std::int64_t outer_steps_;
  StepPasses passes_;
  HeadShares head_;
  Ends ends_;
  std::int64_t steps_;
  RoundPlan round_;
  OpId trained_ = -1;          // latest computation of a step
  std::vector<OpId> gates_;    // operations that the next computation waits for
  std::vector<Merge> merges_;  // fragments for which the next forward pass waits
  SentOps sent_;               // last transfers of each fragment in this round
  std::vector<OpId> merged_;   // last outer step of each fragment in this round
};

}  // namespace

Plan plan_of_fragments(const Scenario& scenario, const std::vector<Content>& contents,
                       const ExpertOwners& owners) {
  const Strategy& strategy = scenario.strategy;
  const Turns turns{fragment_turns(strategy), strategy.layerwise};
  const bool partial = owners.of_round && effective_overlap(scenario) < scenario.sites();
  Plan plan = plan_of_rounds(scenario, strategy.local_steps, owners.migration_period);
  if (strategy.overlap_steps > 0 || strategy.layerwise) {
    overlap_rounds(plan, strategy.local_steps);
    // A round that ends with a migration sends its fragments together.
    plan.classes[0].identical = owners.migration_period == 0;
  }
  plan.groups = strategy.layerwise ? tensor_groups_by_layer_and_head(scenario.model, strategy.skip_token)
                                   : tensor_groups_by_layer(scenario.model, strategy.skip_token);

  using Transfers = std::shared_ptr<const std::vector<FragmentTransfers>>;
  const GroupId first_expert = expert_group_by_layer(scenario.model, 0, 0);
  std::function<Transfers(std::int64_t)> transfers_of = [=, groups = plan.groups](std::int64_t index) {
    const std::optional<Placement> placement = partial ? std::optional(owners.of_round(index)) : std::nullopt;
    return std::make_shared<const std::vector<FragmentTransfers>>(fragment_transfers(
        ExpertTransfers(scenario, groups, first_expert), contents, placement ? &*placement : nullptr));
  };
  const Transfers first = transfers_of(0);
  if (owners.migration_period == 0) transfers_of = [first](std::int64_t) { return first; };

  const bool outer_steps = contents.front() == Content::pseudo_gradient;
  // Finds the operations of a full round that send the fragments. They have the same numbers if no fragment
  // is in flight when the round begins.
  RoundBuilder full(scenario, *first, turns, outer_steps, {}, strategy.local_steps);
  (void)full.build(SentOps(first->size(), std::vector<OpId>{0}));
  plan.round = [=, groups = plan.groups, rounds = plan.rounds, steps = plan.steps,
                ids = full.sent()](std::int64_t index) {
    const std::int64_t left = std::min(turns.local_steps, steps - index * turns.local_steps);
    const Ends ends{index == 0 || moves_experts(owners, index - 1, rounds),
                    moves_experts(owners, index, rounds)};
    const Transfers transfers = transfers_of(index);
    RoundBuilder builder(scenario, *transfers, turns, outer_steps, ends, left);
    RoundPlan round = builder.build(ids);
    const ExpertTransfers experts(scenario, groups, first_expert);
    if (std::optional<Op> migrate = experts.migration(owners, index, rounds, builder.merged()))
      round.ops.push_back(*std::move(migrate));
    return round;
  };
  return plan;
}

void check_fragments(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  const Method& method = *strategy.method;
  if (has_axis(method, "overlap_steps") && strategy.overlap_steps > 0 &&
      has_axis(method, "outer_optimizer") && outer_steps_of(strategy.outer_optimizer) == 0) {
    throw InputError(
        "strategy.overlap_steps",
        std::to_string(strategy.overlap_steps) + " with outer_optimizer \"" +
            to_string(strategy.outer_optimizer) + "\"",
        "0, because averaged parameters replace those of a site, with the steps that it has made "
        "meanwhile; or an outer optimiser (nesterov, adam, yogi)",
        "0");
  }
  if (!strategy.layerwise || (!scenario.model.opaque && scenario.model.layers > 0)) return;
  throw InputError("strategy.layerwise", "true", "false for a model whose layers are not known", "false");
}

}  // namespace fomoe::costmodel
