#pragma once
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"

namespace fomoe::trainer {

/// The name of a node's site, for messages.
inline std::string node_name(const costmodel::Plan& plan, const platforms::Platform& platform,
                             costmodel::NodeId node) {
  const costmodel::Node& of = plan.nodes[static_cast<std::size_t>(node)];
  return of.kind == costmodel::NodeKind::store ? "the aggregator beside the store"
                                               : platform.sites[static_cast<std::size_t>(of.site)].name;
}

inline std::vector<std::string> node_names(const costmodel::Plan& plan, const platforms::Platform& platform) {
  std::vector<std::string> names;
  for (costmodel::NodeId node = 0; node < static_cast<costmodel::NodeId>(plan.nodes.size()); ++node)
    names.push_back(node_name(plan, platform, node));
  return names;
}

}  // namespace fomoe::trainer
