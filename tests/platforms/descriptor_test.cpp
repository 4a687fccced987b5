#include "platforms/support/descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

using fomoe::Descriptor;

namespace {

int opened() {
  const int value = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(value >= 0);
  return value;
}

bool is_open(int value) { return ::fcntl(value, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("a descriptor is closed with its owner, or earlier") {
  const int first = opened(), second = opened();
  {
    const Descriptor owner(first);
    Descriptor early(second);
    CHECK(owner.get() == first);
    early.reset();
    CHECK(early.get() == -1);
    CHECK(!is_open(second));
    CHECK(is_open(first));
  }
  CHECK(!is_open(first));
}

TEST_CASE("a descriptor that has moved is closed once, and the one in its place at once") {
  const int first = opened(), second = opened();
  Descriptor from(first), to(second);
  to = std::move(from);
  CHECK(!is_open(second));
  CHECK(is_open(first));
  CHECK(to.get() == first);
  Descriptor last(std::move(to));
  CHECK(last.get() == first);
  Descriptor& itself = last;
  last = std::move(itself);
  CHECK(is_open(first));
  const int given = last.release();
  CHECK(given == first);
  CHECK(last.get() == -1);
  Descriptor(given).reset();
  CHECK(!is_open(first));
}
