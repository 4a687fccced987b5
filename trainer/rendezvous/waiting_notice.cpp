#include "trainer/rendezvous/waiting_notice.hpp"

#include <chrono>
#include <cmath>
#include <iostream>
#include <utility>

#include "experiments/text/human.hpp"

namespace fomoe::trainer {
namespace {

void say_on_stderr(const std::string& line) { std::cerr << "fomoe-train: " + line + '\n' << std::flush; }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

WaitingNotice::WaitingNotice() : WaitingNotice(say_on_stderr, seconds_now) {}

WaitingNotice::WaitingNotice(std::function<void(const std::string&)> say, std::function<double()> now_s)
    : say_(std::move(say)), now_s_(std::move(now_s)), began_s_(now_s_()), next_s_(began_s_ + kFirstS) {}

void WaitingNotice::waits(double limit_s, const std::function<std::string()>& whom) {
  const double now = now_s_();
  if (now < next_s_) return;
  next_s_ = now + kThenS;
  const std::string names = whom();
  if (names.empty()) return;  // they have just come
  const std::string limit =
      std::isfinite(limit_s) ? ", for at most " + commands::human_time(limit_s) + " in all" : "";
  say_("has waited " + commands::human_time(std::floor(now - began_s_)) + " for " + names + limit);
}

}  // namespace fomoe::trainer
