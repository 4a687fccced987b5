#include "platforms/support/parse_number.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

using fomoe::parse_leading_number;
using fomoe::parse_number;

TEST_CASE("a number is the whole text") {
  CHECK(parse_number<int>("42") == 42);
  CHECK(parse_number<int>("-7") == -7);
  CHECK(parse_number<double>("2.5e-3") == 2.5e-3);
  for (const char* text : {"", " ", " 42", "42 ", "+42", "42x", "x42", "4 2", "4.2", "4e2", "0x10", "-"}) {
    CAPTURE(text);
    CHECK(!parse_number<int>(text));
  }
  for (const char* text : {"", " 1", "1 ", "+1", "1.5s", "1,5", "1e", "--1", "0x10"}) {
    CAPTURE(text);
    CHECK(!parse_number<double>(text));
  }
}

TEST_CASE("a number fits its type") {
  CHECK(parse_number<std::uint16_t>("65535") == 65535);
  CHECK(!parse_number<std::uint16_t>("65536"));
  CHECK(!parse_number<std::uint16_t>("-1"));
  CHECK(parse_number<std::int64_t>("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(!parse_number<std::int64_t>("9223372036854775808"));
  CHECK(!parse_number<double>("1e999"));
  CHECK(std::isinf(parse_number<double>("inf").value()));
  CHECK(std::isnan(parse_number<double>("nan").value()));
}

TEST_CASE("a number at the start of a text may be followed by anything") {
  CHECK(parse_leading_number<long>("12: a message") == 12);
  CHECK(parse_leading_number<std::int64_t>("16 GPUs") == 16);
  CHECK(parse_leading_number<double>("5x") == 5);
  CHECK(!parse_leading_number<long>(": a message"));
  CHECK(!parse_leading_number<long>(" 12"));
  CHECK(!parse_leading_number<std::int64_t>("99999999999999999999 GPUs"));
}
