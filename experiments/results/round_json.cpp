#include "experiments/results/round_json.hpp"

namespace fomoe::scenario {

Json to_json(const costmodel::SentBytes& sent) {
  return {{"dense", sent.dense},
          {"expert_sync", sent.expert_sync},
          {"migration", sent.migration},
          {"data", sent.data},
          {"checkpoint", sent.checkpoint},
          {"rejoin", sent.rejoin},
          {"activations", sent.activations}};
}

Json to_json(const std::vector<costmodel::BandwidthPoint>& curve, const std::string& executor) {
  Json points = Json::array();
  for (const costmodel::BandwidthPoint& point : curve)
    points.push_back({{"rate_factor", point.rate_factor},
                      {"wall_clock_s", point.wall_clock_s},
                      {"compute_utilization", point.compute_utilization}});
  return {{"executor", executor}, {"points", points}};
}

Json to_json(const costmodel::RoundTimeline& timeline, const costmodel::Plan& plan,
             const platforms::Platform& platform) {
  Json nodes = Json::array(), spans = Json::array();
  for (std::size_t node = 0; node + static_cast<std::size_t>(timeline.left_out_nodes) < plan.nodes.size();
       ++node) {
    const std::string& site = platforms::site_name(platform, plan.nodes[node].site);
    nodes.push_back(plan.nodes[node].kind == costmodel::NodeKind::server ? "server at " + site : site);
  }
  for (const costmodel::RoundSpan& span : timeline.spans)
    spans.push_back({{"node", span.node},
                     {"kind", to_string(span.kind)},
                     {"what", span.what},
                     {"start_s", span.start_s},
                     {"end_s", span.end_s}});
  return {{"round", timeline.round},
          {"duration_s", timeline.duration_s},
          {"resolution_s", timeline.resolution_s},
          {"left_out_nodes", timeline.left_out_nodes},
          {"nodes", nodes},
          {"spans", spans}};
}

}  // namespace fomoe::scenario
