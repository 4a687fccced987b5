// Runs the user's command (CMD) at all sites at the same time, in one or several processes at each site,
// until all have ended.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/session/cpu_quota.hpp"

namespace fomoe::platforms::wan {

/// One process that runs the command.
struct SiteCommand {
  std::string name;  // in messages: the name of the site, with the process if the site has several
  int site = 0;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<int> cores;  // CPU cores of the site; any core if empty
};

struct SiteExit {
  // Exit status as in a shell: 128 + signal if a signal ended the command. Of several processes, that of the
  // first one that failed.
  int status = 0;
};

struct Supervised {
  // Exit status of the first command that failed; 128 + signal if this program was asked to end; else 0.
  int status = 0;
  std::vector<SiteExit> sites;
};

/// Runs the command in a process for each of `commands`, and prints the lines of their output with "[name] "
/// before each. After the first failure the other commands get SIGTERM, and SIGKILL five seconds later.
/// Throws Refusal if the process `relay` ends. Signals must be blocked. `quota` may be nullptr.
Supervised supervise(const std::vector<SiteNetwork>& sites, const std::vector<SiteCommand>& commands,
                     const std::vector<std::string>& command, pid_t relay, const CpuQuota* quota);

}  // namespace fomoe::platforms::wan
