// Tests of units: the factor 8 between bits and bytes, 1000 against 1024, and everything that is refused.
#include "experiments/text/units.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace fomoe::scenario;

TEST_CASE("a small b is a bit, a capital B a byte") {
  CHECK(parse_quantity("1Gbps", Quantity::rate) == 1e9 / 8);
  CHECK(parse_quantity("1 Gb/s", Quantity::rate) == 1e9 / 8);
  CHECK(parse_quantity("1Gbit/s", Quantity::rate) == 1e9 / 8);
  CHECK(parse_quantity("500Mbps", Quantity::rate) == 500e6 / 8);
  CHECK(parse_quantity("1GBps", Quantity::rate) == 1e9);
  CHECK(parse_quantity("1 GB/s", Quantity::rate) == 1e9);
  CHECK(parse_quantity("8bps", Quantity::rate) == 1);
}

TEST_CASE("Ki, Mi, Gi are powers of 1024, k, M, G powers of 1000") {
  CHECK(parse_quantity("1GiBps", Quantity::rate) == 1073741824.0);
  CHECK(parse_quantity("2GiB", Quantity::size) == 2147483648.0);
  CHECK(parse_quantity("2GB", Quantity::size) == 2e9);
  CHECK(parse_quantity("3kB", Quantity::size) == 3000);
  CHECK(parse_quantity("3KiB", Quantity::size) == 3072);
}

TEST_CASE("times are seconds, as exact as the literal") {
  CHECK(parse_quantity("50ms", Quantity::duration) == 0.05);
  CHECK(parse_quantity("420us", Quantity::duration) == 420e-6);
  CHECK(parse_quantity("7 µs", Quantity::duration) == 7e-6);
  CHECK(parse_quantity("3.5h", Quantity::duration) == 12600);
  CHECK(parse_quantity("2min", Quantity::duration) == 120);
  CHECK(parse_quantity("1d", Quantity::duration) == 86400);
  CHECK(parse_quantity("0s", Quantity::duration) == 0);  // whether zero is legal depends on the key
}

TEST_CASE("FLOP rates") {
  CHECK(parse_quantity("989TFLOPS", Quantity::flop_rate) == 989e12);
  CHECK(parse_quantity("1PFLOPS", Quantity::flop_rate) == 1e15);
  CHECK(parse_quantity("1.5 TFLOP/s", Quantity::flop_rate) == 1.5e12);
}

TEST_CASE("a value of another kind is refused with the reason") {
  struct Wrong {
    std::string text;
    Quantity quantity;
    std::string message;
  };
  const std::vector<Wrong> all = {
      {"", Quantity::rate, "\"\" (no number)"},
      {"Gbps", Quantity::rate, "\"Gbps\" (no number)"},
      {"+1Gbps", Quantity::rate, "\"+1Gbps\" (no number)"},
      {"1", Quantity::rate, "\"1\" (no unit)"},
      {"-1Gbps", Quantity::rate, "\"-1Gbps\" (negative)"},
      {"-0s", Quantity::duration, "\"-0s\" (negative)"},
      {"nan s", Quantity::duration, "\"nan s\" (not a finite number)"},
      {"inf s", Quantity::duration, "\"inf s\" (not a finite number)"},
      {"1e999s", Quantity::duration, "\"1e999s\" (a number that is too large or too small)"},
      {"1e300PFLOPS", Quantity::flop_rate, "\"1e300PFLOPS\" (a number that is too large or too small)"},
      {"50ms", Quantity::rate, "\"50ms\" (a time)"},
      {"1Gbps", Quantity::duration, "\"1Gbps\" (a data rate)"},
      {"2GiB", Quantity::rate, "\"2GiB\" (a size)"},
      {"1TFLOPS", Quantity::rate, "\"1TFLOPS\" (a FLOP rate)"},
      {"1 Gbps please", Quantity::rate, "\"1 Gbps please\" (unknown unit Gbps please)"},
      {"1,5s", Quantity::duration, "\"1,5s\" (unknown unit ,5s)"},
      {"0x10s", Quantity::duration, "\"0x10s\" (unknown unit x10s)"},
  };
  for (const Wrong& wrong : all) {
    CAPTURE(wrong.text);
    CHECK_THROWS_WITH_AS(parse_quantity(wrong.text, wrong.quantity), wrong.message.c_str(), QuantityError);
  }
}

TEST_CASE("a unit in the wrong case is refused with all possible readings") {
  try {
    parse_quantity("10gbps", Quantity::rate);
    FAIL("accepted");
  } catch (const QuantityError& error) {
    CHECK(error.suggestion() == "\"10Gbps\" or \"10GBps\"");
  }
}

TEST_CASE("a value beyond what any machine has is refused, and the largest and smallest values are not") {
  struct Edge {
    Quantity quantity;
    const char* accepted;
    const char* refused;
    const char* reason;
  };
  for (const auto& [quantity, accepted, refused, reason] :
       {Edge{Quantity::rate, "1EB/s", "1.1EB/s", "above the largest value, 1EB/s"},
        {Quantity::rate, "1bps", "0.9bps", "below the smallest value, 1bps"},
        {Quantity::duration, "1e11s", "1e9h", "above the largest value, 1e11s"},
        {Quantity::size, "9EB", "9223372036854775808B", "above the largest value, 9EB"},
        {Quantity::flop_rate, "1e6EFLOPS", "1e7EFLOPS", "above the largest value, 1e6EFLOPS"},
        {Quantity::flop_rate, "1FLOPS", "1e-300FLOPS", "below the smallest value, 1FLOPS"},
        {Quantity::power, "1e6MW", "2e6MW", "above the largest value, 1e6MW"}}) {
    CHECK_NOTHROW((void)parse_quantity(accepted, quantity));
    CHECK_THROWS_WITH_AS((void)parse_quantity(refused, quantity),
                         ('"' + std::string(refused) + "\" (" + reason + ')').c_str(), QuantityError);
  }
  CHECK(parse_quantity("0bps", Quantity::rate) == 0);  // a link that is down
}
