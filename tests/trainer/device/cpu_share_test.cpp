// Tests of the CPU time that a process may use and of what it got.
#include "trainer/device/cpu_share.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

using namespace fomoe::trainer;

namespace {

// A folder of control groups in which the files have these texts.
struct Groups {
  std::filesystem::path mount;
  Groups() : mount(std::filesystem::temp_directory_path() / ("fomoe-groups-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(mount);
  }
  // Not remove_all(): LibTorch brings another one, which crashes here.
  ~Groups() { (void)!std::system(("rm -rf '" + mount.string() + "'").c_str()); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((mount / path).parent_path());
    std::ofstream(mount / path) << text << '\n';
  }
  [[nodiscard]] double cores(const std::string& groups) const { return quota_cores(groups, mount.string()); }
};

}  // namespace

TEST_CASE("the quota is the least of a process's control group and of those above it") {
  const Groups groups;
  CHECK(std::isinf(groups.cores("0::/\n")));
  groups.write("cpu.max", "max 100000");
  CHECK(std::isinf(groups.cores("0::/\n")));
  groups.write("a/cpu.max", "250000 100000");
  groups.write("a/b/cpu.max", "max 100000");
  CHECK(groups.cores("0::/a/b\n") == 2.5);
  groups.write("a/b/cpu.max", "60000 100000");
  CHECK(groups.cores("0::/a/b\n") == 0.6);
  CHECK(groups.cores("0::/a\n") == 2.5);
  // version 1, with another hierarchy beside it
  groups.write("cpu/c/cpu.cfs_quota_us", "-1");
  groups.write("cpu/c/cpu.cfs_period_us", "100000");
  CHECK(std::isinf(groups.cores("3:memory:/a\n1:cpu:/c\n")));
  groups.write("cpu/c/cpu.cfs_quota_us", "150000");
  CHECK(groups.cores("3:memory:/a\n1:cpu:/c\n0::/\n") == 1.5);
  groups.write("cpu,cpuacct/d/cpu.cfs_quota_us", "40000");
  groups.write("cpu,cpuacct/d/cpu.cfs_period_us", "100000");
  CHECK(groups.cores("4:cpu,cpuacct:/d\n") == 0.4);
  CHECK(std::isinf(groups.cores("nonsense\n")));
}

TEST_CASE("threads follow the affinity and the processes that share the cores, and are at least one") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  const int all = threads_for(1);
  CHECK(all >= 1);
  CHECK(threads_for(1000) == 1);
  CHECK(threads_for(2) == std::max(1, all / 2));
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before)) continue;
    CPU_SET(core, &one);
    break;
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(threads_for(1) == 1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  ::setenv("LOCAL_WORLD_SIZE", "1000", 1);
  CHECK(default_threads() == 1);
  ::setenv("FOMOE_PROCESSES", "1", 1);  // says how many share these cores, whoever belongs to the node
  CHECK(default_threads() == all);
  ::unsetenv("FOMOE_PROCESSES");
  ::unsetenv("LOCAL_WORLD_SIZE");
}

TEST_CASE("two threads on one core wait for it half of the time, and a sleeping one does not wait") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before)) continue;
    CPU_SET(core, &one);
    break;
  }
  if (!std::ifstream("/proc/self/schedstat")) {
    MESSAGE("skipped: this kernel does not say how long threads wait");
    return;
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const auto spin = [](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  const CpuWatch watch;
  CpuWatch::Use use;
  std::thread other(spin, std::chrono::milliseconds(600));
  spin(std::chrono::milliseconds(500));
  use = watch.use(2);
  other.join();
  const CpuWatch asleep;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const CpuWatch::Use slept = asleep.use(1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(use.waited_share > 0.4);  // each waits while the other runs; other programs make it more
  CHECK(use.cpu_share < 0.6);
  CHECK(slept.waited_share < 0.05);
}
