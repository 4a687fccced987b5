// Tests exchanges through a store: in one process, and with a folder between two processes' transports.
#include "trainer/comm/through_store.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tests/trainer/support.hpp"
#include "trainer/comm/collectives.hpp"
#include "trainer/shared_folder/shared_folder.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
namespace fs = std::filesystem;
using costmodel::ElementType;
using costmodel::NodeId;
using costmodel::NodeKind;
using costmodel::Pattern;
using costmodel::Transfer;

namespace {

constexpr NodeId kStore = 3;  // behind three sites

std::vector<costmodel::Node> three_and_store() {
  std::vector<costmodel::Node> nodes;
  for (int n = 0; n < 3; ++n) nodes.push_back({NodeKind::worker, n, 1});
  nodes.push_back({NodeKind::store, 3, 0});
  return nodes;
}

/// `elements` values of all sites, and two values of the sites 1 and 2 alone.
Transfer exchange(bool aggregates, std::int64_t elements,
                  costmodel::WireFormat format = costmodel::plain_format(ElementType::fp32)) {
  fomoe::platforms::Store store;
  store.aggregates = aggregates;
  const auto payload = [&](costmodel::TrafficClass traffic, std::int64_t count) {
    return costmodel::Payload{costmodel::Content::parameter, traffic, {}, format, count};
  };
  return costmodel::average_through_store(store, kStore,
                                          {{{0, 1, 2}, {payload(costmodel::TrafficClass::dense, elements)}},
                                           {{1, 2}, {payload(costmodel::TrafficClass::expert_sync, 2)}}});
}

// Different at each node and for each payload.
at::Tensor given_by(const PayloadAt& at) {
  return at::arange(at.payload.elements, at::kFloat) * (at.node + 1) + at.payload.elements;
}
at::Tensor mean_of(const std::vector<NodeId>& nodes, std::int64_t elements) {
  at::Tensor sum = at::zeros({elements});
  for (const NodeId node : nodes) sum += at::arange(elements, at::kFloat) * (node + 1) + elements;
  return sum / static_cast<std::int64_t>(nodes.size());
}

using Results = std::map<std::pair<NodeId, std::int64_t>, at::Tensor>;  // by node and number of elements

Results results(const Transfer& what, Transport& transport, int channel = 0) {
  Results heard;
  TransferOptions options;
  options.channel = channel;
  run_transfer(
      what, transport, given_by,
      [&](const PayloadAt& at, const at::Tensor& values) {
        heard[{at.node, at.payload.elements}] = values.clone();
      },
      options);
  return heard;
}

/// A process that has no connection to others.
class Alone : public Transport {
 public:
  explicit Alone(const std::vector<NodeId>& hosted) : Transport(three_and_store(), hosted) {}

 protected:
  void move(const std::vector<Message*>&, int) override { FAIL("a message went beside the store"); }
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int made = 0;
    path_ = fs::temp_directory_path() /
            ("fomoe-store-" + std::to_string(::getpid()) + '-' + std::to_string(made++));
    fs::create_directory(path_);
  }
  ~TemporaryFolder() { SharedFolder::remove_session(path_); }
  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::shared_ptr<SharedFolder> store(double timeout_s = 20) const {
    return std::make_shared<SharedFolder>(
        path_, std::vector<std::string>{"a", "b", "c", "the aggregator beside the store"}, timeout_s, false);
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE(
    "through a store all take the mean of those who have the payload; the bytes are those of the plan") {
  for (const bool aggregates : {true, false}) {
    CAPTURE(aggregates);
    InProcessTransport transport(three_and_store());
    const Results heard = results(exchange(aggregates, 7), transport);
    CHECK(heard.size() == 5);
    for (const NodeId node : {0, 1, 2}) CHECK(heard.at({node, 7}).allclose(mean_of({0, 1, 2}, 7), 1e-6));
    for (const NodeId node : {1, 2}) CHECK(heard.at({node, 2}).allclose(mean_of({1, 2}, 2), 1e-6));
    // Each site downloads the result, or the payloads of all others.
    const std::int64_t of_all = aggregates ? 28 : 2 * 28, of_two = 8;
    CHECK(transport.traffic(0).total_sent() == 28);
    CHECK(transport.traffic(1).total_sent() == 28 + 8);
    CHECK(transport.traffic(0).total_received() == of_all);
    CHECK(transport.traffic(1).total_received() == of_all + of_two);
    CHECK(transport.traffic(2).sent_to == std::vector<std::int64_t>{0, 0, 0, 36});
    CHECK(transport.traffic(kStore).sent_to ==
          std::vector<std::int64_t>{of_all, of_all + of_two, of_all + of_two, 0});
  }
}

TEST_CASE("a broadcast through a store takes the values of its first site to the others, unchanged") {
  InProcessTransport transport(three_and_store());
  Transfer what = exchange(true, 5);
  what.exchanges[0].nodes = {1, 0, 2};
  what.exchanges.pop_back();
  what = costmodel::relayed_by_store(kStore, what.exchanges);
  const Results heard = results(what, transport);
  CHECK(heard.size() == 2);
  for (const NodeId node : {0, 2}) CHECK(heard.at({node, 5}).equal(mean_of({1}, 5)));
  CHECK(transport.traffic(1).total_sent() == 20);
  CHECK(transport.traffic(kStore).sent_to == std::vector<std::int64_t>{20, 0, 20, 0});
}

TEST_CASE("sparse payloads: the union of what sites keep, as far as the result's format has place for it") {
  costmodel::WireFormat sparse = costmodel::plain_format(ElementType::fp32);
  sparse.kept_share = 0.25;
  sparse.index_bits = 4;
  // Of 16 values each site keeps its 4 largest, which are the last ones at all of them.
  const at::Tensor whole = mean_of({0, 1, 2}, 16);
  at::Tensor kept = at::zeros({16});
  kept.slice(0, 12).copy_(whole.slice(0, 12));
  for (const bool aggregates : {true, false}) {
    InProcessTransport transport(three_and_store());
    Transfer what = exchange(aggregates, 16, sparse);
    what.exchanges.pop_back();
    const Results heard = results(what, transport);
    for (const NodeId node : {0, 1, 2}) CHECK(heard.at({node, 16}).allclose(kept, 1e-6));
    // 4 values of 4 B with positions of 4 bits; the result has 1 − (3/4)³ = 9.25 of 16 values.
    CHECK(transport.traffic(0).total_sent() == 18);
    CHECK(transport.traffic(0).total_received() ==
          (aggregates ? what.exchanges[0].payloads[0].result_bytes() : 2 * 18));
  }
}

TEST_CASE("three processes with a folder between them hear the bits of one process") {
  for (const bool aggregates : {true, false}) {
    CAPTURE(aggregates);
    const TemporaryFolder folder;
    const Transfer what = exchange(aggregates, 1001, costmodel::plain_format(ElementType::bf16));
    // The first process is also the aggregator; a store that combines nothing is nobody's.
    std::vector<std::vector<NodeId>> hosted = {{0}, {1}, {2}};
    if (aggregates) hosted[0].push_back(kStore);
    std::vector<Results> heard(3);
    std::vector<std::vector<std::int64_t>> by_store(3);
    std::vector<std::thread> processes;
    for (std::size_t p = 0; p < 3; ++p) {
      processes.emplace_back([&, p] {
        Alone transport(hosted[p]);
        const std::shared_ptr<SharedFolder> store = folder.store();
        transport.use_store(store);
        for (int round = 0; round < 4; ++round) {
          transport.begin_round(round);
          heard[p] = results(what, transport, round);
        }
        by_store[p] = transport.traffic(kStore).sent_to;
      });
    }
    for (std::thread& process : processes) process.join();
    InProcessTransport whole(three_and_store());
    for (const auto& [key, values] : results(what, whole)) {
      CAPTURE(key.first);
      CHECK(heard[static_cast<std::size_t>(key.first)].at(key).equal(values));
    }
    for (std::size_t p = 0; p < 3; ++p) CHECK(by_store[p][p] == 4 * whole.traffic(kStore).sent_to[p]);
    // Of the first two rounds nothing is left.
    const std::size_t in_memory = aggregates ? 1 : 0;  // what the aggregator's own site uploads
    const std::size_t results = aggregates ? 2 : 0;
    CHECK(folder.files() == 2 * (3 + 2 - in_memory + results));
  }
}

TEST_CASE("an object that does not come, or has another length, is named with its site") {
  const TemporaryFolder folder;
  const auto store = folder.store(0.05);
  CHECK_THROWS_WITH_AS((void)store->get("0-0.1", 4, 1), doctest::Contains("b is lost: its file "), SiteLost);
  store->put("0-0.1", at::ones({4}, at::kByte));
  CHECK(store->get("0-0.1", 4, 1).equal(at::ones({4}, at::kByte)));
  for (const std::int64_t bytes : {3, 5})
    CHECK_THROWS_WITH_AS((void)store->get("0-0.1", bytes, 1),
                         doctest::Contains("of b cannot be read, or has not the "), std::runtime_error);
  fs::create_directory(folder.path() + "/0-0.2");
  CHECK_THROWS_AS((void)store->get("0-0.2", 4, 2), std::runtime_error);
  CHECK_THROWS_WITH_AS(store->put("no/such", at::ones({4}, at::kByte)), doctest::Contains("--store: "),
                       std::runtime_error);
}
