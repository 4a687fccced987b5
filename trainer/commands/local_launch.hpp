// `--local`: one process for each site on this machine, as torchrun would start them.
#pragma once
#include <string>
#include <vector>

namespace fomoe::trainer {

/// Starts this program `processes` times with `arguments` less --local, and waits for all. Each gets RANK,
/// WORLD_SIZE, MASTER_ADDR and a free MASTER_PORT, and `threads` or its share of the cores. Where one fails
/// the others notice and say so; those that have not ended kPatienceS later are stopped. They end with this
/// process whatever happens to it. → 0, or the exit status of the process that failed first.
inline constexpr double kPatienceS = 10;
int launch_local(const std::vector<std::string>& arguments, int processes, int threads);

}  // namespace fomoe::trainer
