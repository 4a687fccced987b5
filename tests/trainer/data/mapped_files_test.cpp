// Tests that a process which reads a file that somebody made shorter ends with the file's name.
#include "trainer/data/mapped_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/trainer/data/token_files.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

constexpr std::size_t kBytes = 1 << 16;

const char* mapped(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* begin = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  name_if_it_shrinks(begin, kBytes, path);
  return static_cast<const char*>(begin);
}

struct Ended {
  int status = 0;  // as waitpid() gives it
  std::string said;
};

/// Runs `body` in a process of its own.
template <class Body>
Ended in_child(const Body& body) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(20);
    ::dup2(ends[1], STDERR_FILENO);
    body();
    ::_exit(7);
  }
  ::close(ends[1]);
  Ended ended;
  std::array<char, 512> part{};
  for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;)
    ended.said.append(part.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  ::waitpid(child, &ended.status, 0);
  return ended;
}

}  // namespace

TEST_CASE(
    "of several mapped files the one that shrinks is named; without its mapping the fault ends the process") {
  TokenFolder folder;
  const std::array<std::string, 3> paths = {folder.write("a", std::string(kBytes, 'a')),
                                            folder.write("b", std::string(kBytes, 'b')),
                                            folder.write("c", std::string(kBytes, 'c'))};
  for (std::size_t shrunk = 0; shrunk < paths.size(); ++shrunk) {
    CAPTURE(shrunk);
    const Ended ended = in_child([&] {
      std::array<const char*, 3> begin{};
      for (std::size_t i = 0; i < paths.size(); ++i) begin[i] = mapped(paths[i]);
      if (::truncate(paths[shrunk].c_str(), 0) != 0) ::_exit(8);
      // All other files can still be read.
      for (std::size_t i = 0; i < paths.size(); ++i)
        if (i != shrunk && begin[i][kBytes - 1] != static_cast<char>('a' + i)) ::_exit(9);
      const volatile char last = begin[shrunk][kBytes - 1];
      (void)last;
    });
    CHECK(WIFEXITED(ended.status));
    CHECK(WEXITSTATUS(ended.status) == 1);
    CHECK(ended.said ==
          "fomoe-train: " + paths[shrunk] +
              ": got fewer bytes than when the run began; expected a file that stays as it is\n");
    (void)folder.write(std::string(1, static_cast<char>('a' + shrunk)),
                       std::string(kBytes, static_cast<char>('a' + shrunk)));
  }
  const Ended forgotten = in_child([&] {
    const char* begin = mapped(paths[0]);
    forget_mapping(begin);
    if (::truncate(paths[0].c_str(), 0) != 0) ::_exit(8);
    const volatile char last = begin[kBytes - 1];
    (void)last;
  });
  CHECK(WIFSIGNALED(forgotten.status));
  CHECK(WTERMSIG(forgotten.status) == SIGBUS);
  CHECK(forgotten.said.empty());
}
