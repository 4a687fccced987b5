#include "trainer/kernels/route/route.hpp"

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE("an example that fits in the head") {
  // Slots 0 … 5 of tokens with two choices each, and 2 local experts, so that 2 means ghost.
  const Route out = route(at::tensor({1, 2, 0, 1, 2, 0}, at::kLong), 2);
  CHECK(at::equal(out.permutation, at::tensor({2, 5, 0, 3, 1, 4}, at::kLong)));
  CHECK(at::equal(out.position, at::tensor({2, 4, 0, 3, 5, 1}, at::kLong)));
  CHECK(at::equal(out.ends, at::tensor({2, 4}, at::kInt)));
}

TEST_CASE("the permutation is a stable argsort, ends are cumulative counts") {
  at::manual_seed(3);
  for (const std::int64_t experts : {1, 2, 7, 128}) {
    for (const std::int64_t slots : {0, 1, 31, 1000}) {
      const at::Tensor expert = at::randint(experts + 1, {slots}, at::kLong);
      const Route out = route(expert, experts);
      CHECK(
          at::equal(out.permutation, at::argsort(expert, /*stable=*/true, /*dim=*/0, /*descending=*/false)));
      CHECK(at::equal(out.permutation.index_select(0, out.position), at::arange(slots, at::kLong)));
      const at::Tensor counts = at::bincount(expert, {}, experts + 1).narrow(0, 0, experts);
      CHECK(at::equal(out.ends, counts.cumsum(0).to(at::kInt)));
    }
  }
}
