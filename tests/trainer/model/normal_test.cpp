// Tests the values from which initial weights are made: their distribution, and that they are the same
// whatever the layout and the number of threads.
#include "trainer/model/normal.hpp"

#include <ATen/Parallel.h>

#include <cmath>

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

double normal_probability(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

at::Tensor filled(at::Tensor values, std::uint64_t seed = 7) {
  fill_normal(values, 1, seed);
  return values;
}

}  // namespace

TEST_CASE("the quantile inverts the normal distribution, in its centre and far in its tails") {
  for (const double p : {1e-15, 1e-9, 3e-5, 0.01, 0.074, 0.076, 0.3, 0.4999, 0.5}) {
    CAPTURE(p);
    CHECK(normal_probability(normal_quantile(p)) == doctest::Approx(p).epsilon(3e-5));
    if (p > 1e-9) CHECK(normal_quantile(1 - p) == doctest::Approx(-normal_quantile(p)).epsilon(1e-6));
  }
  CHECK(normal_quantile(0.975) == doctest::Approx(1.959963985).epsilon(1e-6));
}

TEST_CASE("initial values have the moments of a normal distribution") {
  const at::Tensor values = filled(at::empty({1'000'000}, at::kDouble));
  const auto moment = [&](int power) { return values.pow(power).mean().item<double>(); };
  // Standard errors of these means: 0.001, √2/1000, √15/1000 and √96/1000.
  CHECK(std::abs(moment(1)) < 0.004);
  CHECK(std::abs(moment(2) - 1) < 0.006);
  CHECK(std::abs(moment(3)) < 0.016);
  CHECK(std::abs(moment(4) - 3) < 0.04);
  // Neighbours are independent, and so are the values of neighbouring seeds.
  const at::Tensor next = filled(at::empty({1'000'000}, at::kDouble), 8);
  CHECK(std::abs((values.narrow(0, 0, 999'999) * values.narrow(0, 1, 999'999)).mean().item<double>()) <
        0.004);
  CHECK(std::abs((values * next).mean().item<double>()) < 0.004);
}

TEST_CASE("initial values do not depend on layout, dtype or threads") {
  const at::Tensor values = filled(at::empty({300, 70}, at::kDouble));
  CHECK(at::equal(values, filled(at::empty({70, 300}, at::kDouble).t())));
  CHECK(at::equal(values.to(at::kFloat), filled(at::empty({300, 70}, at::kFloat))));
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  CHECK(at::equal(values, filled(at::empty({300, 70}, at::kDouble))));
  at::set_num_threads(threads);
  CHECK(values[0][0].item<double>() == doctest::Approx(-0.279762796).epsilon(1e-6));
}
