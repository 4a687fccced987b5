// Tests of [platform.store]: what is read, and what is refused in which words.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;

namespace {

using Words = std::vector<std::string>;

costmodel::Scenario two_sites(const Words& overrides) {
  scenario::ReadOptions options;
  options.overrides = overrides;
  return scenario::read_scenario(tests::source_dir() + "/experiments/scenarios/two-sites.toml", options);
}

Words with(Words more) {
  more.insert(more.end(), {"strategy.method=diloco", "strategy.collective=store"});
  return more;
}

std::string refused(const Words& overrides) {
  try {
    (void)two_sites(overrides);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

void check_names(const std::string& message, const Words& parts) {
  CAPTURE(message);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("[platform.store]: defaults and units") {
  const costmodel::Scenario plain = two_sites(with({"platform.store.latency=10ms"}));
  REQUIRE(plain.platform.store);
  CHECK(plain.platform.store->latency_s == doctest::Approx(0.01));
  CHECK(plain.platform.store->uplink_bytes_per_s == platforms::kUnlimited);
  CHECK(plain.platform.store->downlink_bytes_per_s == platforms::kUnlimited);
  CHECK(plain.platform.store->aggregates);
  CHECK_FALSE(plain.platform.store->result_share);
  CHECK_FALSE(two_sites({}).platform.store);

  const costmodel::Scenario given = two_sites(with(
      {"platform.store.uplink=8Gbps", "platform.store.downlink=16Gbps", "platform.store.aggregates=false",
       "prices.gpu_hour=2USD", "platform.store.million_requests=4.50USD",
       "platform.store.egress_per_gb=0.09USD", "platform.rate_factor=0.5"}));
  CHECK(given.platform.store->uplink_bytes_per_s == doctest::Approx(0.5e9));
  CHECK(given.platform.store->downlink_bytes_per_s == doctest::Approx(1e9));
  CHECK(given.platform.store->latency_s == doctest::Approx(0.025));  // the default
  CHECK_FALSE(given.platform.store->aggregates);
  CHECK(given.prices->store.price_per_request == doctest::Approx(4.5e-6));
  CHECK(given.prices->store.price_per_byte == doctest::Approx(0.09e-9));
}

TEST_CASE("collective = \"store\" needs a store, and a method that averages everything at once") {
  check_names(refused({"strategy.method=diloco", "strategy.collective=store"}),
              {"strategy.collective", "\"store\" without a store", "[platform.store]"});
  for (const char* method : {"ddp", "streaming_diloco", "gossip", "fsdp"})
    check_names(refused({"strategy.method=" + std::string(method), "strategy.collective=store",
                         "platform.store.latency=10ms"}),
                {"strategy.collective", "\"store\" with " + std::string(method), "sparse_loco", "\"ring\""});
  check_names(refused(with({"platform.store.latency=10ms", "strategy.layerwise=true"})),
              {"strategy.collective", "\"store\" with diloco and layerwise"});
  check_names(refused({"strategy.method=fomoe", "strategy.collective=store", "platform.store.latency=10ms",
                       "strategy.fragments=2"}),
              {"strategy.collective", "\"store\" with fomoe and fragments or overlap_steps", "\"ring\""});
  check_names(
      refused({"strategy.method=fedavg", "strategy.collective=store", "platform.store.aggregates=false"}),
      {"platform.store.aggregates", "false with fedavg", "diloco"});
  for (const char* method : {"diloco", "sparse_loco", "fedavg", "fomoe", "local_sgd", "local_adamw", "dept"})
    CHECK(refused({"strategy.method=" + std::string(method), "strategy.collective=store",
                   "platform.store.latency=10ms"}) == "");
}

TEST_CASE("collective = \"chain\" needs a method with a server") {
  for (const char* method : {"ddp", "diloco", "async_diloco", "fomoe"})
    check_names(refused({"strategy.method=" + std::string(method), "strategy.collective=chain"}),
                {"strategy.collective", "\"chain\" with " + std::string(method), "fedavg", "\"ring\""});
  CHECK(refused({"strategy.method=fedavg", "strategy.collective=chain"}) == "");
}

TEST_CASE("[platform.store]: keys that contradict others, and values that are none") {
  check_names(refused(with({"platform.store.result_share=0.1", "platform.store.aggregates=false"})),
              {"platform.store.result_share", "aggregates = false", "expected aggregates = true"});
  check_names(refused(with({"platform.store.million_requests=1USD"})),
              {"platform.store.million_requests", "without [prices]"});
  check_names(refused(with({"platform.store.egress_per_gb=1EUR", "prices.gpu_hour=2USD"})),
              {"platform.store.egress_per_gb", "EUR", "USD"});
  check_names(refused(with({"platform.store.latency=fast"})), {"platform.store.latency", "fast"});
  check_names(refused(with({"platform.store.uplink=-1Gbps"})), {"platform.store.uplink", "-1Gbps"});
  check_names(refused(with({"platform.store.result_share=1.5"})), {"platform.store.result_share", "1.5"});
  check_names(refused(with({"platform.store.speed=1Gbps"})), {"platform.store.speed", "unknown key"});
  check_names(refused(with({"platform.store.latency=10ms", "strategy.secure_aggregation=true",
                            "strategy.method=diloco"})),
              {"strategy.secure_aggregation", "store"});
}
