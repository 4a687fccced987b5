// How the processes of a run find each other: torchrun's environment variables and a TCPStore at rank 0.
// One process trains one site, rank r site r; or one process trains all.
//
// Whoever starts first waits for the others. Before anything is trained all ranks compare what they are about
// to train.
#pragma once
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

struct Launch {
  int rank = 0, world = 1;
  int local_rank = 0;   // among the processes of this machine
  std::string address;  // of rank 0
  int port = 0;
  bool agent_store = false;  // torchrun's own process already serves the store
};

/// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and, where it is set, LOCAL_RANK; under Slurm SLURM_PROCID,
/// SLURM_NTASKS and SLURM_LOCALID stand in for the first two and the last. Nothing where neither RANK nor
/// SLURM_PROCID is set. Throws UsageError for half a set.
std::optional<Launch> launch_from_environment();

/// A site does not answer any more, or never came.
class SiteLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What all ranks must have in common, by name, for messages: {"scenario", "3f…"}, {"seed", "42"}.
using Digest = std::vector<std::pair<std::string, std::string>>;

class Rendezvous {
 public:
  /// Connects to the store, which rank 0 opens. Throws UsageError where the port is in use, SiteLost where
  /// rank 0 does not come within the limit. `names`: of the ranks' sites.
  Rendezvous(const Launch& launch, std::vector<std::string> names, double timeout_s);
  ~Rendezvous();

  /// Returns when every rank has called it with the same digest, and measures how far they are from rank 0.
  /// Throws UsageError, naming the first rank that differs and in what; SiteLost, naming the ranks that did
  /// not come.
  void agree(const Digest& digest);

  /// Everybody's text by rank, at every rank, when all have called it; `key` differs for each call.
  std::vector<std::string> gather(const std::string& key, const std::string& text);

  /// After agree(): returns at every rank at the same moment, when all have called it. Rank 0's word reaches
  /// the others half a round trip later: each waits for as long as its own is shorter than the longest. Paths
  /// that take longer one way than the other are off by half the difference. To be called once. Throws
  /// SiteLost like gather().
  void start_together();

  /// Sends and receives among the ranks: over NCCL where every rank trains on a GPU of its own, else over
  /// Gloo (rank_transports.hpp). Throws SiteLost from exchange().
  std::unique_ptr<Transport> transport(const std::vector<costmodel::Node>& nodes, const at::Device& device);

  /// After SiteLost: which site was lost first, in words. The ranks tell each other through the store, so
  /// that those who only see a neighbour leave name the culprit too.
  std::string explain(const SiteLost& lost);

 private:
  struct Connection;
  [[nodiscard]] std::string name_of(int rank) const;
  [[nodiscard]] SiteLost store_lost() const;
  /// Names the ranks whose keys (by rank) are not there.
  [[nodiscard]] SiteLost missing_of(const std::vector<std::string>& keys);
  void measure_round_trips();

  Launch launch_;
  std::vector<std::string> names_;
  double timeout_s_;
  double round_trip_s_ = 0, longest_round_trip_s_ = 0;  // to the store
  std::unique_ptr<Connection> connection_;
};

}  // namespace fomoe::trainer
