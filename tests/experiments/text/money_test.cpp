// Tests of amounts of money and of times as people read them.
#include <doctest/doctest.h>

#include "experiments/text/human.hpp"

using fomoe::commands::human_money;
using fomoe::commands::human_time;

TEST_CASE("money: two decimals below 1000, and whole numbers in groups of three digits from there on") {
  CHECK(human_money(0, "USD") == "0.00 USD");
  CHECK(human_money(-12.345, "") == "-12.35");
  CHECK(human_money(999.99, "USD") == "999.99 USD");
  CHECK(human_money(999.996, "USD") == "1,000 USD");
  CHECK(human_money(-1234.5678, "EUR") == "-1,235 EUR");
  CHECK(human_money(136923.57, "USD") == "136,924 USD");
  CHECK(human_money(1234567.8, "") == "1,234,568");
}

TEST_CASE("times: the unit is that of the rounded time") {
  CHECK(human_time(3599.4) == "59 min 59 s");
  CHECK(human_time(3599.6) == "1 h 0 min");
  CHECK(human_time(2 * 86400 - 31) == "47 h 59 min");
  CHECK(human_time(2 * 86400 - 29) == "2 d 0 h");
}
