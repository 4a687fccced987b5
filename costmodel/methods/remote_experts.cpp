// Remote experts (Learning@home): a token's activation goes to each of its k experts by a request of its own,
// from the token's site to the expert's, and the answer comes back; backward the same with gradients. Nothing
// is batched into a collective, no buffer is padded, nothing is dropped, and experts, each on one site, are
// never synchronised. Per site and step:
//   B = 4·L · tokens·k·d·bytes · (M−1)/M   +   2(M−1)/M · S_dense
// Assumed: dense gradients are all-reduced in every step. The paper trains asynchronously and leaves open how
// sites agree on the dense part; here a site waits for its answers.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/expert_traffic.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  ExpertTraffic traffic;
  traffic.copies_per_token = scenario.model.active_experts;
  traffic.loads = router_loads(scenario);
  traffic.separate_requests = true;
  Plan plan = expert_plan(scenario);
  plan.notes.push_back(
      "sites wait for the answers of remote experts; the dense part is all-reduced every step");
  RoundPlan round;
  const OpId backward = append_expert_step(scenario, traffic, round);
  append_dense_synchronisation(scenario, plan.groups, backward, round);
  plan.round = [round = std::move(round)](std::int64_t) { return round; };
  return plan;
}

struct Formula {
  template <class V>
  Summary<V> operator()(const Axes<V>& axes, const Fixed& fixed) const {
    return expert_traffic_summary(axes, fixed, constant<V>(fixed.active_experts));
  }
};

// Its requests carry exactly the rows that the router asks for.
void check_requests(const Scenario& scenario) {
  check_experts_divide(scenario);
  refuse_capacity_factor(scenario);
}

}  // namespace

Method remote_experts() {
  Method method;
  method.name = "remote_experts";
  method.summary =
      "activations, from site to site to each of a token's k experts and back, in each layer forward and "
      "backward; "
      "experts are never synchronised";
  method.axes = "router, collective, payload_dtype";
  method.source = "Ryabinin and Gusev 2020, Learning@home (arXiv 2002.04013)";
  method.every_step = true;
  method.inside_step = always;
  method.residency = Residency::experts_sharded;
  method.check = check_requests;
  method.plan = plan;
  use_formula(method, Formula{});
  return method;
}

}  // namespace fomoe::costmodel
