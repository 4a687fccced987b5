// How the processes of a run find each other: through torchrun's environment variables and a TCPStore at rank
// 0. Either one process trains one site (rank r trains site r), or one process trains all sites.
//
// Ranks that start early wait for the others. Before training starts, all ranks check that they are about to
// train the same thing.
#pragma once
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/comm/digest.hpp"
#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

struct Launch {
  int rank = 0, world = 1;
  int local_rank = 0;   // index among the processes of this machine
  std::string address;  // host name or address of rank 0
  int port = 0;
  bool agent_store = false;  // torchrun's own process already serves the store
};

/// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and, where it is set, LOCAL_RANK. Under Slurm,
/// SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID replace RANK, WORLD_SIZE and LOCAL_RANK. Returns nothing if
/// neither RANK nor SLURM_PROCID is set. Throws UsageError if some of the variables are missing.
std::optional<Launch> launch_from_environment();

/// A site has stopped answering, or has never joined.
class SiteLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Rendezvous {
 public:
  /// Connects to the store, which rank 0 opens. `names` are the names of the sites, by rank. Throws
  /// UsageError if the port is in use or another process has the same rank, and SiteLost if rank 0 does not
  /// appear within `timeout_s`.
  ///
  /// With `meeting_s`, sites may have been lost, and come back: agree() waits as long for them. Rank 0 may
  /// not have noticed yet that an earlier process of this rank has ended. The constructor then tells all
  /// ranks in gather() to start anew, which throws SiteLost there, and waits for rank 0's next store.
  Rendezvous(const Launch& launch, std::vector<std::string> names, double timeout_s,
             std::optional<double> meeting_s = std::nullopt);
  ~Rendezvous();

  /// Waits until every rank has called agree(), compares the digests, and measures each rank's round trip to
  /// rank 0. If digests differ, it throws UsageError, which names the first rank that differs and the entry
  /// that differs. If ranks are missing, it throws SiteLost, which names them.
  void agree(const Digest& digest);

  /// Waits until every rank has called gather() with the same `key`, and returns the texts of all ranks, by
  /// rank. Each call needs a new `key`. Texts may have any length.
  std::vector<std::string> gather(const std::string& key, const std::string& text);
  /// Does the same at rank 0. The other ranks get an empty list, and rank 0 keeps only the texts.
  std::vector<std::string> collect(const std::string& key, const std::string& text);

  /// Returns at every rank at the same moment, once all ranks have called it; call it after agree(), and only
  /// once. The signal of rank 0 reaches another rank half a round trip later, so each rank waits for half the
  /// difference between the longest round trip and its own. If a path is slower in one direction, the error
  /// is half the difference between the directions. Throws SiteLost as gather() does.
  void start_together();

  /// Makes the transport between the ranks (rank_transports.hpp). `kind` is a value of trainer.transport:
  /// gloo, nccl, or auto, which is NCCL if every rank trains on a GPU of its own, otherwise Gloo. Throws
  /// UsageError if `kind` is nccl and a rank has no GPU of its own. The exchange() of the transport throws
  /// SiteLost.
  std::unique_ptr<Transport> transport(const std::vector<costmodel::Node>& nodes, const at::Device& device,
                                       const std::string& kind);

  /// Tells the other ranks that this rank stops for the reason `own`, and returns the reason of the rank that
  /// stopped first. A rank that only saw its neighbour leave thus also reports what caused it.
  std::string first_failure(const std::string& own);

 private:
  struct Connection;
  [[nodiscard]] std::string name_of(int rank) const;
  [[nodiscard]] SiteLost store_lost() const;
  void connect();
  [[nodiscard]] std::optional<bool> first_of_its_rank();
  std::vector<std::string> exchange_texts(const std::string& key, const std::string& text, bool all_read,
                                          double timeout_s);
  void wait_for(const std::vector<std::string>& keys, double timeout_s);
  /// The error that names the ranks whose key is missing from the store; `keys` is indexed by rank.
  [[nodiscard]] SiteLost missing_of(const std::vector<std::string>& keys, double timeout_s);
  void measure_round_trips();

  Launch launch_;
  std::vector<std::string> names_;
  double timeout_s_;
  std::optional<double> meeting_s_;
  double round_trip_s_ = 0, longest_round_trip_s_ = 0;  // seconds, from a rank to the store and back
  std::unique_ptr<Connection> connection_;
};

}  // namespace fomoe::trainer
