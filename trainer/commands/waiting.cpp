#include "trainer/commands/waiting.hpp"

#include <linux/close_range.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "platforms/support/parse_number.hpp"
#include "trainer/commands/shared_errors.hpp"

namespace fomoe::trainer {
namespace {

// The second at which the first site was lost, for the next image of this process.
constexpr const char* kLostSince = "FOMOE_LOST_SINCE";

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void wait_for_lost_site(const std::vector<std::string>& arguments, double limit_s,
                        const std::string& reason) {
  const char* since = std::getenv(kLostSince);
  const double lost_s =
      since == nullptr ? seconds_now() : parse_number<double>(since).value_or(seconds_now());
  if (seconds_now() - lost_s > limit_s) return;
  if (since == nullptr) ::setenv(kLostSince, std::to_string(lost_s).c_str(), 1);
  std::cerr << "fomoe-train: " << reason << "; waiting for all sites, to go on from the newest checkpoint\n";
  // Sites that fail at once, for example because rank 0 is not there yet, try again about once a second.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::vector<std::string> command = {"fomoe-train", "run"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (std::find(command.begin(), command.end(), "--resume") == command.end())
    command.emplace_back("--resume");
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  leave_shared_errors();
  // Sockets that stay open would keep ports in use, and other sites from noticing.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv("/proc/self/exe", argv.data());
}

bool waits_again() { return std::getenv(kLostSince) != nullptr; }

void mark_all_present() { ::unsetenv(kLostSince); }

}  // namespace fomoe::trainer
