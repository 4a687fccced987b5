// Tests the figures of the routers against values by hand.
#include "trainer/run/router_figures.hpp"

#include <cmath>

// after LibTorch's headers, see there
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

TEST_CASE("entropy, load and ghosts of routers by hand") {
  Routing routing;
  routing.counts = {at::tensor({6, 2, 0, 0}, at::kLong), at::tensor({5, 5, 5, 5}, at::kLong)};
  ExpertChoice held;
  held.skip_token = true;
  held.local = {{0, 3}, {1, 2, 3}};
  const std::vector<RouterFigures> layers = router_figures(routing, held);
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].entropy == doctest::Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
  CHECK(layers[0].load_cv == doctest::Approx(std::sqrt((16 + 0 + 4 + 4) / 4.0) / 2));
  CHECK(layers[0].ghost_share == doctest::Approx(0.25));  // expert 1
  CHECK(layers[1].entropy == doctest::Approx(std::log(4)));
  CHECK(layers[1].load_cv == 0);
  CHECK(layers[1].ghost_share == doctest::Approx(0.25));  // expert 0
  held.skip_token = false;                                // the router scores only the experts at hand
  CHECK(router_figures(routing, held)[0].ghost_share == 0);
}
