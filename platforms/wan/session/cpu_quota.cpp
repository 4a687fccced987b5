#include "platforms/wan/session/cpu_quota.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "platforms/support/whole_file.hpp"

namespace fomoe::platforms::wan {

namespace {

constexpr const char* kPrefix = "fomoe-wan-";
constexpr int kPeriod_us = 100'000;
constexpr const char* kRemedy =
    "; run as root, or with cgroups of version 2 under `systemd-run --user --scope -p Delegate=yes`";

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

bool has(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

/// Writes without a buffer, so that an error of the kernel is known at once.
bool wrote(const std::string& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void write_or_refuse(const std::string& path, const std::string& text) {
  if (!wrote(path, text))
    throw Refusal(fmt::format("--cpu-quota: {}: {}{}", path, std::strerror(errno), kRemedy));
}

// Removes groups "fomoe-wan-PID-SITE" of processes that no longer exist.
void remove_left_behind(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const int process = std::atoi(name.c_str() + std::strlen(kPrefix));
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
  }
}

}  // namespace

GroupFolder find_group(const std::string& mounts, const std::string& groups) {
  // "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue": proc(5)
  std::string version1, version2;
  for (const std::string& line : split(mounts, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(line, ' '), right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (right[0] == "cgroup" && has(split(right[2], ','), "cpu")) version1 = left[4];
    if (right[0] == "cgroup2") version2 = left[4];
  }
  // "1:cpu,cpuacct:/path" or "0::/path": cgroups(7)
  for (const bool unified : {false, true}) {
    const std::string& mount = unified ? version2 : version1;
    if (mount.empty()) continue;
    for (const std::string& line : split(groups, '\n')) {
      const std::size_t first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      if (unified ? !controllers.empty() : !has(split(controllers, ','), "cpu")) continue;
      const std::string path = line.substr(second + 1);
      return {path == "/" ? mount : mount + path, unified};
    }
  }
  return {};
}

CpuQuota::CpuQuota(int sites, double cores)
    : parent_(find_group(whole_file("/proc/self/mountinfo").value_or(""),
                         whole_file("/proc/self/cgroup").value_or(""))) {
  if (parent_.path.empty() ||
      (parent_.unified &&
       whole_file(parent_.path + "/cgroup.controllers").value_or("").find("cpu ") == std::string::npos))
    throw Refusal(std::string("--cpu-quota: this machine provides no cpu controller for control groups") +
                  kRemedy);
  remove_left_behind(parent_.path);
  const auto name = [&](const std::string& what) {
    return fmt::format("{}/{}{}-{}", parent_.path, kPrefix, ::getpid(), what);
  };
  const auto make = [](const std::string& path) {
    if (::mkdir(path.c_str(), 0755) != 0)
      throw Refusal(fmt::format("--cpu-quota: {}: {}{}", path, std::strerror(errno), kRemedy));
  };
  if (parent_.unified) {  // version 2: a group that delegates a controller may hold no processes itself
    own_ = name("main");
    make(own_);
    write_or_refuse(own_ + "/cgroup.procs", "0");
    write_or_refuse(parent_.path + "/cgroup.subtree_control", "+cpu");
  }
  const auto quota_us = static_cast<long>(cores * kPeriod_us);
  for (int site = 0; site < sites; ++site) {
    groups_.push_back(name(std::to_string(site)));
    const std::string& group = groups_.back();
    make(group);
    if (parent_.unified) {
      write_or_refuse(group + "/cpu.max", fmt::format("{} {}", quota_us, kPeriod_us));
    } else {
      write_or_refuse(group + "/cpu.cfs_period_us", std::to_string(kPeriod_us));
      write_or_refuse(group + "/cpu.cfs_quota_us", std::to_string(quota_us));
    }
    members_.emplace_back(::open((group + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (members_.back().get() < 0) refuse_system_call(group + "/cgroup.procs");
  }
}

CpuQuota::~CpuQuota() {
  for (const std::string& group : groups_) ::rmdir(group.c_str());
  if (own_.empty()) return;
  wrote(parent_.path + "/cgroup.subtree_control", "-cpu");
  wrote(parent_.path + "/cgroup.procs", "0");
  ::rmdir(own_.c_str());
}

void CpuQuota::join(int site) const {
  if (::write(members_[static_cast<std::size_t>(site)].get(), "0", 1) != 1)
    refuse_system_call("--cpu-quota: cannot join the site's control group");
}

}  // namespace fomoe::platforms::wan
