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

TEST_CASE("the control characters beyond ASCII are written as numbers too, and other characters stay") {
  CHECK(printable("\xc2\x9b") == "\\x9b");  // CSI, which some terminals obey
  CHECK(printable("\xc2\xa0µ…") == "\xc2\xa0µ…");
  CHECK(printable_answer("{\"a\": \"\x1b\x7f\xc2\x85\"}\n") == "{\"a\": \"\\u001b\\u007f\\u0085\"}\n");
}

TEST_CASE("a message quotes at most 200 characters of an input, and says all that was expected") {
  const std::string expected = "; expected one of " + std::string(1000, 'e') + "; for example a";
  CHECK(printable("s.toml:7: name: got \"" + std::string(50'000'000, 'x') + "\" (no unit)" + expected) ==
        "s.toml:7: name: got \"" + std::string(139, 'x') + "…" + std::string(49, 'x') + "\" (no unit)" +
            expected);
  CHECK(printable("--set a=" + std::string(5000, 'y') + ": a: got 1; expected 2").size() < 500);
  CHECK(
      printable("s.toml:1: a: got 1; expected 2\ns.toml:2: b: got " + std::string(1000, 'z') + "; expected 2")
          .size() < 400);
  const std::string umlauts =
      printable("s: a: got " + std::string(139, 'u') + "ü" + std::string(500, 'u') + "; expected 2");
  CHECK(umlauts == "s: a: got " + std::string(139, 'u') + "…" + std::string(60, 'u') +
                       "; expected 2");  // no half of a character
}
