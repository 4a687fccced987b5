// Who starts the processes of a run tells each of them its rank and where rank 0 is, through torchrun's or
// Slurm's environment variables. Either one process, or one for each GPU, trains one site
// (trainer/comm/site_ranks.hpp), or one process trains all sites.
#pragma once
#include <optional>
#include <string>

namespace fomoe::trainer {

struct Launch {
  int rank = 0, world = 1;
  int local_rank = 0;   // index among the processes of this machine
  std::string address;  // host name or address of rank 0
  int port = 0;
  std::string interface;       // network interface or address at which the process listens; empty: chosen
  bool agent_store = false;    // torchrun's own process already serves the store
  std::string secret;          // which all processes know; empty: the store serves anyone
  double start_timeout_s = 0;  // time in which all processes must have started; 0: the time-out of the run
};

/// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and, where it is set, LOCAL_RANK. Under Slurm,
/// SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID replace RANK, WORLD_SIZE and LOCAL_RANK. Returns nothing if
/// neither RANK nor SLURM_PROCID is set. Throws UsageError if some of the variables are missing, and if
/// GLOO_DEVICE_TRANSPORT asks for encryption that LibTorch does not do.
std::optional<Launch> launch_from_environment();

}  // namespace fomoe::trainer
