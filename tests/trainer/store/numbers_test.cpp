// Tests what the store answers if somebody who knows the secret adds to something that is no number, or too
// much to one.
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "tests/trainer/support.hpp"
#include "trainer/store/store_contents.hpp"

using namespace fomoe::trainer;
using Kind = StoreRequest::Kind;

TEST_CASE("the store adds whole numbers of 64 bits, and refuses everything else") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  StoreContents contents;
  CHECK(contents.answer({Kind::add, {"new"}, -5}).number == -5);
  contents.answer({Kind::set, {"n", std::to_string(kMost - 1)}});
  CHECK(contents.answer({Kind::add, {"n"}, 1}).number == kMost);
  CHECK_THROWS_AS(contents.answer({Kind::add, {"n"}, 1}), std::invalid_argument);
  CHECK(contents.answer({Kind::get, {"n"}}).value == std::to_string(kMost));
  for (const char* text :
       {"9223372036854775808", "-9223372036854775809", "7 apples", "one", " 7", "+7", "1e3"}) {
    CAPTURE(text);
    contents.answer({Kind::set, {"n", text}});
    CHECK_THROWS_AS(contents.answer({Kind::add, {"n"}, 0}), std::invalid_argument);
  }
}
