// Tests when a recovery from losses begins and ends.
#include "sim/tcp/recovery.hpp"

#include <doctest/doctest.h>

using fomoe::sim::Recovery;

TEST_CASE("a recovery lasts until the repeated bytes have arrived") {
  Recovery recovery;
  CHECK_FALSE(recovery.lost(0, false, 10, 100));
  CHECK(recovery.lost(5, false, 20, 100));  // of the first 20 bytes; 100 have been sent
  CHECK(recovery.active());
  CHECK(recovery.sends(8));  // the five bytes again, and three new ones
  CHECK_FALSE(recovery.sends(8));
  CHECK_FALSE(recovery.ends(104));
  CHECK(recovery.ends(105));
  CHECK_FALSE(recovery.active());
  CHECK_FALSE(recovery.next(105, 116));
}

TEST_CASE("further losses of the same window, and of repeated bytes, prolong the recovery") {
  Recovery recovery;
  CHECK(recovery.lost(5, false, 20, 100));
  CHECK(recovery.sends(5));
  CHECK_FALSE(recovery.lost(7, false, 60, 105));  // sent before the recovery
  CHECK_FALSE(recovery.ends(105));
  CHECK(recovery.sends(7));
  CHECK_FALSE(recovery.lost(4, true, 112, 112));  // sent again, and lost again
  CHECK_FALSE(recovery.ends(112));
  CHECK(recovery.sends(4));
  CHECK(recovery.ends(116));
  CHECK_FALSE(recovery.next(116, 116));
}

TEST_CASE(
    "losses of bytes that were sent first during a recovery begin the next one, if they are not repaired by "
    "then") {
  for (const bool repaired : {false, true}) {
    Recovery recovery;
    CHECK(recovery.lost(5, false, 20, 100));
    CHECK(recovery.sends(5));
    CHECK_FALSE(recovery.sends(20));
    CHECK_FALSE(recovery.lost(3, false, 103, 125));
    CHECK(recovery.sends(3));
    const double accounted = repaired ? 128 : 105;
    CHECK(recovery.ends(accounted));
    CHECK(recovery.next(accounted, 128) == !repaired);
    CHECK(recovery.active() == !repaired);
  }
}
