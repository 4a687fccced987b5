#include "costmodel/value/attendance_rules.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/plan/absences.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/value/goodput.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {
namespace {

/// Why the plan cannot be executed without some of its nodes; empty if it can.
std::string reason_against(const Scenario& scenario, const Plan& plan) {
  const Method& method = *scenario.strategy.method;
  if (residency_of(method, scenario.strategy.sharding) != Residency::replica || method.one_site)
    return method.name + ", whose sites hold the only copies of parts of the model";
  if (const std::string op = needs_all_nodes(plan); !op.empty())
    return method.name + ", whose operation \"" + op + "\" needs all sites";
  for (const RoundClass& kind : plan.classes) {
    if (kind.count == 0) continue;
    for (const Op& op : plan.round(kind.round_at(0)).ops) {
      if (op.detached || !op.after_earlier.empty())
        return method.name + ", whose operation \"" + op.name + "\" goes on while the next round begins";
    }
  }
  return {};
}

void check_quorum(const Scenario& scenario) {
  if (!scenario.strategy.quorum || *scenario.strategy.quorum <= scenario.sites()) return;
  throw InputError("strategy.quorum", std::to_string(*scenario.strategy.quorum),
                   "at most " + std::to_string(scenario.sites()) + ", the number of sites",
                   std::to_string(scenario.sites()));
}

/// Stopped sites must not be indispensable, and their policy must be fully given.
void check_outages(const Scenario& scenario, const Plan& plan) {
  const Failures& failures = *scenario.failures;
  if (failures.policy == FailurePolicy::wait) {
    if (!failures.checkpoint_rounds)
      throw InputError(
          "failures.outages", "outages without checkpoint_rounds",
          "failures.checkpoint_rounds as well, the number of rounds after which a site can go back",
          "checkpoint_rounds = 10");
    return;
  }
  if (!failures.timeout_s)
    throw InputError("failures.outages", "outages without timeout",
                     "failures.timeout as well, the time for which the others wait for a lost site",
                     "timeout = \"1min\"");
  const std::vector<bool> indispensable = indispensable_nodes(plan);
  for (const Outage& outage : failures.outages) {
    for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
      if (plan.nodes[n].site != outage.site || !indispensable[n]) continue;
      throw InputError(
          "failures.outages",
          "an outage of " + scenario.platform.sites[static_cast<std::size_t>(outage.site)].name +
              " with policy = \"drop\"",
          "policy = \"wait\", because " + scenario.strategy.method->name + " cannot go on without this site",
          "policy = \"wait\"");
    }
  }
}

}  // namespace

AttendanceRules attendance_rules(const Scenario& scenario, const Plan& plan) {
  AttendanceRules rules;
  if (has_axis(*scenario.strategy.method, "quorum") && scenario.sites() > 1) {
    check_quorum(scenario);
    rules.quorum = scenario.strategy.quorum;
    rules.straggler_timeout_s = scenario.strategy.straggler_timeout_s;
  }
  if (scenario.failures) rules.outages = scenario.failures->outages;
  if (!rules.any()) return rules;
  const bool only_waits = !rules.quorum && scenario.failures->policy == FailurePolicy::wait;
  if (const std::string reason = reason_against(scenario, plan); !reason.empty() && !only_waits)
    throw InputError(
        rules.quorum ? "strategy.quorum" : "failures.outages", reason,
        "a method, placement and collective with which a round can go on without some sites, such "
        "as diloco, or fomoe with placement = \"fixed\"",
        "method = \"diloco\"");
  // A site that holds the only copy of a part of the model has it from its own checkpoint.
  if (residency_of(*scenario.strategy.method, scenario.strategy.sharding) == Residency::replica)
    rules.state_bytes = state_bytes_per_site(scenario);
  if (rules.outages.empty()) return rules;
  if (rules.quorum && scenario.failures->policy == FailurePolicy::wait)
    throw InputError(
        "failures.outages", "outages with policy = \"wait\" and a quorum",
        "policy = \"drop\", since a run that does not wait for slow sites does not wait for lost ones",
        "policy = \"drop\"");
  check_outages(scenario, plan);
  const Failures& failures = *scenario.failures;
  if (failures.policy == FailurePolicy::drop) {
    rules.drop_after_s = *failures.timeout_s;
  } else {
    rules.checkpoint_rounds = *failures.checkpoint_rounds;
    rules.checkpoint_s = checkpoint_s(failures, state_bytes_per_site(scenario));
    rules.restore_s = restore_s(failures, state_bytes_per_site(scenario));
  }
  return rules;
}

}  // namespace fomoe::costmodel
