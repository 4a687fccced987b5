// Decoupled DiLoCo: learners train at their own pace and exchange fragments of the model with a syncer, here
// the server at the first site, while they go on training. Each learner sends a fragment after every K/F of
// its steps, so that each fragment has its turn after K steps. The syncer merges it into its own copy, and
// the learner gets the merged fragment back. No learner waits for another one; it waits only if a fragment
// has not come back before its next turn (shared/paced_rounds.hpp). A learner sends and receives per K steps
//   S each way
// S is the size of the whole model. The paper's fragments are bins of tensors with about equal bytes; those
// of the plan have equally many elements.
//
// The syncer waits for a quorum of learners and for a grace window before it merges a fragment, and weights
// learners by tokens. Both decide what is merged, and not when a learner trains: the paper bounds the window
// by the time that overlaps with steps. They are not modelled.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/paced_rounds.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// As many as there are layers, if they can take turns within K steps.
int usual_fragments(const ModelShape& model, const Strategy& strategy) {
  std::int64_t most = std::max<std::int64_t>(1, std::min(model.layers, strategy.local_steps));
  while (strategy.local_steps % most != 0) --most;
  return static_cast<int>(most);
}

void check(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  if (strategy.local_steps % strategy.fragments == 0) return;
  throw InputError(
      "strategy.fragments",
      std::to_string(strategy.fragments) + " with " + std::to_string(strategy.local_steps) + " local steps",
      "a number that divides local_steps, since a fragment is sent after equally many steps",
      "fragments = " + std::to_string(usual_fragments(scenario.model, strategy)));
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = through_first_site(axes, fixed);  // of one cycle
  summary.sent.dense /= axes.fragments;
  summary.sent.expert_sync /= axes.fragments;
  summary.stages[0].bytes /= axes.fragments;
  summary.stages[0].pair_bytes /= axes.fragments;
  summary.stages[0].between = Between::any;
  return summary;
}

bool always_at_own_pace(const Strategy& /*strategy*/) { return true; }

}  // namespace

Method decoupled_diloco() {
  Method method;
  method.name = "decoupled_diloco";
  method.summary =
      "Each site exchanges one fragment of the model after another with a syncer, at its own pace and while "
      "it "
      "trains on. No site waits for another one.";
  method.axes = {"local_steps", "fragments", "payload_dtype", "parameter_dtype"};
  method.encoded_differences = method.encoded_parameters = 0.5;
  method.source =
      "Douillard et al. 2026, Decoupled DiLoCo (arXiv 2604.21428), by summaries: the paper was not opened";
  method.outer_bytes_per_parameter = 4;  // fp32 reference model of the pseudo-gradient
  method.usual_fragments = usual_fragments;
  method.not_modelled =
      "quorum, grace window, weights by tokens and radial-directional averaging, which change quality but "
      "neither bytes nor times; learners that a run adds";
  method.rounds_late = 1;
  method.assumptions =
      "the syncer is at the first site and costs its worker no time; fragments have equally many elements; a "
      "learner sends a fragment after every K/F of its own steps, and applies what comes back at once";
  method.own_pace = always_at_own_pace;
  method.check = check;
  method.plan = plan_of_paces;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
