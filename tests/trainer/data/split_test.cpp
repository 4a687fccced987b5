// Tests which sites train on which sequences.
#include <algorithm>
#include <map>
#include <set>

#include "tests/trainer/data/token_files.hpp"
#include "tests/trainer/run/mailbox.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/data/deal.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

using Counts = std::map<std::int64_t, int>;  // first id of a sequence: how often it was trained on

/// The sequences of one site in some steps. `part` is its place among the sites.
Counts trained(Batches& batches, const std::vector<std::int64_t>& parts, std::size_t part, std::int64_t begin,
               std::int64_t end) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < part; ++i) first += parts[i];
  Counts counts;
  for (std::int64_t step = begin; step < end; ++step) {
    const Batch batch = batches.of_step(step, first, parts[part]);
    for (std::int64_t i = 0; i < parts[part]; ++i) ++counts[batch.tokens[i][0].item<std::int64_t>()];
  }
  return counts;
}

bool all_once(const Counts& counts) {
  return std::all_of(counts.begin(), counts.end(), [](const auto& one) { return one.second == 1; });
}

std::string error_of(const Corpus& corpus, const SiteData& sites, std::int64_t validation = 0) {
  try {
    const Batches batches(corpus, 8, 8, validation, 42, sites);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("dealing: in turn up to a limit, and by size to the site that has least") {
  CHECK(deal_evenly({5, 1, 5}, 7) == std::vector<std::int64_t>{3, 1, 3});
  CHECK(deal_evenly({5, 1, 5}, 2) == std::vector<std::int64_t>{1, 1, 0});
  CHECK(deal_evenly({2, 1}, 9) == std::vector<std::int64_t>{2, 1});
  // 50 to site 0, 40 to site 1, 20 to site 1 (60), 15 to site 0 (65), 5 to site 1.
  CHECK(deal_by_size({20, 50, 5, 40, 15}, 2) == std::vector<std::size_t>{1, 0, 1, 1, 0});
  CHECK(deal_by_size({7, 7, 7}, 3) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("shared: the global batch does not depend on the number of sites") {
  TokenFolder folder;
  folder.write("a/0.bin", counting(0, 30 * 8 + 1));
  folder.write("b/0.bin", counting(300, 10 * 8 + 1));
  const Corpus corpus = Corpus::open(folder.path(), 600);
  Batches two(corpus, 8, 8, 4, 42, {DataSplit::shared, {4, 4}}),
      four(corpus, 8, 8, 4, 42, {DataSplit::shared, {2, 2, 2, 2}}), none(corpus, 8, 8, 4, 42);
  for (const std::int64_t step : {0, 4, 5, 77}) {
    const at::Tensor expected = none.of_step(step, 0, 8).tokens;
    CHECK(at::equal(at::cat({two.of_step(step, 0, 4).tokens, two.of_step(step, 4, 4).tokens}), expected));
    CHECK(at::equal(at::cat({four.of_step(step, 0, 2).tokens, four.of_step(step, 2, 4).tokens,
                             four.of_step(step, 6, 2).tokens}),
                    expected));
  }
}

TEST_CASE("iid: random subsets that have no sequence in common and leave out none") {
  TokenFolder folder;
  const std::string path = folder.write("a.bin", counting(0, 44 * 8 + 1));
  const Corpus corpus = Corpus::open(path, 600);
  const std::vector<std::int64_t> parts = {2, 0, 4, 2};  // the second is a server
  const SiteData sites = {DataSplit::iid, parts};
  Batches batches(corpus, 8, 8, /*validation_sequences=*/4, 42, sites);
  // 40 sequences, in proportion to the parts of the batch: each site passes over its own once in 5 steps.
  std::map<std::int64_t, std::size_t> site_of;
  for (const std::size_t site : {0, 2, 3}) {
    const Counts pass = trained(batches, parts, site, 0, 5);
    CHECK(pass.size() == static_cast<std::size_t>(5 * parts[site]));
    CHECK(all_once(pass));
    for (const auto& [first, count] : pass) CHECK(site_of.try_emplace(first, site).second);
    CHECK(trained(batches, parts, site, 5, 10) == pass);  // the next pass, of the same sequences
    CHECK(!at::equal(batches.of_step(0, site == 0 ? 0 : 2 * static_cast<std::int64_t>(site) - 2, 2).tokens,
                     batches.of_step(5, site == 0 ? 0 : 2 * static_cast<std::int64_t>(site) - 2, 2).tokens));
  }
  CHECK(site_of.size() == 40);
  CHECK(site_of.rbegin()->first == 39 * 8);  // no validation sequence
  // Every process computes the same, in whatever order it asks.
  Batches again(Corpus::open(path, 600), 8, 8, 4, 42, sites);
  CHECK(at::equal(again.of_step(7, 6, 2).tokens, batches.of_step(7, 6, 2).tokens));
  CHECK(at::equal(again.of_step(1, 0, 8).tokens, batches.of_step(1, 0, 8).tokens));
  // Another seed, other subsets.
  Batches other(corpus, 8, 8, 4, 43, sites);
  CHECK(trained(other, parts, 0, 0, 5) != trained(batches, parts, 0, 0, 5));
  CHECK(error_of(corpus, {DataSplit::iid, {2, 4, 2}}, 43) ==
        "trainer.data: got no training sequence of 8 tokens for site 1 of 3; expected at least one for each "
        "site; for example --set trainer.data_split=shared, or fewer trainer.validation_sequences");
}

TEST_CASE("domain: each domain belongs to one site, and a site with less data passes over it more often") {
  TokenFolder folder;
  folder.write("c/0.bin", counting(0, 10 * 8 + 1));
  folder.write("c/1.bin", counting(100, 10 * 8 + 1));
  folder.write("d/0.bin", counting(200, 6 * 8 + 1));
  folder.write("a/0.bin", counting(300, 6 * 8 + 1));
  const Corpus corpus = Corpus::open(folder.path(), 600);
  const std::vector<std::int64_t> parts = {4, 4};
  Batches batches(corpus, 8, 8, 0, 42, {DataSplit::domain, parts});
  // The largest domain, c, goes to the first site; a and d to the second.
  const Counts first = trained(batches, parts, 0, 0, 15), second = trained(batches, parts, 1, 0, 15);
  CHECK(first.size() == 20);
  CHECK(second.size() == 12);
  for (const auto& [begin, count] : first) {
    CHECK(begin < 200);
    CHECK(count == 3);  // 60 sequences: three passes over 20
  }
  for (const auto& [begin, count] : second) {
    CHECK(begin >= 200);
    CHECK(count == 5);
  }
  // Validation has as much of every domain, for all sites.
  const Batches validated(corpus, 8, 8, 6, 42, {DataSplit::domain, parts});
  const at::Tensor begins = validated.validation(0, 6).tokens.select(1, 0);
  CHECK(at::equal(begins, at::tensor({332, 340, 72, 172, 232, 240}, at::kLong)));

  CHECK(
      error_of(corpus, {DataSplit::domain, {2, 2, 2, 2}}) ==
      "trainer.data_split: got \"domain\" with 3 domains for 4 sites; expected a sub-folder of trainer.data "
      "for each site; for example --set trainer.data_split=iid");
  CHECK(error_of(corpus, {DataSplit::domain, {2, 2, 2, 0}}) == "no error");  // the fourth is a server
  folder.write("tiny/0.bin", counting(400, 8));  // no sequence, since it lacks the last target
  CHECK(error_of(Corpus::open(folder.path(), 600), {DataSplit::domain, {2, 2, 2, 2}})
            .find("got no training sequence of 8 tokens for site 4 of 4") != std::string::npos);
}

TEST_CASE("training with domains: one process for each site gives the bits of one process for all") {
  const fomoe::costmodel::Scenario scenario = training_scenario("diloco", 2);
  TokenFolder folder;
  std::vector<std::uint16_t> text(1'000);
  for (const std::string domain : {"a", "b", "c"}) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<std::uint16_t>((i * i + static_cast<std::size_t>(domain[0])) %
                                           static_cast<std::size_t>(scenario.model.vocabulary));
    }
    folder.write(domain + "/0.bin", bytes_of(text));
  }
  // Each process opens the folder for itself.
  const auto batches = [&](DataSplit split) {
    return Batches(Corpus::open(folder.path(), scenario.model.vocabulary), scenario.model.sequence_length,
                   scenario.workload.global_batch_sequences, /*validation_sequences=*/6, scenario.seed,
                   {split, {4, 4}});
  };
  const auto in_turn = [&](DataSplit split) {
    auto training = std::make_unique<Training>(scenario, real_options());
    training->batches = batches(split);
    training->run();
    training->executor.finish();
    return training;
  };
  const auto by_domain = in_turn(DataSplit::domain), by_chance = in_turn(DataSplit::iid);
  Mailbox mailbox;
  const Sites sites = sites_of(scenario, real_options(), mailbox);
  for (const auto& site : sites) site->batches = batches(DataSplit::domain);
  run(sites);
  for (const auto& site : sites) {
    CHECK(at::equal(site->weights(), by_domain->weights(site->node)));
    CHECK(!at::equal(site->weights(), by_chance->weights(site->node)));
  }
}
