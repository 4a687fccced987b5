// The transports that move messages between sites, one process per site.
//
// Gloo runs everywhere. It has one connection between two processes, so several connections are several Gloo
// process groups. Messages lie in host memory, and a send is matched with a receive by a tag. Several
// transfers may run at the same time and then share the links.
//
// NCCL needs a GPU of its own for every rank. It matches sends with receives by their order alone, so
// transfers run one after another, in the order of the plan (Transport::concurrent). Payloads stay on the
// GPU. The NCCL transport compiles and links, but it has never run, because no machine with two GPUs was
// available. Its test, tests/trainer/gpu/nccl_test.cpp, skips itself on fewer than two GPUs.
#pragma once
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

struct RankTransportOptions {
  std::vector<costmodel::Node> nodes;
  std::vector<std::string> names;  // of the sites, by rank
  int rank = 0;
  int site = 0;                   // the site of this process
  bool hosts_store = false;       // see SitePlace
  std::vector<int> rank_of_site;  // -1: the site takes no part
  double timeout_s = 0;
  int streams = 1;  // TCP connections between two sites; large messages are divided among them
  at::Device device = at::kCPU;
  c10::intrusive_ptr<c10d::Store> store;
};

/// Identifies this rank's device for comparison: "cpu", or a text that differs between any two GPUs.
std::string device_identity(const at::Device& device);
/// Whether every rank has a GPU and no two ranks share one: a communicator cannot contain a GPU twice.
bool own_gpu_each(const std::vector<std::string>& identities);

/// Both functions throw if the ranks do not find each other within `timeout_s`. The exchange() of the
/// returned transport throws SiteLost.
std::unique_ptr<Transport> gloo_transport(const RankTransportOptions& options,
                                          const std::string& own_address);
std::unique_ptr<Transport> nccl_transport(const RankTransportOptions& options);

/// The groups of processes below these transports; `names` decides the number of processes.
c10::intrusive_ptr<c10d::Backend> gloo_backend(const RankTransportOptions& options,
                                               const std::string& own_address);
c10::intrusive_ptr<c10d::Backend> nccl_backend(const RankTransportOptions& options);

/// The nodes of one site, and the store if the site's processes are the aggregator beside it. Each process of
/// the site hosts all of them.
std::vector<costmodel::NodeId> nodes_of_site(const std::vector<costmodel::Node>& nodes, int site,
                                             bool with_store = false);

}  // namespace fomoe::trainer
