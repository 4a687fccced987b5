// FedAvg with a server, as in Photon: after K local steps every worker sends its pseudo-gradient to a server
// at the first of the M sites. The server averages the pseudo-gradients, applies its outer step and sends the
// new model back. The first site's own worker communicates with the server inside the site. Each other site
// sends S bytes up and receives S bytes down, where S is the size of the whole model:
//   sent, mean over sites = ((M−1)·S up + (M−1)·S down) ÷ M = 2(M−1)/M · S
// A ring sends the same number of bytes. Here, however, all bytes pass through the first site's links:
// (M−1)·S each way, one direction after the other. With collective = store, the server is beside the
// platform's store instead, and each of the M sites sends S up and receives S. With collective = chain, the
// sites pass S on to each other, the last one first, until the first site passes it to the server, and the
// model goes back the same way (NCCL's reduce and broadcast). S is cut into a chunk for each of the M + 1
// nodes, and the chunks follow each other, so that each direction has 2M − 1 steps over links, of a chunk
// each. NCCL cuts finer chunks: a direction then takes little more than the time of S (ring_model = fluid).
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  const bool in_store = scenario.strategy.collective == Collective::store;
  const auto server = static_cast<NodeId>(plan.nodes.size()) - (in_store ? 1 : 0);
  if (in_store) {
    plan.notes.emplace_back("fedavg: the server is beside the store; its outer step counts as no time");
  } else {
    plan.nodes.push_back({NodeKind::server, 0, 0});
    plan.notes.emplace_back(
        "fedavg: the server is at the first site; its copy of the model and its outer momentum, 8 B per "
        "parameter, are not counted in the memory of that site's GPUs");
  }
  const Collective collective = in_store ? Collective::direct : scenario.strategy.collective;

  // The hub is the first node of a reduce and of a broadcast.
  const auto exchange_of = [&](Content content) {
    Exchange exchange = full_model_exchange(scenario, plan.groups, {content});
    exchange.nodes.insert(exchange.nodes.begin(), server);
    return exchange;
  };
  const Exchange up = exchange_of(Content::pseudo_gradient), down = exchange_of(Content::parameter);
  plan.round = [=](std::int64_t index) {
    RoundPlan round;
    round.ops.push_back(
        compute_op(scenario, "local steps", Work::whole_step, steps_of_round(plan, local_steps, index), {}));
    round.ops.push_back({"pseudo-gradients to the server", Transfer{Pattern::reduce, collective, {up}}, {0}});
    round.ops.push_back({"outer step of the server", Compute{Work::outer_step, {server}, 1, 1}, {1}});
    round.ops.push_back({"model to the workers", Transfer{Pattern::broadcast, collective, {down}}, {2}});
    return round;
  };
  return plan;
}

/// The same bytes as through_first_site(), in steps of one chunk between neighbours.
PlanSummary along_chain(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = through_first_site(axes, fixed);
  const double chunks = axes.sites + 1.0;
  const double steps = axes.sites > 1 ? 2.0 * axes.sites - 1.0 : 0.0;  // of each direction
  const double both_ways = (axes.bytes_per_element + bytes_per_parameter(axes, fixed)) *
                           (fixed.dense_elements + fixed.expert_elements);
  Stage stage;
  stage.latency_hops = 2 * steps;
  stage.bytes = stage.pair_bytes = steps / chunks * both_ways;
  summary.stages = {stage};
  return summary;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  if (fixed.collective == Collective::chain) return along_chain(axes, fixed);
  if (!(fixed.collective == Collective::store)) return through_first_site(axes, fixed);
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  summary.sent.dense = axes.bytes_per_element * fixed.dense_elements;
  summary.sent.expert_sync = axes.bytes_per_element * fixed.expert_elements;
  Stage stage;
  stage.between = Between::store;
  StoreRules combines = fixed.store;
  combines.aggregates = true;
  stage.set_objects(0, {summary.sent.total(), 1.0, axes.sites}, combines);
  stage.objects[0].result_bytes *= bytes_per_parameter(axes, fixed) / axes.bytes_per_element;
  summary.add(stage);
  return summary;
}

void check(const Scenario& scenario) {
  if (scenario.strategy.collective != Collective::store || !scenario.platform.store ||
      scenario.platform.store->aggregates)
    return;
  throw InputError(
      "platform.store.aggregates", "false with fedavg",
      "true, because the server of fedavg combines what the sites upload, or method = \"diloco\", "
      "with which each site does so",
      "aggregates = true");
}

}  // namespace

Method fedavg() {
  Method method;
  method.name = "fedavg";
  method.summary =
      "Every K steps, all sites send the pseudo-gradients of the whole model to a server at the first site. "
      "The server sends the new model back.";
  method.axes = {"local_steps", "payload_dtype", "parameter_dtype", "quorum", "straggler_timeout"};
  // Differences go up, parameters come down.
  method.encoded_differences = method.encoded_parameters = 0.5;
  method.source =
      "McMahan et al. 2017, FedAvg (arXiv 1602.05629); Sani et al. 2024, Photon (arXiv 2411.02908)";
  method.outer_bytes_per_parameter = 4;  // fp32 reference model of the pseudo-gradient
  method.not_modelled =
      "partial participation of sites; all-reduce instead of a server (Photon's other topologies): use "
      "diloco";
  method.assumptions = "the server is at the first site, and its copy of the model needs no GPU memory";
  method.check = check;
  method.through_store = true;
  method.through_chain = true;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
