// How a process waits until rank 0 serves the store: nobody may listen there yet, and a program that accepts
// connections and says nothing must not be waited for longer than a silent site.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "trainer/store/channel.hpp"

namespace fomoe::trainer {

struct Patience {
  double start_s = 0;   // time in which somebody must listen
  double silent_s = 0;  // time in which somebody who listens must answer
  /// Called several times a second while this process waits, with the reason, and the time after which it
  /// gives up; empty: never.
  std::function<void(const std::string& why, double limit_s)> waiting = {};
};

/// Repeats `attempt` until it returns, and returns what it returned. The attempt gets a deadline, and throws
/// ConnectionLost if nobody listens, and Silent if somebody listens who does not answer. When the patience is
/// at its end, the last of these exceptions is passed on. Other exceptions are passed on at once.
template <typename Attempt>
auto reached(const Patience& patience, const Attempt& attempt) {
  using Clock = std::chrono::steady_clock;
  constexpr double kAttemptS = 5;
  constexpr Deadline kNobodyThere = Deadline::max();
  const Deadline start = seconds_from_now(patience.start_s);
  Deadline answer = kNobodyThere;  // set by the first silent attempt
  while (true) {
    std::string why;
    const Deadline answer_from_now = seconds_from_now(patience.silent_s);
    try {
      return attempt(std::min({seconds_from_now(kAttemptS), answer, answer_from_now}));
    } catch (const Silent& error) {
      answer = std::min(answer, answer_from_now);
      if (Clock::now() >= answer) throw;
      why = error.what();
    } catch (const ConnectionLost& error) {
      answer = kNobodyThere;
      if (Clock::now() > start) throw;
      why = error.what();
    }
    if (patience.waiting)
      patience.waiting(why, answer == kNobodyThere ? patience.start_s : patience.silent_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

/// Asks LibTorch's TCPStore at this address whether it is there. Throws ConnectionLost if nobody listens,
/// Silent if the answer is not that of a store or does not come before the deadline, and NotAuthentic if rank
/// 0 asks for a secret.
void ask_open_store(const std::string& address, int port, Deadline deadline);

}  // namespace fomoe::trainer
