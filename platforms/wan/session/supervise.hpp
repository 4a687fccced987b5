// CMD once per site, at the same time, until all have ended.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/session/cpu_quota.hpp"

namespace fomoe::platforms::wan {

struct SiteCommand {
  std::string name;  // of the site
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<int> cores;  // empty: any
};

struct SiteExit {
  int status = 0;  // as a shell gives it: 128 + signal where one ended it
};

struct Supervised {
  int status = 0;  // of the first that failed; 128 + signal where this program was asked to end; else 0
  std::vector<SiteExit> sites;
};

/// Prints their lines with "[site] " before each. After the first failure the others get SIGTERM, and
/// SIGKILL five seconds later. Throws Refusal where `relay` ends. Signals must be blocked. `quota`: nullptr
/// for none.
Supervised supervise(const std::vector<SiteNetwork>& sites, const std::vector<SiteCommand>& commands,
                     const std::vector<std::string>& command, pid_t relay, const CpuQuota* quota);

}  // namespace fomoe::platforms::wan
