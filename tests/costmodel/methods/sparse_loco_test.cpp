// Tests of SparseLoCo: every site sends 64 of each 4096 values, at 2 + 12 bits, to every other site.
#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("sparse_loco: (M−1)·S·64/4096·(2 + 12)/8 bytes per round, which grow with M, unlike a ring's") {
  double at_two_sites = 0;
  for (const int sites : {2, 4, 8}) {
    const Scenario scenario = tests::every_axis_scenario("sparse_loco", sites);
    const auto elements = static_cast<double>(count_parameters(scenario.model).total());
    const double sent = tests::sent_in_round(tests::plan_of(scenario), sites, 0).total();
    CHECK(sent == doctest::Approx((sites - 1) * elements * 64 / 4096 * 14 / 8).epsilon(1e-14));
    if (sites == 2) at_two_sites = sent;
    CHECK(sent == doctest::Approx((sites - 1) * at_two_sites).epsilon(1e-12));
  }
}

TEST_CASE(
    "diloco with top-k sends the same bytes as sparse_loco, since sparse payloads do not add up in a ring") {
  Scenario sparse = tests::every_axis_scenario("sparse_loco", 4),
           diloco = tests::every_axis_scenario("diloco", 4);
  diloco.strategy.wire = sparse.strategy.wire;
  CHECK(summarise(diloco).sent.total() == summarise(sparse).sent.total());
  CHECK(tests::sent_in_round(tests::plan_of(diloco), 4, 0).total() ==
        tests::sent_in_round(tests::plan_of(sparse), 4, 0).total());
}

TEST_CASE("number formats: bytes of 4096 values by hand") {
  CHECK(plain_format(ElementType::fp32).bytes(4096) == 4 * 4096);
  CHECK(plain_format(ElementType::bf16).bytes(4096) == 2 * 4096);
  CHECK(plain_format(ElementType::int8).bytes(4096) ==
        4096 + 16 * 4);  // 16 blocks of 256, with one fp32 scale each
  CHECK(plain_format(ElementType::int4).bytes(4096) == 4096 / 2 + 16 * 4);
  CHECK(plain_format(ElementType::int2).bytes(4096) == 4096 / 4 + 16 * 4);
  CHECK(plain_format(ElementType::int4).bytes(257) == 129 + 2 * 4);  // ⌈257/2⌉, and the scales of two blocks
  CHECK(top_k_format(ElementType::int2, 64.0 / 4096, 12).bytes(4096) == 64 * 14 / 8);
  CHECK(top_k_format(ElementType::bf16, 0.1, 32).bytes(4096) == (410 * 48 + 7) / 8);  // ⌈409.6⌉ values
}

TEST_CASE("where all values are kept, nothing is sent about their positions") {
  WireFormat format = plain_format(ElementType::bf16);
  format.index_bits = 12;
  CHECK(format.bytes(4096) == 2 * 4096);
  CHECK(format.bytes_per_element() == 2);
  format.entropy_coded = true;
  CHECK(format.bytes(4096) == 2 * 4096);
  CHECK(top_k_format(ElementType::int8, 1, 12) == plain_format(ElementType::int8));  // with its scales
}

TEST_CASE("entropy-coded positions: the entropy of keeping 64 of 4096, 7.43 bits instead of 12") {
  WireFormat format = top_k_format(ElementType::int2, 64.0 / 4096, 12);
  CHECK(format.bytes_per_element() == doctest::Approx((2 + 12) / 64.0 / 8));
  format.entropy_coded = true;
  // H(1/64)·64 = 6 + 63·log2(64/63)
  const double bits = 6 + 63 * std::log2(64.0 / 63);
  CHECK(bits == doctest::Approx(7.43).epsilon(1e-3));
  CHECK(format.bytes_per_element() == doctest::Approx((2 + bits) / 64 / 8).epsilon(1e-12));
  CHECK(static_cast<double>(format.bytes(4096 * 1000)) ==
        doctest::Approx(64000 * (2 + bits) / 8).epsilon(1e-5));
}
