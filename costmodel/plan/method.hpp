// A training method: one pure function from scenario to plan, and the same as a formula. One file and its
// test each.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// What a site keeps of the parameters, their moments and gradients.
enum class Residency {
  replica,           // everything, or O_e/M of the experts where the method places them
  sharded,           // 1/M of everything
  sharded_gathered,  // 1/M of everything; in a step, weights and gradients of the whole model beside it
  experts_sharded,   // all but the experts, and 1/M of these
};

struct Method {
  std::string name;          // strategy.method
  std::string_view summary;  // what is sent, to whom, when: one line
  std::string_view axes;     // keys of [strategy] that change it, with ", " between
  std::string_view source;
  bool partial_experts = false;          // sites may hold a part of the experts (expert_overlap < sites)
  double outer_bytes_per_parameter = 0;  // of outer optimiser state that a site keeps
  bool every_step = false;               // synchronises after each step: local_steps does not apply
  bool one_site = false;                 // the first site trains on the whole global batch, the others idle
  std::optional<WireFormat> usual_wire = {};  // where the scenario names no payload_dtype; else bf16
  /// After a synchronisation all sites that hold a parameter hold the same average of all of them.
  bool averages_everything = true;
  /// Sends between parts of a step: forward and backward pass are timed apart. None: never.
  bool (*inside_step)(const Scenario&) = nullptr;
  Residency residency = Residency::replica;
  void (*check)(const Scenario&) = nullptr;  // throws InputError where the scenario does not suit the method
  Plan (*plan)(const Scenario&) = nullptr;
  Summary<double> (*summarise)(const Axes<double>&, const Fixed&) = nullptr;  // the mean round of `plan`
  Summary<Block> (*summarise_block)(const Axes<Block>&,
                                    const Fixed&) = nullptr;  // the same formula, for sweeps
};

/// Registers one generic formula for both: `Formula` is a type without state whose operator()(axes, fixed) is
/// a template over V.
template <class Formula>
void use_formula(Method& method, Formula) {
  method.summarise = [](const Axes<double>& axes, const Fixed& fixed) {
    Summary<double> summary = Formula{}(axes, fixed);
    compose(summary, axes, fixed);
    return summary;
  };
  method.summarise_block = [](const Axes<Block>& axes, const Fixed& fixed) {
    Summary<Block> summary = Formula{}(axes, fixed);
    compose(summary, axes, fixed);
    return summary;
  };
}

/// For methods that always send between parts of a step.
inline bool always(const Scenario&) { return true; }

bool has_axis(const Method& method, std::string_view key);
/// Keys that the scenario sets and its method does not have, in words.
std::vector<std::string> ignored_axes(const Scenario& scenario);

}  // namespace fomoe::costmodel
