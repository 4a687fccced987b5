// `fomoe-train run --local`: starts all processes of a run on this machine, as torchrun would.
#pragma once
#include <string>
#include <variant>
#include <vector>

namespace fomoe::trainer {

/// Divides this process into `processes` of its kind, each of which goes on as one rank, and waits for all of
/// them. So the libraries are loaded once, which takes half a second of a processor. There must be no other
/// thread, and nothing may have used a GPU: CUDA fails in a process whose parent has. Each process gets RANK,
/// WORLD_SIZE, MASTER_ADDR, a free MASTER_PORT, and `threads` threads (or its share of the cores). If a
/// process fails, the others notice and report the failure. Processes that still run kPatienceS seconds later
/// are stopped. If the launching process ends, all started processes end too. SIGTERM is passed on to them.
/// What they all say when they end is said once. Returns, in a process of a rank, its command line:
/// `arguments` without --local. In the process that has called, returns 0 or the exit status of the process
/// that failed first; if that is 1, as of a process that has lost another, then rather the status of one that
/// refused its input (2) or that a signal ended.
///
/// With `restart`, a process that a signal ended is started again, with --resume, and does not count as
/// failed; the others are expected to wait for it, or to let it join again. When rank 0 has ended with
/// success, the run is complete, and processes that still run kPatienceS seconds later came back too late.
inline constexpr double kPatienceS = 10;
std::variant<int, std::vector<std::string>> launch_local(const std::vector<std::string>& arguments,
                                                         int processes, int threads, bool restart);

}  // namespace fomoe::trainer
