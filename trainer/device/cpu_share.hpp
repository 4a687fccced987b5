// How much of the machine's CPU this process may use, and how much of it the process got. Threads that wait
// for a core make the others wait in turn: with more threads than cores, a step can take a hundred times as
// long.
#pragma once
#include <string>

namespace fomoe::trainer {

/// The CPU time that the control groups of a process leave it, in cores; infinity without a limit.
/// `groups` is the text of /proc/PROCESS/cgroup, and `mount` the folder where control groups are mounted.
/// Reads cpu.max of version 2 and cpu.cfs_quota_us of version 1, of the group and of all groups above it
/// (Documentation/admin-guide/cgroup-v2.rst and Documentation/scheduler/sched-bwc.rst of the kernel).
double quota_cores(const std::string& groups, const std::string& mount = "/sys/fs/cgroup");

/// ⌊min(cores of the process's affinity, quota) ÷ processes⌋, at least 1.
int threads_for(int processes);
/// The number of threads of a process for which nobody gave one: that of threads_for() with the processes
/// that share its cores. FOMOE_PROCESSES, which fomoe-wan sets, or LOCAL_WORLD_SIZE, which torchrun sets, has
/// their number; otherwise it is 1.
int default_threads();

/// Measures from its construction on.
class CpuWatch {
 public:
  CpuWatch();
  struct Use {
    double cpu_share = 0;     // CPU time of all threads ÷ (elapsed time · threads)
    double waited_share = 0;  // time in which threads wanted a core and had none ÷ (elapsed time · threads)
  };
  /// With `threads` threads that compute.
  [[nodiscard]] Use use(int threads) const;

 private:
  double wall_s_, cpu_s_, waited_s_;
};

}  // namespace fomoe::trainer
