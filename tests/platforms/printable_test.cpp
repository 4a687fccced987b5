// Tests that messages cannot control a terminal.
#include "platforms/support/printable.hpp"

#include <doctest/doctest.h>

#include "platforms/support/input_error.hpp"

using namespace fomoe;

TEST_CASE("control characters in messages are written as numbers") {
  CHECK(printable("a\tb\n\xc3\xa9 \\") == "a\tb\n\xc3\xa9 \\");
  CHECK(printable(std::string("\x1b[2J\0\x7f\r", 7)) == "\\x1b[2J\\x00\\x7f\\x0d");
  const std::string hostile("x\x1b\0y", 4), shown = "x\\x1b\\x00y";
  CHECK(FileError(hostile).what() == shown);
  CHECK(UsageError(hostile).what() == shown);
  CHECK(InputError("key", hostile).what() == shown);
  CHECK(InputError("key", hostile, "z", "z").what() == "key: got " + shown + "; expected z; for example z");
}
