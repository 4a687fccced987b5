// Tests the queue of a link by hand.
#include "sim/tcp/link_queue.hpp"

#include <doctest/doctest.h>

using fomoe::sim::LinkQueue;

TEST_CASE("a queue: bytes leave in the order in which they came, and acknowledgements wait among them") {
  LinkQueue link(1000);
  CHECK(link.pass(0, 500) == 0.5);
  CHECK(link.pass(0.1, 0) == 0.5);  // behind the 500 bytes, and takes no time itself
  CHECK(link.pass(0.2, 300) == 0.8);
  CHECK(link.pass(2, 100) == doctest::Approx(2.1));  // the link was idle
}

TEST_CASE("a queue: what finds no room is lost") {
  LinkQueue link(1000, 600);
  CHECK(link.too_many(0, 600) == 0);
  CHECK(link.too_many(0, 700) == 100);
  link.pass(0, 600);
  CHECK(link.too_many(0.25, 400) == 150);  // 350 bytes still wait
  CHECK(link.too_many(0, 100) == 100);
  CHECK(link.too_many(1, 600) == 0);
}

TEST_CASE("a queue: what waits leaves at the new rate, and nothing leaves while the link is down") {
  LinkQueue link(1000);
  link.pass(0, 1000);
  link.set_rate(0.5, 250);            // 500 bytes wait
  CHECK(link.pass(0.5, 250) == 3.5);  // 2 s for them, and 1 s
  link.set_rate(3.5, 0);
  CHECK(link.down());
  link.set_rate(10, 1000);
  CHECK_FALSE(link.down());
  CHECK(link.pass(10, 1000) == 11);
}
