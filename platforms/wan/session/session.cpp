#include "platforms/wan/session/session.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/whole_file.hpp"
#include "platforms/wan/network/egress.hpp"
#include "platforms/wan/relay/relay.hpp"
#include "platforms/wan/relay/tasks.hpp"

namespace fomoe::platforms::wan {

namespace {

constexpr int kFailure = 1;
constexpr int kPatience_s = 10;  // time limit for the isolated process to end after a signal

void say(const std::string& line) { std::fprintf(stderr, "fomoe-wan: %s\n", line.c_str()); }

Circumstances circumstances_now(const Relay& relay) {
  utsname system{};
  ::uname(&system);
  Circumstances now;
  now.kernel = std::string(system.sysname) + " " + system.release;
  now.congestion_control = network_setting("tcp_congestion_control");
  now.slow_start_after_idle = network_setting("tcp_slow_start_after_idle");
  now.send_buffer = network_setting("tcp_wmem");
  now.receive_buffer = network_setting("tcp_rmem");
  const RelayStatistics& statistics = relay.statistics();
  now.relayed_packets = statistics.packets;
  now.dropped_packets = statistics.drops;
  now.relayed_bytes = statistics.bytes;
  now.mean_late_s =
      now.relayed_packets > 0 ? statistics.late_s / static_cast<double>(now.relayed_packets) : 0;
  now.most_late_s = statistics.most_late_s;
  return now;
}

/// Runs the user's command at all sites. It starts a new relay, so that its queues and counters hold nothing
/// of the check.
Supervised run_command(const Layout& layout, const SessionOptions& options,
                       const std::vector<SiteNetwork>& sites, const Cores& cores, const Check& check,
                       const CpuQuota* quota) {
  const Relay relay(layout, sites, options.cores ? options.cores->relay : -1);
  std::vector<SiteCommand> commands;
  for (int site = 0; site < layout.size(); ++site) {
    const std::string& name = layout.sites[static_cast<std::size_t>(site)].name;
    const int per_site = options.processes_per_site;
    // With cores of its own, a site shares them with nobody.
    const int on_same_cores = cores.empty() ? per_site * layout.size() : per_site;
    for (int local_rank = 0; local_rank < per_site; ++local_rank) {
      // Only the first process of a site may write the site's report.
      const std::string path = local_rank == 0 ? site_report_path(options.report, name) : "";
      if (!path.empty())
        ::unlink(path.c_str());  // a report of an older run must not be mistaken for this run's
      commands.push_back({per_site == 1 ? name : fmt::format("{}/{}", name, local_rank), site,
                          process_environment(layout, {site, local_rank, per_site, on_same_cores},
                                              options.master_port, path, options.check),
                          cores.empty() ? std::vector<int>{} : cores[static_cast<std::size_t>(site)]});
    }
  }
  Supervised done = supervise(sites, commands, options.command, relay.process(), quota);
  if (!options.report.empty()) {
    write_file(options.report,
               report_json(layout, options, check, circumstances_now(relay), done,
                           whole_file(site_report_path(options.report, layout.sites[0].name)).value_or("")));
  }
  return done;
}

/// Limits the uplinks in the sites' kernels. The relay shapes uplinks to the same rate as well, which smooths
/// the bursts of a site.
void limit_uplinks(const Layout& layout, const std::vector<SiteNetwork>& sites) {
  for (std::size_t site = 0; site < sites.size(); ++site) {
    const Link& uplink = layout.links[2 * site];  // lay_out() places the uplink here
    if (std::isfinite(uplink.bytes_per_s))
      limit_egress(sites[site].route_control, uplink.bytes_per_s, uplink.queue_bytes, layout.mtu);
  }
}

/// 4 bandwidth-delay products of the path where they are largest: one for the path, one for its queue, and
/// both doubled, since TCP uses a part of a buffer for bookkeeping.
double most_bytes_in_flight(const Layout& layout) {
  double most = 0;
  for (int from = 0; from < layout.size(); ++from) {
    for (int to = 0; to < layout.size(); ++to) {
      if (from != to)
        most = std::max(most, 4 * layout.rate_bytes_per_s(from, to) * layout.round_trip_s(from, to, 0));
    }
  }
  return most;
}

/// Sets the limits at all sites. This process is in the namespace of the last site afterwards.
void set_socket_buffers(const std::vector<SiteNetwork>& sites, const SocketBuffers& buffers) {
  for (const SiteNetwork& site : sites) {
    enter(site);
    set_socket_buffers(buffers);
  }
}

int checked_run(const Layout& layout, const SessionOptions& options, const CpuQuota* quota) {
  std::vector<SiteNetwork> sites;
  for (const SiteLayout& site : layout.sites)
    sites.push_back(make_site_network(site.address, layout.mtu, options.network));
  const SocketBuffers system = socket_buffers(), large = large_enough(system, most_bytes_in_flight(layout));
  set_socket_buffers(sites, large);  // the check shall measure links, not buffers
  const Cores cores = options.cores ? options.cores->sites : Cores{};
  const int relay_core = options.cores ? options.cores->relay : -1;

  Check check;
  check.aggregate_bytes_per_s = layout.aggregate_bytes_per_s();
  if (options.check) {
    check.relay_bytes_per_s = measure_relay(layout, sites, cores, relay_core);
    if (const std::string reason = too_much_for_relay(check); !reason.empty()) throw Refusal(reason);
    if (options.uplink_queue == UplinkQueue::host) limit_uplinks(layout, sites);
    {
      const Relay relay(layout, sites, relay_core);
      check.pairs = measure_pairs(layout, sites, cores);
    }
    // The table is the output of `check`. With a command it is a message, so that stdout has only the
    // command's output.
    std::fputs(check_text(check, layout).c_str(), options.command.empty() ? stdout : stderr);
    std::fflush(stdout);
    if (const auto wrong = misses(check, layout); !wrong.empty()) {
      for (const std::string& line : wrong) say(line);
      throw Refusal(
          "the emulation does not match the platform (other load on this machine may be the cause); use "
          "--no-check to continue without the check");
    }
  }
  if (!options.check && options.uplink_queue == UplinkQueue::host) limit_uplinks(layout, sites);
  if (options.buffers == Buffers::system) set_socket_buffers(sites, system);
  if (options.command.empty()) {
    if (!options.report.empty()) {
      const Relay relay(layout, sites, relay_core);
      write_file(options.report, report_json(layout, options, check, circumstances_now(relay), {}, {}));
    }
    return 0;
  }
  return run_command(layout, options, sites, cores, check, quota).status;
}

int inside(const Layout& layout, const SessionOptions& options, const CpuQuota* quota) noexcept {
  try {
    return checked_run(layout, options, quota);
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal();
  } catch (const std::exception& error) {
    say(error.what());
    return kFailure;
  }
}

}  // namespace

std::string site_report_path(const std::string& report, const std::string& site) {
  if (report.empty()) return {};
  std::string name = site;
  std::replace(name.begin(), name.end(), '/', '-');
  return (report.ends_with(".json") ? report.substr(0, report.size() - 5) : report) + "." + name + ".json";
}

int run_session(const Layout& layout, const SessionOptions& options) {
  std::optional<CpuQuota> quota;
  if (options.quota_cores) quota.emplace(layout.size(), *options.quota_cores);
  std::fflush(nullptr);  // otherwise the isolated process would print the buffered text again
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&awaited, signal);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  const pid_t process = start_isolated([&] { return inside(layout, options, quota ? &*quota : nullptr); });
  bool asked = false;
  for (int status = 0;;) {
    if (::waitpid(process, &status, WNOHANG) == process) {
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      say(fmt::format("signal {} ended the isolated process", WTERMSIG(status)));
      return kFailure;
    }
    const timespec patience = {kPatience_s, 0};
    const int signal =
        asked ? ::sigtimedwait(&awaited, nullptr, &patience) : ::sigwaitinfo(&awaited, nullptr);
    if (signal == SIGCHLD) continue;
    // After a second signal, or if the process does not end, it is killed; the kernel then ends all processes
    // in its namespace.
    ::kill(process, asked ? SIGKILL : signal);
    asked = true;
  }
}

}  // namespace fomoe::platforms::wan
