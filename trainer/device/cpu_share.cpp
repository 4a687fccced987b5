#include "trainer/device/cpu_share.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

namespace fomoe::trainer {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double number_in(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : -1;
}

// "60000 100000": 60 of every 100 ms; "max 100000": no limit.
double limit_of_version_2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : kNoLimit;
}

double limit_of_version_1(const std::string& folder) {
  const double quota = number_in(folder + "/cpu.cfs_quota_us"),
               period = number_in(folder + "/cpu.cfs_period_us");
  return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// The least limit of the group `path` and of those above it, up to the mount.
template <class Limit>
double least_limit(const std::string& mount, std::filesystem::path path, const Limit& limit) {
  double least = kNoLimit;
  while (true) {
    least = std::min(least, limit(mount + path.string()));
    if (!path.has_relative_path()) return least;
    path = path.parent_path();
  }
}

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The second number of a thread's schedstat: nanoseconds in which it could run and did not
// (Documentation/scheduler/sched-stats.rst). Threads that have ended are not counted.
double waited_s() {
  double nanoseconds = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0, waited = 0;
    if (file >> ran >> waited) nanoseconds += waited;
  }
  return 1e-9 * nanoseconds;
}

int cores_of_affinity() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

int positive_variable(const char* name) {
  const char* text = std::getenv(name);
  const int value = text == nullptr ? 0 : std::atoi(text);
  return value > 0 ? value : 0;
}

}  // namespace

double quota_cores(const std::string& groups, const std::string& mount) {
  double least = kNoLimit;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // "HIERARCHY:CONTROLLERS:PATH"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_limit(mount, path, limit_of_version_2));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& folder : {controllers, std::string("cpu")})
        least = std::min(least, least_limit(mount + "/" + folder, path, limit_of_version_1));
    }
  }
  return least;
}

int threads_for(int processes) {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), {}};
  const double cores = std::min(static_cast<double>(cores_of_affinity()), quota_cores(groups));
  return std::max(1, static_cast<int>(std::floor(cores / processes)));
}

int default_threads() {
  const int here = positive_variable("FOMOE_PROCESSES");
  return threads_for(here > 0 ? here : std::max(1, positive_variable("LOCAL_WORLD_SIZE")));
}

CpuWatch::CpuWatch()
    : wall_s_(seconds_of(CLOCK_MONOTONIC)),
      cpu_s_(seconds_of(CLOCK_PROCESS_CPUTIME_ID)),
      waited_s_(trainer::waited_s()) {}

CpuWatch::Use CpuWatch::use(int threads) const {
  const double all_s = (seconds_of(CLOCK_MONOTONIC) - wall_s_) * threads;
  if (all_s <= 0) return {};
  return {(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_s_) / all_s, (trainer::waited_s() - waited_s_) / all_s};
}

}  // namespace fomoe::trainer
