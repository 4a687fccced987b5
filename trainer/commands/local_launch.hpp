// `fomoe-train run --local`: starts one process per site on this machine, as torchrun would.
#pragma once
#include <string>
#include <vector>

namespace fomoe::trainer {

/// Starts this program `processes` times with `arguments` without --local, and waits for all of them. Each
/// process gets RANK, WORLD_SIZE, MASTER_ADDR, a free MASTER_PORT, and `threads` threads (or its share of the
/// cores). If one fails, the others notice and report it; processes that are still running kPatienceS seconds
/// later are stopped. The processes always end together with this one. Returns 0, or the exit status of the
/// process that failed first.
inline constexpr double kPatienceS = 10;
int launch_local(const std::vector<std::string>& arguments, int processes, int threads);

}  // namespace fomoe::trainer
