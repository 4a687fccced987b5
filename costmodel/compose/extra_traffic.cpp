#include "costmodel/compose/extra_traffic.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/counts/memory.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

// A payload of bytes that are not tensors of the model.
Payload plain_bytes(Content content, TrafficClass traffic, std::int64_t bytes) {
  WireFormat one_byte;
  one_byte.type = ElementType::int8;
  return {content, traffic, {}, one_byte, bytes};
}

NodeId node_at(const Plan& plan, int site) {
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    if (plan.nodes[n].site == site && plan.nodes[n].kind == NodeKind::worker) return static_cast<NodeId>(n);
  }
  return 0;
}

Op extra_op(std::string name, std::vector<Exchange> exchanges) {
  Op op;
  op.name = std::move(name);
  op.what = Transfer{Pattern::point_to_point, Collective::direct, std::move(exchanges)};
  return op;
}

std::int64_t spread(double bytes, std::int64_t rounds) {
  return static_cast<std::int64_t>(std::llround(bytes / static_cast<double>(rounds)));
}

// Sequences that a site reads in a step. Of a pipeline, the first stage reads the inputs and the last one the
// labels, which are the same tokens; the stages between read nothing.
double sequences_read(const Scenario& scenario, int site) {
  if (scenario.strategy.method->residency != Residency::sharded)
    return static_cast<double>(local_batch_sequences(scenario, site));
  const int side = scenario.strategy.stage_sites;
  if (site >= side && site < scenario.sites() - side) return 0;
  return static_cast<double>(chunk_elements(scenario.workload.global_batch_sequences, side, site % side));
}

struct Extra {
  ExtraTraffic traffic;
  std::vector<double> sequences;  // [site]: that it reads in a step
  std::int64_t state_bytes_per_checkpoint_round = 0, state_bytes_per_rejoin_round = 0;
  double data_bytes_per_sequence = 0;
};

Op data_op(const Plan& plan, const Extra& extra, std::int64_t steps) {
  std::vector<Exchange> exchanges;
  const NodeId from = node_at(plan, *extra.traffic.data_site);
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const Node& node = plan.nodes[n];
    if (node.site == *extra.traffic.data_site || node.kind != NodeKind::worker) continue;
    const double sequences = extra.sequences[static_cast<std::size_t>(node.site)];
    if (sequences == 0) continue;
    const std::int64_t bytes =
        std::llround(static_cast<double>(steps) * sequences * extra.data_bytes_per_sequence);
    exchanges.push_back(
        {{from, static_cast<NodeId>(n)}, {plain_bytes(Content::sequences, TrafficClass::data, bytes)}});
  }
  return extra_op("read data", std::move(exchanges));
}

Op checkpoint_op(const Plan& plan, const Extra& extra) {
  std::vector<Exchange> exchanges;
  const NodeId to = node_at(plan, *extra.traffic.checkpoint_site);
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const Node& node = plan.nodes[n];
    if (node.site == *extra.traffic.checkpoint_site || node.kind != NodeKind::worker) continue;
    exchanges.push_back({{static_cast<NodeId>(n), to},
                         {plain_bytes(Content::training_state, TrafficClass::checkpoint,
                                      extra.state_bytes_per_checkpoint_round)}});
  }
  return extra_op("upload checkpoint", std::move(exchanges));
}

Op rejoin_op(const Plan& plan, const Extra& extra) {
  Op op = extra_op(
      "fetch state to rejoin",
      {{{node_at(plan, rejoin_source(extra.traffic)), node_at(plan, *extra.traffic.rejoin_site)},
        {plain_bytes(Content::training_state, TrafficClass::rejoin, extra.state_bytes_per_rejoin_round)}}});
  return op;
}

// Inserts the rejoin as operation 0 of every round. All operation ids increase by one, including those of
// earlier rounds.
void put_first(RoundPlan& round, Op first) {
  for (Op& op : round.ops) {
    for (OpId& id : op.after) ++id;
    for (OpId& id : op.receive_after) ++id;
    for (EarlierOp& before : op.after_earlier) ++before.op;
    if (op.after.empty()) op.after.push_back(0);
  }
  round.ops.insert(round.ops.begin(), std::move(first));
}

}  // namespace

double state_bytes_per_site(const Scenario& scenario) {
  const Method& method = *scenario.strategy.method;
  constexpr double kWeight = 4;  // in 32 bits
  const double of_parameter = kWeight +
                              method.moment_bytes_per_parameter * bytes_of(scenario.gpus.moment_dtype) / 4 +
                              outer_bytes_per_parameter(method, scenario.strategy.outer_optimizer);
  return of_parameter * static_cast<double>(parameters_per_site(scenario));
}

ExtraTraffic extra_traffic_of(const Scenario& scenario) {
  return scenario.strategy.method->one_site ? ExtraTraffic{} : scenario.traffic;
}

int rejoin_source(const ExtraTraffic& traffic) {
  if (traffic.checkpoint_site && traffic.checkpoint_site != traffic.rejoin_site)
    return *traffic.checkpoint_site;
  return *traffic.rejoin_site == 0 ? 1 : 0;
}

Plan with_extra_traffic(const Scenario& scenario, Plan plan) {
  const ExtraTraffic traffic = extra_traffic_of(scenario);
  if (scenario.sites() == 1 || (!traffic.data_site && !traffic.checkpoint_site && !traffic.rejoin_site))
    return plan;

  Extra extra;
  extra.traffic = traffic;
  for (int site = 0; site < scenario.sites(); ++site)
    extra.sequences.push_back(sequences_read(scenario, site));
  const double state_bytes = state_bytes_per_site(scenario);
  extra.state_bytes_per_checkpoint_round = spread(state_bytes, traffic.checkpoint_rounds);
  extra.state_bytes_per_rejoin_round = spread(state_bytes, traffic.rejoin_rounds);
  extra.data_bytes_per_sequence =
      static_cast<double>(scenario.model.sequence_length) * traffic.data_bytes_per_token;
  // All rounds except the last have as many steps as the longest.
  std::int64_t longest = 1;
  for (const RoundClass& rounds : plan.classes) longest = std::max(longest, rounds.steps);

  Plan nodes_only;
  nodes_only.nodes = plan.nodes;
  plan.round = [inner = plan.round, nodes_only, extra, longest, all_steps = plan.steps](std::int64_t index) {
    RoundPlan round = inner(index);
    if (extra.traffic.data_site)
      round.ops.push_back(data_op(nodes_only, extra, std::min(longest, all_steps - index * longest)));
    if (extra.traffic.checkpoint_site) round.ops.push_back(checkpoint_op(nodes_only, extra));
    if (extra.traffic.rejoin_site) put_first(round, rejoin_op(nodes_only, extra));
    return round;
  };
  if (!plan.averaged_paths.empty())
    plan.notes.emplace_back(
        "the average rates of transfers leave out the traffic of data, checkpoints and sites that rejoin: "
        "where "
        "it takes much of a link, the run takes longer");
  if (traffic.checkpoint_site)
    plan.notes.push_back("checkpoints: the upload of every " + std::to_string(traffic.checkpoint_rounds) +
                         " rounds is spread evenly over these rounds");
  if (traffic.rejoin_site)
    plan.notes.push_back("rejoin: the state fetched every " + std::to_string(traffic.rejoin_rounds) +
                         " rounds is spread evenly over these rounds");
  return plan;
}

void add_extra_traffic(PlanSummary& summary, const Scenario& scenario, const Axes& axes, const Fixed& fixed) {
  const ExtraTraffic traffic = extra_traffic_of(scenario);
  const double state_bytes = state_bytes_per_site(scenario);
  if (!traffic.data_site && !traffic.checkpoint_site && !traffic.rejoin_site) return;
  const double steps_per_round = summary.steps / summary.rounds;
  const double others = axes.sites - 1.0;
  const double any = std::min(others, 1.0);  // 0 if there is only one site, which sends nothing
  double read = 0.0, uploaded = 0.0;         // bytes of each of the other sites that reads, or uploads
  double readers = others;                   // other sites that read data
  bool checkpoint_reads = true;              // whether the checkpoint's site reads data
  if (traffic.data_site) {
    // Sites have equal parts of the batch, or the sites at each end of a pipeline have.
    const bool pipeline = scenario.strategy.method->residency == Residency::sharded;
    const double parts = pipeline ? fixed.stage_sites : axes.sites;
    read = steps_per_round * axes.global_batch_sequences / parts *
           (fixed.sequence_length * traffic.data_bytes_per_token);
    if (pipeline) {
      readers = std::min(2.0 * fixed.stage_sites, axes.sites) -
                (sequences_read(scenario, *traffic.data_site) > 0 ? 1.0 : 0.0);
      checkpoint_reads = traffic.checkpoint_site && sequences_read(scenario, *traffic.checkpoint_site) > 0;
    }
  }
  if (traffic.checkpoint_site) uploaded = state_bytes / static_cast<double>(traffic.checkpoint_rounds);
  summary.sent.data = read * readers / axes.sites;
  summary.sent.checkpoint = uploaded * others / axes.sites;

  // The data set's site sends to all others, and the checkpoint's site receives from all others. If the data
  // set and the checkpoint are at different sites, the data set's site also uploads its checkpoint, and the
  // checkpoint's site also reads data.
  const double apart =
      traffic.data_site && traffic.checkpoint_site && *traffic.data_site != *traffic.checkpoint_site;
  Stage background;
  background.latency_hops = any;
  const double to_checkpoint = checkpoint_reads ? apart * read : 0.0;
  background.bytes = std::max(readers * read + apart * uploaded, others * uploaded + to_checkpoint);
  background.pair_bytes = any * std::max({read, uploaded, apart * uploaded + to_checkpoint});
  background.hidden_steps = steps_per_round;
  if (traffic.data_site || traffic.checkpoint_site) summary.add(background);

  if (traffic.rejoin_site) {
    Stage rejoin;
    rejoin.latency_hops = any;
    rejoin.bytes = any * state_bytes / static_cast<double>(traffic.rejoin_rounds);
    rejoin.pair_bytes = rejoin.bytes;
    summary.sent.rejoin = rejoin.bytes / axes.sites;
    summary.add(rejoin);
  }
}

}  // namespace fomoe::costmodel
