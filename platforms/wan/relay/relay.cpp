#include "platforms/wan/relay/relay.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <span>

#include "platforms/wan/relay/frame.hpp"
#include "platforms/wan/relay/relay_core.hpp"

namespace fomoe::platforms::wan {

double monotonic_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) refuse_system_call("sched_setaffinity");
}

namespace {

constexpr int kPacketsPerTurn = 64;  // packets that are read from one site before the next site

class Loop {
 public:
  Loop(const Layout& layout, const std::vector<SiteNetwork>& sites, RelayStatistics& statistics)
      : layout_(layout), core_(layout), statistics_(statistics) {
    for (const SiteNetwork& site : sites) ready_.push_back({site.tun.get(), POLLIN, 0});
  }

  [[noreturn]] void run() {
    for (;;) {
      wait();
      const double now_s = monotonic_s();
      deliver(now_s);
      for (std::size_t site = 0; site < ready_.size(); ++site)
        if (ready_[site].revents != 0) take(static_cast<int>(site), now_s);
      deliver(now_s);
      std::uint64_t drops = 0;
      for (const LinkCount& count : core_.counts()) drops += count.drops;
      statistics_.drops.store(drops, std::memory_order_relaxed);
    }
  }

 private:
  void wait() {
    timespec left{};
    const std::optional<double> next_s = core_.next_s();
    if (next_s) {
      const double left_s = std::max(0.0, *next_s - monotonic_s());
      left.tv_sec = static_cast<time_t>(left_s);
      left.tv_nsec = static_cast<long>((left_s - std::floor(left_s)) * 1e9);
    }
    ::ppoll(ready_.data(), ready_.size(), next_s ? &left : nullptr, nullptr);
  }

  void take(int site, double now_s) {
    for (int count = 0; count < kPacketsPerTurn; ++count) {
      const ssize_t size = ::read(ready_[static_cast<std::size_t>(site)].fd, buffer_.data(), buffer_.size());
      if (size <= 0) return;
      const std::span<const std::byte> content(buffer_.data(), static_cast<std::size_t>(size));
      const auto frame = parse_frame(content);
      if (!frame) continue;  // mostly IPv6 announcements of the kernel
      const int to = layout_.site_of(frame->destination);
      if (to < 0 || to == site) continue;
      core_.receive(now_s,
                    {site, to, frame->wire_bytes, frame->segment_bytes, {content.begin(), content.end()}});
    }
  }

  void deliver(double now_s) {
    core_.advance(now_s, [&](Packet&& packet, double due_s) {
      // If the receive queue is full the packet is dropped, as by a real host.
      [[maybe_unused]] const ssize_t written = ::write(ready_[static_cast<std::size_t>(packet.to)].fd,
                                                       packet.content.data(), packet.content.size());
      const double late_s = monotonic_s() - due_s;
      add(statistics_.packets, std::uint64_t{1});
      add(statistics_.bytes, packet.wire_bytes);
      add(statistics_.late_s, late_s);
      if (late_s > statistics_.most_late_s.load(std::memory_order_relaxed))
        statistics_.most_late_s.store(late_s, std::memory_order_relaxed);
    });
  }

  // Only the relay writes the counters, so an atomic read-modify-write is not needed.
  template <typename T>
  static void add(std::atomic<T>& sum, T value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  const Layout& layout_;
  RelayCore core_;
  RelayStatistics& statistics_;
  std::vector<pollfd> ready_;
  std::array<std::byte, (1U << 16U) + 256> buffer_{};
};

}  // namespace

Relay::Relay(const Layout& layout, const std::vector<SiteNetwork>& sites, int core) {
  void* memory =
      ::mmap(nullptr, sizeof(RelayStatistics), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse_system_call("mmap");
  statistics_ = new (memory) RelayStatistics{};
  process_ = ::fork();
  if (process_ < 0) refuse_system_call("fork");
  if (process_ > 0) return;
  try {
    ::prctl(PR_SET_NAME, "fomoe-wan relay");
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // the default of 50 µs would be added to every latency
    if (core >= 0) run_on({core});
    Loop(layout, sites, *statistics_).run();
  } catch (...) {
    ::_exit(1);  // the parent notices that the process ended
  }
}

void Relay::stop() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  if (statistics_ != nullptr) ::munmap(statistics_, sizeof(RelayStatistics));
  statistics_ = nullptr;
}

}  // namespace fomoe::platforms::wan
