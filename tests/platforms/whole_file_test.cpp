// Tests that a file that cannot be read to its end is refused, and that nothing waits for ever for one.
#include "platforms/support/whole_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "platforms/support/descriptor.hpp"
#include "platforms/support/input_error.hpp"

using fomoe::Descriptor;
using fomoe::FileError;
using fomoe::whole_file;

TEST_CASE("a read error in the middle is not the end of the file") {
  // The owner's side of a terminal gives EIO after the last byte, once the other side is closed.
  const Descriptor owner(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(owner.get() >= 0);
  REQUIRE(::grantpt(owner.get()) == 0);
  REQUIRE(::unlockpt(owner.get()) == 0);
  {
    const Descriptor other(::open(::ptsname(owner.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios settings{};
    REQUIRE(::tcgetattr(other.get(), &settings) == 0);
    ::cfmakeraw(&settings);
    REQUIRE(::tcsetattr(other.get(), TCSANOW, &settings) == 0);
    REQUIRE(::write(other.get(), "a = 1\n", 6) == 6);
  }
  CHECK_THROWS_WITH_AS(
      fomoe::read_to_end(owner.get(), "s.toml"),
      "s.toml:1: file: got an error after 6 bytes were read (Input/output error); expected a "
      "file that can be read to its end; for example a copy of it on another disk",
      FileError);
  CHECK_THROWS_AS(whole_file("/proc/self/mem"), FileError);  // a regular file of no size; EIO at once
}

TEST_CASE("only regular files are read by their names, but for pipes that the process was started with") {
  char folder[] = "/tmp/fomoe-test-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string pipe = std::string(folder) + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(
      whole_file(pipe),
      (pipe + ":1: file: got a pipe; expected a regular file; for example a copy of its content "
              "in a file")
          .c_str(),
      FileError);
  std::filesystem::remove_all(folder);
  CHECK_THROWS_AS(whole_file("/dev/zero"), FileError);
  CHECK_FALSE(whole_file(folder));
  CHECK_FALSE(whole_file("/"));
  CHECK(whole_file("/proc/self/cgroup").value() != "");  // regular, although its size is 0

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  REQUIRE(::write(writer.get(), "text", 4) == 4);
  writer.reset();
  const std::string given = "/dev/fd/" + std::to_string(reader.get());
  CHECK(whole_file(given) == "text");
  CHECK(whole_file(given) == "text");  // although a pipe can be read only once
}
