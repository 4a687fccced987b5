// Limits the CPU time of each site to a number of cores' worth, however many cores the site runs on. It uses
// the kernel's control groups (cgroups(7)) of version 1 or 2, whichever has this machine's cpu controller.
#pragma once
#include <string>
#include <vector>

#include "platforms/wan/network/isolation.hpp"

namespace fomoe::platforms::wan {

/// The folder in which this process can create control groups.
struct GroupFolder {
  std::string path;      // folder of the group that this process is in
  bool unified = false;  // whether it is of version 2
};

/// Finds the folder from the contents of /proc/self/mountinfo and /proc/self/cgroup. Version 1 takes
/// precedence, since a machine that has its cpu controller there has it nowhere else. The path is empty if no
/// cpu controller is mounted.
GroupFolder find_group(const std::string& mounts, const std::string& groups);

class CpuQuota {
 public:
  /// Creates a control group for each site. Its processes may use the time of `cores` cores (0.5 means half
  /// of one core) in every period of 0.1 s. Throws Refusal if this machine does not allow it. Also removes
  /// groups that an earlier run left behind because it was killed.
  CpuQuota(int sites, double cores);
  /// Removes the groups. Every process must have left them.
  ~CpuQuota();
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  /// Moves this process, and all processes that it will start, into the site's group.
  void join(int site) const;

 private:
  GroupFolder parent_;
  std::string own_;  // version 2 only: the group into which this process itself was moved
  std::vector<std::string> groups_;
  std::vector<Descriptor> members_;  // [site]: its cgroup.procs, opened before the process is isolated
};

}  // namespace fomoe::platforms::wan
