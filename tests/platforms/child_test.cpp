#include "platforms/support/child.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

using fomoe::Child;
using fomoe::ChildError;
using fomoe::ChildOutput;

TEST_CASE("a parent reads what its child puts, larger than a pipe's buffer too") {
  const std::vector<double> numbers(100'000, 0.1);
  const std::vector<std::string> texts = {"one", "", "drei\nvier", std::string(1, '\0')};
  Child child([&](ChildOutput& output) {
    output.put(numbers);
    output.put(texts);
    output.put(std::vector<int>{});
    output.put(std::string("the end"));
    output.put(7);
  });
  std::vector<double> read_numbers;
  std::vector<std::string> read_texts;
  std::vector<int> empty = {1};
  std::string text;
  int seven = 0;
  child.get(read_numbers);
  child.get(read_texts);
  child.get(empty);
  child.get(text);
  child.get(seven);
  child.finish();
  CHECK(read_numbers == numbers);
  CHECK(read_texts == texts);
  CHECK(empty.empty());
  CHECK(text == "the end");
  CHECK(seven == 7);
}

TEST_CASE("an exception in the child is an error of the parent, with its message alone") {
  Child child([](ChildOutput& output) {
    output.put(1);
    (void)::write(STDERR_FILENO, "a warning that is longer than the error\n", 40);
    throw std::runtime_error("no such site");
  });
  int one = 0;
  child.get(one);
  CHECK(one == 1);
  CHECK_THROWS_WITH_AS(child.get(one), "no such site", ChildError);
}

TEST_CASE("a child that fails after its last value fails in finish") {
  Child child([](ChildOutput& output) {
    output.put(1);
    throw std::runtime_error("too late");
  });
  int one = 0;
  child.get(one);
  CHECK_THROWS_WITH_AS(child.finish(), "too late", ChildError);
}

TEST_CASE("a child that dies is an error: its stderr, or the signal") {
  Child speaking([](ChildOutput&) {
    (void)::write(STDERR_FILENO, "last words", 10);
    ::raise(SIGKILL);
  });
  std::string text;
  CHECK_THROWS_WITH_AS(speaking.get(text), "last words", ChildError);
  Child silent([](ChildOutput&) { ::raise(SIGKILL); });
  CHECK_THROWS_WITH_AS(silent.get(text), doctest::Contains("Killed"), ChildError);
}

TEST_CASE("a child that is not needed any more is stopped") {
  const auto stopped = [] { Child child([](ChildOutput&) { ::pause(); }); };
  stopped();  // returns
  std::vector<Child> children;
  for (int i = 0; i < 3; ++i)
    children.emplace_back([i](ChildOutput& output) {
      output.put(i);
      ::pause();
    });
  for (int i = 0; i < 3; ++i) {
    int got = -1;
    children[static_cast<std::size_t>(i)].get(got);
    CHECK(got == i);
  }
}

TEST_CASE("a child that is stopped ends with its parent") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    ::close(ends[0]);
    Child child([](ChildOutput& output) {
      output.put(::getpid());
      ::raise(SIGSTOP);
      for (;;) ::pause();
    });
    pid_t stopped = 0;
    child.get(stopped);
    int status = 0;
    ::waitpid(stopped, &status, WUNTRACED);
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(parent, &status, 0) == parent);
  // The child holds the other end of the pipe until it has ended.
  pollfd ended{ends[0], POLLIN, 0};
  CHECK(::poll(&ended, 1, 5000) == 1);
  ::close(ends[0]);
}

TEST_CASE("a child that is stopped does not delay the end of its owner") {
  const auto begin = std::chrono::steady_clock::now();
  {
    Child child([](ChildOutput& output) {
      output.put(1);
      ::raise(SIGSTOP);
    });
    int one = 0;
    child.get(one);
    ::usleep(20'000);
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}
