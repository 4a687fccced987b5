// So many cores' worth of time for each site, however many cores it runs on: control groups of the kernel
// (cgroups(7)), version 1 or 2, whichever has this machine's cpu controller.
#pragma once
#include <string>
#include <vector>

#include "platforms/wan/network/isolation.hpp"

namespace fomoe::platforms::wan {

/// Where control groups of this process go.
struct GroupFolder {
  std::string path;      // of the group that this process is in
  bool unified = false;  // version 2
};

/// From the contents of /proc/self/mountinfo and /proc/self/cgroup; version 1 first, since a machine that has
/// its cpu controller there has it nowhere else. An empty path: no cpu controller is mounted.
GroupFolder find_group(const std::string& mounts, const std::string& groups);

class CpuQuota {
 public:
  /// A group for each site, which may use `cores` (0.5: half of one) in every tenth of a second. Throws
  /// Refusal where this machine does not let us. Groups that an earlier run could not remove, because it was
  /// killed, are removed now.
  CpuQuota(int sites, double cores);
  /// Every process must have left them.
  ~CpuQuota();
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  /// Moves this process, and what it will start, into the site's group.
  void join(int site) const;

 private:
  GroupFolder parent_;
  std::string own_;  // version 2: where this process itself had to go
  std::vector<std::string> groups_;
  std::vector<Descriptor> members_;  // cgroup.procs of each, open before this process is isolated
};

}  // namespace fomoe::platforms::wan
