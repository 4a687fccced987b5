// The processes of one site, one for each of its GPUs. All of them hold the same model, and each trains on a
// part of the site's sequences (data parallelism). They add up their gradients before each optimiser step, so
// they stay equal. With a sharded state of the optimiser (ZeRO stage 1), each updates a part of the rows of
// every parameter, and gets the others' rows after the step. Only the first one talks to other sites: it
// passes what it receives on to the others, which execute the same plan without sending anything across
// sites. The plan and its bytes do not change.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

/// A process's place among all processes of a run.
struct SitePlace {
  int site = 0;
  int rank = 0;              // among the processes of the site; rank 0 talks to other sites
  int ranks = 1;             // processes of the site
  bool hosts_store = false;  // whether they are also the aggregator beside the platform's store
};

/// The place of process `rank`, if the processes of one site follow those of the site before it. `counts` has
/// the number of processes of each site.
SitePlace site_place(int rank, const std::vector<int>& counts);

/// The part of `sequences` that rank `rank` of `ranks` trains on, as (first, count). Parts differ by at most
/// one sequence.
std::pair<std::int64_t, std::int64_t> part_of_rank(std::int64_t sequences, int rank, int ranks);

class SiteRanks {
 public:
  /// `messages` moves bytes in host memory, and `sums` adds tensors up on the training device; they may be
  /// the same. `site` names the site in errors.
  SiteRanks(SitePlace place, std::string site, c10::intrusive_ptr<c10d::Backend> messages,
            c10::intrusive_ptr<c10d::Backend> sums);

  [[nodiscard]] const SitePlace& place() const { return place_; }

  /// Replaces each tensor, on the training device, by its sum over the processes of the site. Every process
  /// passes tensors of the same sizes and types, in the same order. Throws SiteLost.
  void add_up(const std::vector<at::Tensor>& tensors);

  /// Every process passes tensors of the same sizes and types, of which it has the rows that rows_of_shard()
  /// gives to its rank. Replaces the other rows by those of the processes that have them. Throws SiteLost.
  void share_rows(const std::vector<at::Tensor>& tensors);

  /// Whether all processes of the site have passed the same text. Every process must call it. Throws
  /// SiteLost.
  [[nodiscard]] bool agree_on(const std::string& text);

  /// Rank 0 sends uint8 bytes in host memory to all other processes of the site; they receive them into
  /// `bytes`. Several threads may call it at once, with different tags. Throws SiteLost.
  void pass_on(at::Tensor& bytes, int tag);

 private:
  [[noreturn]] void lost(const std::exception& error) const;

  SitePlace place_;
  std::string site_;
  c10::intrusive_ptr<c10d::Backend> messages_, sums_;
  std::mutex posting_;
};

/// The transport of a process of a site with several processes. At rank 0, `across` moves the messages
/// between sites; at other ranks it is null. `concurrent` is what Transport::concurrent() says at rank 0.
/// `ranks` must outlive the transport.
std::unique_ptr<Transport> site_transport(const std::vector<costmodel::Node>& nodes,
                                          std::unique_ptr<Transport> across, SiteRanks& ranks,
                                          bool concurrent);

}  // namespace fomoe::trainer
