// Reads the rank of this process and the address of rank 0 from the environment variables that torchrun, srun
// and fomoe-wan set.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace fomoe::probe {

struct Launch {
  int rank = 0, world = 1;
  std::string master;  // address of rank 0
  int port = 0;        // port of rank 0's control connections
};

/// The value of an environment variable; no value if it is not set or empty.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
std::optional<std::string> process_environment(const std::string& name);

/// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Under Slurm, SLURM_PROCID and SLURM_NTASKS replace
/// RANK and WORLD_SIZE. If torchrun's key-value store listens on MASTER_PORT, the control connections use the
/// next port. Throws InputError.
Launch read_launch(const Environment& environment);

}  // namespace fomoe::probe
