#include "platforms/support/children.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

TEST_CASE("values of children keep their order, whatever their number and whichever ends first") {
  for (const std::size_t count : {0, 1, 2, 37}) {
    std::size_t calls = 0;
    const auto square = [](std::size_t i) {
      if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return static_cast<double>(i * i);
    };
    const auto values = fomoe::in_children<double>(count, square, [&](std::size_t done) {
      ++calls;
      CHECK(done == calls);
    });
    CHECK(calls == count);
    REQUIRE(values.size() == count);
    for (std::size_t i = 0; i < count; ++i) CHECK(values[i] == static_cast<double>(i * i));
  }
}

TEST_CASE("each value is computed in a process of its own, and a failure is that of all") {
  const auto processes = fomoe::in_children<pid_t>(9, [](std::size_t) { return ::getpid(); });
  const std::set<pid_t> different(processes.begin(), processes.end());
  CHECK(different.size() == 9);
  CHECK(different.count(::getpid()) == 0);
  const auto fails = [](std::size_t i) {
    if (i == 5) throw std::runtime_error("no fifth value");
    return i;
  };
  CHECK_THROWS_WITH_AS(fomoe::in_children<std::size_t>(9, fails), "no fifth value", fomoe::ChildError);
}
