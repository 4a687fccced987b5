#include "costmodel/scenario.hpp"

#include <string>

#include "costmodel/closed_form.hpp"
#include "costmodel/methods/method.hpp"
#include "platforms/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// O_e must make N_le = O_e·N_e/M a whole number; the legal values nearest to what was asked, for the message.
void check_overlap(const Scenario& scenario) {
  const int sites = scenario.sites();
  const int overlap = scenario.strategy.expert_overlap;
  const std::int64_t experts = scenario.model.experts;
  const auto legal = [&](int value) {
    return value >= 1 && value <= sites && (value * experts) % sites == 0;
  };
  if (legal(overlap)) return;
  int below = overlap, above = overlap;
  while (below >= 1 && !legal(below)) --below;
  while (above <= sites && !legal(above)) ++above;
  std::string nearest;
  if (below >= 1) nearest = std::to_string(below);
  if (above <= sites && above >= 1) nearest += (nearest.empty() ? "" : " or ") + std::to_string(above);
  if (nearest.empty()) nearest = std::to_string(sites);
  throw InputError("strategy.expert_overlap", std::to_string(overlap),
                   "1 to " + std::to_string(sites) + " sites such that expert_overlap · " +
                       std::to_string(experts) + " experts ÷ " + std::to_string(sites) +
                       " sites is a whole number; the nearest is " + nearest,
                   nearest.substr(0, nearest.find(' ')));
}

}  // namespace

void check(const Scenario& scenario) {
  const Method* method = find_method(scenario.strategy.method);
  if (method == nullptr) {
    throw InputError("strategy.method", "\"" + scenario.strategy.method + "\"",
                     "a name that `fomoe list methods` prints", "\"fomoe\"");
  }
  if (method->partial_experts) {
    if (scenario.model.experts == 0) {
      throw InputError("strategy.method", "\"" + scenario.strategy.method + "\" for a model without experts",
                       "a method that keeps full replicas, or a model with experts", "method = \"diloco\"");
    }
    check_overlap(scenario);
  }
  if (scenario.workload.global_batch_sequences < scenario.sites()) {
    throw InputError("workload.global_batch_sequences",
                     std::to_string(scenario.workload.global_batch_sequences),
                     "at least one sequence for each of the " + std::to_string(scenario.sites()) + " sites",
                     std::to_string(scenario.sites()));
  }
  (void)compute_times(scenario, static_cast<double>(local_batch_sequences(
                                    scenario, 0)));  // a profile of another model or batch is refused here
}

const char* to_string(PlacementKind kind) { return kind == PlacementKind::fixed ? "fixed" : "random"; }

const char* to_string(Collective collective) { return collective == Collective::ring ? "ring" : "direct"; }

const char* to_string(RingOrder order) { return order == RingOrder::given ? "given" : "best"; }

}  // namespace fomoe::costmodel
