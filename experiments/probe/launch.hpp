// Which site this process is: the variables that torchrun, srun and fomoe-wan set.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace fomoe::probe {

struct Launch {
  int rank = 0, world = 1;
  std::string master;  // address of rank 0
  int port = 0;        // of rank 0's control connections
};

/// A variable's value, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
std::optional<std::string> process_environment(const std::string& name);

/// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; under Slurm SLURM_PROCID and SLURM_NTASKS stand in for the
/// first two. Where torchrun's own store has MASTER_PORT, the port after it. Throws InputError.
Launch read_launch(const Environment& environment);

}  // namespace fomoe::probe
