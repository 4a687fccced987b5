// Collectives through a store: each node uploads its payload once. Either the store, or an aggregator beside
// it, combines the payloads of all who contribute, and each of them downloads the result; or each downloads
// what the others have uploaded. For n contributors with S bytes each, and results of S′ bytes, a node
//   sends S, and receives S′ or (n−1)·S.
// An *object* is what the same nodes exchange in one operation; it is put once by each contributor.
#pragma once
#include "costmodel/inputs/wire_format.hpp"
#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

/// Format of the result of `contributors` payloads. Sparse payloads keep values at different positions, which
/// are taken as independent: of a share k of each payload follows the share 1 − (1 − k)^contributors of the
/// result, unless the aggregator keeps another share (as in gTop-k, Shi et al. 2019, arXiv 1901.04359). If
/// positions then take more bits than zeros, all values are sent without positions.
WireFormat result_format(const WireFormat& payload, double contributors,
                         const std::optional<double>& result_share);

/// The average of each exchange among its nodes, through the store at this node.
Transfer average_through_store(const platforms::Store& store, NodeId node, std::vector<Exchange> exchanges);

/// Point-to-point transfers of these exchanges, through the store at this node.
Transfer relayed_by_store(NodeId node, std::vector<Exchange> exchanges);

/// Uploads and downloads of objects in a round. Zero if the plan has no store.
double store_requests(const std::vector<Node>& nodes, const RoundPlan& round);

}  // namespace fomoe::costmodel
