// Tests concurrency: transfers that do not depend on each other run at the same time, and steps run beside
// transfers. The mailbox holds messages back until the concurrent work has happened. The result equals that
// of sites in turn.
#include "tests/trainer/run/mailbox.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE(
    "the dense part and the experts are under way at the same time, with the bits of one after another") {
  for (const auto placement : {costmodel::PlacementKind::fixed, costmodel::PlacementKind::random}) {
    costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
    scenario.strategy.placement = placement;
    Mailbox mailbox;
    // The transfers of a round are the dense part, the experts and, with random placement, the migration of
    // experts. No site receives anything of the first two before it has sent something of both.
    const int transfers = placement == costmodel::PlacementKind::random ? 3 : 2;
    mailbox.opens = [&](int site, int channel) {
      const int of_round = channel % transfers;
      return of_round == 2 || mailbox.posted(site, channel + (of_round == 0 ? 1 : -1));
    };
    const Sites sites = sites_of(scenario, real_options(), mailbox);
    run(sites);
    check_as_in_turn(sites, scenario);
  }
}

TEST_CASE("fragments move while steps go on, and the record says what of a transfer was exposed") {
  costmodel::Scenario scenario = training_scenario("streaming_diloco", 2);  // 3 rounds of 4 steps
  scenario.strategy.fragments = 2;
  scenario.strategy.overlap_steps = 2;
  constexpr std::int64_t kOverlap = 2, kSteps = 12;
  Mailbox mailbox;
  std::map<int, std::int64_t> steps;  // by site
  // Fragments are sent after steps 2, 4, 6 …, one after the other. Nothing of a fragment arrives before the
  // site has made the steps that may hide its transfer.
  mailbox.opens = [&](int site, int channel) {
    const std::int64_t sent_at = 2 * (channel + 1);
    return steps[site] >= std::min(sent_at + kOverlap, kSteps);
  };
  const Sites sites = sites_of(scenario, real_options(), mailbox);
  std::map<int, std::map<std::int64_t, double>> step_s;  // by site and step
  for (const auto& site : sites) {
    site->executor.on_step = [&](const StepRecord& record) {
      mailbox.changed([&] {
        steps[record.node] = record.step + 1;
        step_s[record.node][record.step] = record.time.seconds();
      });
    };
  }
  run(sites);
  check_as_in_turn(sites, scenario);
  for (const auto& site : sites) {
    REQUIRE(site->transfers.size() == 6);  // 2 fragments in 3 rounds
    for (const TransferRecord& record : site->transfers) {
      CAPTURE(record.operation);
      CAPTURE(record.round);
      const std::int64_t sent_at = 4 * record.round + (record.operation == "average fragment 0" ? 2 : 4);
      const double hidden_s = record.end_s - record.start_s - record.exposed_s;
      CHECK(record.exposed_s >= 0);
      CHECK(hidden_s >= -1e-12);
      // The last fragment is sent after the last step, so no steps can hide it.
      if (sent_at < kSteps) CHECK(hidden_s >= step_s[site->node][sent_at] + step_s[site->node][sent_at + 1]);
    }
  }
}

TEST_CASE("without overlap all of a transfer is exposed") {
  const costmodel::Scenario scenario = training_scenario("diloco", 2);
  Mailbox mailbox;
  const Sites sites = sites_of(scenario, real_options(), mailbox);
  run(sites);
  check_as_in_turn(sites, scenario);
  for (const auto& site : sites) {
    REQUIRE(site->transfers.size() == 3);
    for (const TransferRecord& record : site->transfers)
      CHECK(record.exposed_s == doctest::Approx(record.end_s - record.start_s).epsilon(1e-9));
  }
}

TEST_CASE(
    "buckets and tensors: as many calls as pieces, the bytes of the pieces, the bits of the flat buffer") {
  for (const auto type : {costmodel::ElementType::fp32, costmodel::ElementType::bf16}) {
    costmodel::Scenario scenario = training_scenario("diloco", 3);
    scenario.strategy.wire = costmodel::plain_format(type);
    Training flat(scenario, real_options());
    flat.run();
    for (const char* cut : {"buckets", "tensors", "buckets of tensors"}) {
      CAPTURE(std::string(cut));
      costmodel::Scenario pieces = scenario;
      if (std::string(cut) != "buckets") pieces.strategy.granularity = costmodel::Granularity::tensor;
      if (std::string(cut) != "tensors") pieces.strategy.bucket_bytes = 300;
      Mailbox mailbox;
      const Sites sites = sites_of(pieces, real_options(), mailbox);
      run(sites);

      const costmodel::Plan plan = costmodel::make_plan(pieces);
      const auto cut_of = costmodel::pieces_of(pieces, plan);
      const costmodel::RoundPlan round = plan.round(0);
      const auto& exchange = std::get<costmodel::Transfer>(round.ops[1].what).exchanges.front();
      int calls = 0;
      std::vector<std::int64_t> sent(3, 0);
      for (const costmodel::Payload& payload : exchange.payloads) {
        for (const std::int64_t elements : cut_of(payload)) {
          ++calls;
          const auto chunk = [&](int c) {
            return payload.format.bytes(costmodel::chunk_elements(elements, 3, c));
          };
          // In direct exchange, a node sends every chunk but its own, then its own chunk to both others.
          for (int p = 0; p < 3; ++p)
            sent[static_cast<std::size_t>(p)] += chunk((p + 1) % 3) + chunk((p + 2) % 3) + 2 * chunk(p);
        }
      }
      REQUIRE(calls > 5);
      for (const auto& site : sites) {
        CHECK(at::equal(site->weights(), flat.weights(site->node)));
        CHECK(mailbox.moves[site->node] == 3 * calls * 2);  // rounds · calls · phases
        CHECK(site->transport.traffic(site->node).total_sent() ==
              3 * sent[static_cast<std::size_t>(site->node)]);
      }
    }
  }
}

TEST_CASE("pieces among owners and under migration: the bits of the flat buffer") {
  costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
  scenario.strategy.placement = costmodel::PlacementKind::random;
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
  Training flat(scenario, real_options());
  flat.run();
  scenario.strategy.granularity = costmodel::Granularity::tensor;
  scenario.strategy.bucket_bytes = 300;
  Training cut(scenario, real_options());
  cut.run();
  for (int node = 0; node < 4; ++node) CHECK(at::equal(cut.weights(node), flat.weights(node)));
}
