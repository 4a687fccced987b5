// Tests of the table of routing counts: which row belongs to which layer, expert and site, and what is
// refused.
#include <doctest/doctest.h>

#include <string>

#include "experiments/files/routing_counts_csv.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

costmodel::RoutingCounts read(const std::string& rows, const costmodel::ModelShape& model) {
  const Folder folder;
  write_all(folder / "r.csv", "layer,expert,site,count\n" + rows);
  platforms::Platform platform = platforms::uniform(3, 1e9, 1e9, 0.01);
  platform.sites[1].name = "paris";
  return scenario::read_routing_counts(folder / "r.csv", model, platform);
}

std::string complaint(const std::string& rows, const costmodel::ModelShape& model) {
  try {
    (void)read(rows, model);
  } catch (const FileError& error) {
    const std::string message = error.what();
    return message.substr(message.find("r.csv"));
  }
  return "accepted";
}

costmodel::ModelShape model_of(int layers, int experts) {
  costmodel::ModelShape model = divisible_shape();
  model.layers = layers;
  model.experts = experts;
  return model;
}

}  // namespace

TEST_CASE("routing counts: rows in any order, and combinations without a row count as zero") {
  const costmodel::RoutingCounts counts = read("1,4,paris,7\n0,0,site-0,1000000000000\n", model_of(2, 5));
  for (int layer = 0; layer < 2; ++layer)
    for (int expert = 0; expert < 5; ++expert)
      for (int site = 0; site < 3; ++site) {
        const std::int64_t expected = layer == 1 && expert == 4 && site == 1   ? 7
                                      : layer == 0 && expert == 0 && site == 0 ? 1'000'000'000'000
                                                                               : 0;
        CHECK(counts.at(layer, expert, site) == expected);
      }
  CHECK(counts.source.ends_with("r.csv"));
}

TEST_CASE("routing counts: layers count from the first one of the model, whose first layers may be dense") {
  costmodel::ModelShape model = model_of(4, 5);
  model.dense_layers = 1;
  CHECK(read("3,2,paris,9\n", model).at(2, 2, 1) == 9);
  CHECK(complaint("0,2,paris,9\n", model) ==
        "r.csv:2: layer: got \"0\"; expected a whole number from 1 to 3; for example 1");
}

TEST_CASE("routing counts: what is refused, and where") {
  const costmodel::ModelShape model = model_of(2, 5);
  CHECK(complaint("2,0,paris,1\n", model) ==
        "r.csv:2: layer: got \"2\"; expected a whole number from 0 to 1; for example 0");
  CHECK(complaint("0,0,paris,1\n0,5,paris,1\n", model) ==
        "r.csv:3: expert: got \"5\"; expected a whole number from 0 to 4; for example 0");
  CHECK(
      complaint("0,0,pari,1\n", model) ==
      "r.csv:2: site: got \"pari\"; expected one of site-0, paris, site-2; for example site-0; did you mean "
      "paris?");
  for (const char* count : {"-1", "1000000000001", "1.5", "", "7x", "99999999999999999999"}) {
    CAPTURE(count);
    CHECK(complaint("0,0,paris," + std::string(count) + "\n", model) ==
          "r.csv:2: count: got \"" + std::string(count) +
              "\"; expected a whole number from 0 to 1000000000000; for example 0");
  }
  CHECK(complaint("0,0,paris,1\n0,0,paris,1\n", model) ==
        "r.csv:3: layer,expert,site: got a duplicate combination; expected each combination once; for "
        "example 0,0,site-0,1200");
}
