// Tests what a terminal shows while a simulation runs. A pseudo-terminal stands in for stderr.
#include "experiments/cli/progress.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>

using namespace fomoe;

namespace {

/// Takes the place of stderr until it is destroyed.
class Stderr {
 public:
  explicit Stderr(int descriptor) : before_(::dup(STDERR_FILENO)) {
    std::fflush(stderr);
    ::dup2(descriptor, STDERR_FILENO);
  }
  ~Stderr() {
    std::fflush(stderr);
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  Stderr(const Stderr&) = delete;
  Stderr& operator=(const Stderr&) = delete;

 private:
  int before_;
};

/// What has been written since the last call.
std::string read_all(int descriptor) {
  char text[1000];
  const ssize_t size = ::read(descriptor, text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

const sim::SimulationProgress kSecondOfThree{200, 1, 3};

}  // namespace

TEST_CASE("a terminal shows how far a simulation is after two seconds, and nothing when it has ended") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const int end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  std::string early, late, ended, next, gone;
  {
    const Stderr stderr_of(end);
    auto show = commands::show_simulation();
    show(kSecondOfThree);
    early = read_all(terminal);
    ::usleep(2'100'000);
    show(kSecondOfThree);
    late = read_all(terminal);
    show({.ended = true});
    ended = read_all(terminal);
    ::usleep(300'000);
    show(kSecondOfThree);  // of the next simulation, which fails
    next = read_all(terminal);
    show = nullptr;
    gone = read_all(terminal);
  }
  CHECK(early.empty());
  CHECK(late == "\r\033[Ksimulating round 2 of 3, at 3 min 20 s");
  CHECK(ended == "\r\033[K");
  CHECK(next == late);
  CHECK(gone == ended);
  ::close(end);
  ::close(terminal);
}

TEST_CASE("a file shows nothing of the progress of a simulation") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    const Stderr stderr_of(::fileno(file));
    const auto show = commands::show_simulation();
    ::usleep(2'100'000);
    show(kSecondOfThree);
  }
  CHECK(::lseek(::fileno(file), 0, SEEK_END) == 0);
  std::fclose(file);
}
