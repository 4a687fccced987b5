#include "costmodel/methods/shared/fragment_rounds.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

struct Turns {
  std::int64_t count, local_steps, overlap_steps;
  bool layerwise;

  // The step of a full round after which the fragment is sent.
  [[nodiscard]] std::int64_t sent_at(std::int64_t p) const { return (p + 1) * local_steps / count; }
  // The step after which the site waits for the fragment; beyond `local_steps` it is in the next round.
  [[nodiscard]] std::int64_t waited_at(std::int64_t p) const { return sent_at(p) + overlap_steps; }
  // Layer by layer, a site waits in a step that follows.
  [[nodiscard]] bool reaches_next_round(std::int64_t p) const {
    return waited_at(p) > local_steps - (layerwise ? 1 : 0);
  }
};

// A payload of a fragment, and the layer that the backward pass must have left: `layers` of the model for an
// untied unembedding, 0 for the embedding.
struct Part {
  Exchange exchange;
  int ready_at;
};

class Parts {
 public:
  Parts(const Scenario& scenario, const std::vector<TensorGroup>& groups, std::vector<Content> contents)
      : scenario_(scenario), groups_(groups), contents_(std::move(contents)) {}

  [[nodiscard]] Exchange whole(const Fragment& fragment) const {
    return exchange_of(fragment.layers, fragment.has_tables);
  }

  [[nodiscard]] std::vector<Part> by_layer(const Fragment& fragment) const {
    std::vector<Part> parts;
    if (fragment.has_tables && untied_head_elements(scenario_.model) > 0) {
      Exchange head{all_workers(scenario_), {}};
      for (const Content content : contents_)
        head.payloads.push_back(make_payload(groups_, content, TrafficClass::dense,
                                             format_of(scenario_.strategy, content),
                                             {static_cast<GroupId>(groups_.size()) - 1}));
      parts.push_back({std::move(head), static_cast<int>(scenario_.model.layers)});
    }
    for (auto layer = fragment.layers.rbegin(); layer != fragment.layers.rend(); ++layer)
      parts.push_back({exchange_of({*layer}, false), *layer});
    if (fragment.has_tables) parts.push_back({exchange_of({}, true), 0});
    return parts;
  }

 private:
  [[nodiscard]] Exchange exchange_of(const std::vector<int>& layers, bool with_tables) const {
    Exchange all{all_workers(scenario_), {}};
    for (const Content content : contents_) {
      for (Payload& payload : layers_exchange(scenario_, groups_, content, layers, with_tables).payloads)
        if (payload.elements > 0) all.payloads.push_back(std::move(payload));
    }
    return all;
  }

  const Scenario& scenario_;
  const std::vector<TensorGroup>& groups_;
  std::vector<Content> contents_;
};

struct Sent {
  Exchange whole;           // without layerwise
  std::vector<Part> parts;  // with layerwise
  int first_layer = 0;      // the first layer that the forward pass needs
};

// Builds one round step by step. The operations of full rounds have the same ids in every round, so that a
// round can refer to operations of the previous one.
class RoundBuilder {
 public:
  RoundBuilder(const Scenario& scenario, const std::vector<Sent>& fragments, const Turns& turns,
               bool outer_steps, bool first, std::int64_t steps)
      : scenario_(scenario),
        fragments_(fragments),
        turns_(turns),
        outer_steps_(outer_steps ? 1 : 0),
        pass_(pass_share(scenario)),
        first_(first),
        steps_(steps),
        sent_(fragments.size(), -1),
        merged_(fragments.size(), -1) {}

  RoundPlan build(const std::vector<OpId>& sent_in_previous) {
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
  [[nodiscard]] const std::vector<OpId>& sent() const { return sent_; }

 private:
  // A fragment whose average is needed, and the operation that carries it.
  struct Merge {
    std::int64_t fragment;
    OpId arrived;
    bool in_previous_round;
  };

  [[nodiscard]] std::int64_t sent_at(std::int64_t p) const { return std::min(turns_.sent_at(p), steps_); }
  [[nodiscard]] std::int64_t arrives_at(std::int64_t p) const { return sent_at(p) + turns_.overlap_steps; }
  [[nodiscard]] std::int64_t arrives_from_previous_at(std::int64_t p) const {
    const std::int64_t at = turns_.waited_at(p) - turns_.local_steps;
    return turns_.reaches_next_round(p) ? std::min(at, steps_) : steps_;
  }
  [[nodiscard]] bool leaves_round(std::int64_t p) const {
    return arrives_at(p) > steps_ - (turns_.layerwise ? 1 : 0);
  }
  [[nodiscard]] const Sent& fragment(std::int64_t p) const { return fragments_[static_cast<std::size_t>(p)]; }

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
      const double until = pass_ * layer / layers;
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
    compute("backward of all micro-batches but one", Work::backward, 1 - pass_);
    send_parts(end);
  }

  // The last backward pass of a step, and the parts that follow it one after another.
  void send_parts(std::int64_t end) {
    const auto layers = static_cast<int>(scenario_.model.layers);
    int layer = layers;
    const auto back_to = [&](int to) {
      const double share = static_cast<double>(layer - to) / layers;
      compute("backward to layer " + std::to_string(to), Work::backward, pass_ * share);
      compute("optimizer of these layers", Work::optimizer, share);
      layer = std::min(layer, to);
    };
    std::vector<std::pair<std::int64_t, const Part*>> parts;
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (sent_at(p) != end) continue;
      for (const Part& part : fragment(p).parts) parts.emplace_back(p, &part);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.second->ready_at > b.second->ready_at; });
    OpId before = -1;
    for (const auto& [p, part] : parts) {
      if (part->ready_at < layer) back_to(part->ready_at);
      std::vector<OpId> after = gates_;
      if (before >= 0) after.push_back(before);
      Op op = average_op(scenario_, "average a part of fragment " + std::to_string(p), {part->exchange},
                         std::move(after));
      op.detached = leaves_round(p);
      sent_[static_cast<std::size_t>(p)] = before = add(std::move(op));
    }
    back_to(0);
  }

  // The outer step with the average of the fragment. Without an outer optimiser, it takes no time.
  void wait_for(const Merge& merge) {
    std::vector<OpId> after = trained_ < 0 ? std::vector<OpId>{} : std::vector<OpId>{trained_};
    if (!merge.in_previous_round) after.push_back(merge.arrived);
    // In the first round no fragment arrives from a previous one.
    Op op =
        compute_op(scenario_, "outer step of fragment " + std::to_string(merge.fragment), Work::outer_step,
                   first_ && merge.in_previous_round ? 0 : outer_steps_, std::move(after));
    std::get<Compute>(op.what).share = 1.0 / static_cast<double>(turns_.count);
    std::get<Compute>(op.what).whole_model = false;  // the outer step does not touch the other fragments
    if (merge.in_previous_round) op.after_earlier.push_back({merge.arrived, 1});
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

  void stop_at(std::int64_t stop, const std::vector<OpId>& sent_in_previous) {
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (turns_.reaches_next_round(p) && arrives_from_previous_at(p) == stop)
        arrive({p, sent_in_previous[static_cast<std::size_t>(p)], true});
    }
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (turns_.layerwise || sent_at(p) != stop) continue;
      std::vector<OpId> after = trained_ < 0 ? std::vector<OpId>{} : std::vector<OpId>{trained_};
      if (merged_[static_cast<std::size_t>(p)] >= 0) after.push_back(merged_[static_cast<std::size_t>(p)]);
      Op op = average_op(scenario_, "average fragment " + std::to_string(p), {fragment(p).whole},
                         std::move(after));
      op.detached = leaves_round(p);
      sent_[static_cast<std::size_t>(p)] = add(std::move(op));
    }
    for (std::int64_t p = 0; p < turns_.count; ++p) {
      if (!leaves_round(p) && arrives_at(p) == stop) arrive({p, sent_[static_cast<std::size_t>(p)], false});
    }
  }

  const Scenario& scenario_;
  const std::vector<Sent>& fragments_;
  Turns turns_;
  std::int64_t outer_steps_;
  double pass_;  // share of the batch in one pass
  bool first_;
  std::int64_t steps_;
  RoundPlan round_;
  OpId trained_ = -1;          // latest computation of a step
  std::vector<OpId> gates_;    // operations that the next computation waits for
  std::vector<Merge> merges_;  // fragments for which the next forward pass waits
  std::vector<OpId> sent_;     // last transfer of each fragment in this round
  std::vector<OpId> merged_;   // outer step of each fragment in this round
};

}  // namespace

std::vector<Fragment> fragments_of(const Scenario& scenario) {
  const int fragments = scenario.strategy.fragments, all = static_cast<int>(scenario.model.layers);
  std::vector<Fragment> of(static_cast<std::size_t>(fragments));
  of.back().has_tables = true;
  const std::vector<TensorGroup> groups = tensor_groups_by_layer(scenario);
  std::vector<std::int64_t> elements(of.size(), 0);
  elements.back() = groups[kEmbeddingGroup].elements;
  for (int layer = 0; layer < all; ++layer) {
    std::size_t to = 0;
    switch (scenario.strategy.fragment_pattern) {
      case FragmentPattern::strided:
        to = static_cast<std::size_t>(layer % fragments);
        break;
      case FragmentPattern::sequential:
        while ((static_cast<int>(to) + 1) * all / fragments <= layer) ++to;
        break;
      case FragmentPattern::balanced:
        to = static_cast<std::size_t>(std::min_element(elements.begin(), elements.end()) - elements.begin());
        for (const Payload& payload :
             layers_exchange(scenario, groups, Content::parameter, {layer}, false).payloads)
          elements[to] += payload.elements;
        break;
    }
    of[to].layers.push_back(layer);
  }
  return of;
}

Plan plan_of_fragments(const Scenario& scenario, const std::vector<Content>& contents) {
  const Strategy& strategy = scenario.strategy;
  const Turns turns{strategy.fragments, strategy.local_steps, strategy.overlap_steps, strategy.layerwise};
  Plan plan = plan_of_rounds(scenario, strategy.local_steps);
  if (strategy.overlap_steps > 0 || strategy.layerwise) overlap_rounds(plan, strategy.local_steps);
  plan.groups =
      strategy.layerwise ? tensor_groups_by_layer_and_head(scenario) : tensor_groups_by_layer(scenario);
  const Parts parts(scenario, plan.groups, contents);
  std::vector<Sent> sent;
  for (const Fragment& fragment : fragments_of(scenario)) {
    Sent& of = sent.emplace_back();
    if (strategy.layerwise) {
      of.parts = parts.by_layer(fragment);
    } else {
      of.whole = parts.whole(fragment);
    }
    of.first_layer = fragment.has_tables || fragment.layers.empty() ? 0 : fragment.layers.front();
  }

  const bool outer_steps = contents.front() == Content::pseudo_gradient;
  // Finds the operations of a full round that send the fragments.
  RoundBuilder full(scenario, sent, turns, outer_steps, false, strategy.local_steps);
  (void)full.build(std::vector<OpId>(sent.size(), 0));
  plan.round = [=, steps = plan.steps, ids = full.sent()](std::int64_t index) {
    const std::int64_t left = std::min(turns.local_steps, steps - index * turns.local_steps);
    return RoundBuilder(scenario, sent, turns, outer_steps, index == 0, left).build(ids);
  };
  return plan;
}

void check_layerwise(const Scenario& scenario) {
  if (!scenario.strategy.layerwise || (!scenario.model.opaque && scenario.model.layers > 0)) return;
  throw InputError("strategy.layerwise", "true", "false for a model whose layers are not known", "false");
}

}  // namespace fomoe::costmodel
