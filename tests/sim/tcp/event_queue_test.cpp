// Tests that events come in the order of time, whatever their sources, beside a sorted list of all events.
#include "sim/tcp/event_queue.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <tuple>

using Queue = fomoe::sim::EventQueue<int>;

TEST_CASE("events of any sources come in the order of time, and of planning where times are equal") {
  for (const unsigned seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
    constexpr unsigned kSources = 5;
    Queue queue;
    queue.restart(kSources);
    std::set<std::tuple<double, int>> expected;  // time and number
    double now_s = 0, last_s[kSources] = {};
    int planned = 0, out_of_turn = 0;
    for (int step = 0; step < 20'000; ++step) {
      // Phases in which the queue grows and in which it empties.
      if (below(10) < (step / 1'000 % 2 == 0 ? 7U : 3U) || queue.empty()) {
        const auto source = static_cast<std::uint32_t>(below(kSources + 1));
        double at_s = now_s + below(20);
        if (source < kSources && below(20) > 0) at_s = std::max(at_s, last_s[source]);
        if (source < kSources) {
          out_of_turn += at_s < last_s[source];
          last_s[source] = std::max(last_s[source], at_s);
        }
        queue.plan(at_s, source < kSources ? source : Queue::kAlone, planned);
        expected.emplace(at_s, planned++);
      } else {
        const auto [at_s, number] = *expected.begin();
        expected.erase(expected.begin());
        REQUIRE(queue.next_s() == at_s);
        REQUIRE(queue.next() == number);
        now_s = at_s;
      }
    }
    CHECK(out_of_turn > 100);
    while (!expected.empty()) {
      REQUIRE(queue.next() == std::get<1>(*expected.begin()));
      expected.erase(expected.begin());
    }
    CHECK(queue.empty());
    CHECK(queue.next_s() == std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("a queue that was cleared has no events, and takes new ones of the same sources") {
  Queue queue;
  queue.restart(2);
  for (int i = 0; i < 20; ++i) queue.plan(i, 1, i);
  queue.clear();
  CHECK(queue.empty());
  queue.plan(3, 1, 7);  // earlier than the last event before
  queue.plan(2, Queue::kAlone, 8);
  CHECK(queue.next() == 8);
  CHECK(queue.next() == 7);
}
