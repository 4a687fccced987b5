// What moves messages between the processes of a run, one process a site.
//
// Gloo runs everywhere: messages lie in host memory, find each other by tag, and transfers that are under way
// at the same time share the links.
//
// NCCL runs where every rank has a GPU of its own. It pairs sends with receives by their order alone, so that
// transfers go one after another there, in the plan's order (Transport::concurrent). Payloads are encoded on
// the host all the same, and copied to the GPU for the journey. It has been compiled and linked; it has never
// run, for want of a machine with two GPUs (tests/trainer/gpu/nccl_test.cpp skips itself on fewer).
#pragma once
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

struct RankTransportOptions {
  std::vector<costmodel::Node> nodes;
  std::vector<std::string> names;  // of the ranks' sites
  int rank = 0;
  double timeout_s = 0;
  at::Device device = at::kCPU;
  c10::intrusive_ptr<c10d::Store> store;
};

/// Of this rank's device, to compare: "cpu", or a text that no other GPU has.
std::string device_identity(const at::Device& device);
/// Whether all have one, and no two the same: one communicator cannot have a GPU twice.
bool own_gpu_each(const std::vector<std::string>& identities);

/// Both throw where the ranks do not find each other within the limit. exchange() throws SiteLost.
std::unique_ptr<Transport> gloo_transport(const RankTransportOptions& options,
                                          const std::string& own_address);
std::unique_ptr<Transport> nccl_transport(const RankTransportOptions& options);

/// The nodes of a site, which one rank trains.
std::vector<costmodel::NodeId> nodes_of_site(const std::vector<costmodel::Node>& nodes, int site);

}  // namespace fomoe::trainer
