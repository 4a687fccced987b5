// Tests the patterns over the in-process transport: the result at each node, and the bytes that were sent.
#include "trainer/comm/collectives.hpp"

#include <numeric>

#include "tests/trainer/support.hpp"
#include "trainer/comm/wire_codec.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
using costmodel::Collective;
using costmodel::ElementType;
using costmodel::Pattern;

namespace {

std::vector<costmodel::Node> nodes_of(int count) {
  std::vector<costmodel::Node> nodes;
  for (int n = 0; n < count; ++n) nodes.push_back({costmodel::NodeKind::worker, n, 1});
  return nodes;
}

costmodel::Payload payload(std::int64_t elements, ElementType type, costmodel::TrafficClass traffic) {
  return {costmodel::Content::parameter, traffic, {}, costmodel::plain_format(type), elements};
}

costmodel::Transfer transfer(Pattern pattern, Collective collective, std::vector<costmodel::NodeId> nodes,
                             std::int64_t elements, ElementType type = ElementType::fp32) {
  return {pattern,
          collective,
          {{std::move(nodes),
            {payload(elements, type, costmodel::TrafficClass::dense),
             payload(2, type, costmodel::TrafficClass::expert_sync)}}}};
}

// Different at each node and for each payload, and exact in bf16.
at::Tensor contribution(const PayloadAt& at) {
  return at::arange(at.payload.elements, at::kFloat) * (at.node + 1) + at.payload.elements;
}

struct Heard {
  costmodel::NodeId node;
  std::int64_t elements;
  at::Tensor values;
};

std::vector<Heard> run(const costmodel::Transfer& what, Transport& transport,
                       const PayloadSource& source = contribution) {
  std::vector<Heard> heard;
  run_transfer(what, transport, source, [&](const PayloadAt& at, const at::Tensor& values) {
    heard.push_back({at.node, at.payload.elements, values.clone()});
  });
  return heard;
}

// Hosts the first of three nodes and records its calls; the other nodes send zeros.
class Diary : public Transport {
 public:
  Diary() : Transport(nodes_of(3), {0}) {}
  std::vector<at::Device> used_on;  // of each message whose receive was posted
  // P: receives are posted; M: a phase is moved, all of whose receives were posted before
  std::string entries;

 protected:
  void post(const std::vector<Message*>& messages, int) override {
    for (Message* message : messages) {
      message->posted = std::make_shared<PostedReceive>();
      used_on.push_back(message->used_on);
    }
    entries += 'P';
  }
  void move(const std::vector<Message*>& messages, int) override {
    bool posted = true;
    for (Message* message : messages) {
      if (hosts(message->from)) continue;
      posted = posted && message->posted != nullptr;
      message->received = at::zeros({message->bytes()}, at::kByte);
    }
    entries += posted ? 'M' : '?';
  }
};

}  // namespace

TEST_CASE("receives are posted before there is anything to send, the next phase's before this one's are in") {
  for (const auto& [collective, whole] :
       {std::pair(Collective::ring, "PPMPMPMM"), std::pair(Collective::direct, "PPMM")}) {
    Diary diary;
    const costmodel::Transfer what = transfer(Pattern::all_reduce, collective, {0, 1, 2}, 7);
    TransferRun one(what, diary);
    CHECK(diary.entries.empty());
    one.expect();
    CHECK(diary.entries == "P");
    one.read(contribution);
    one.exchange();
    CHECK(diary.entries == whole);
  }
}

TEST_CASE("all-reduce: everybody has the mean, whether or not n divides the elements") {
  for (const Collective collective : {Collective::ring, Collective::direct, Collective::recursive}) {
    for (const int n : {1, 2, 3, 4, 5, 8}) {
      for (const std::int64_t elements : {1, 4, 7, 20}) {
        // halving needs an even number of nodes
        if (collective == Collective::recursive && n % 2 == 1 && n > 1) continue;
        CAPTURE(n);
        CAPTURE(elements);
        InProcessTransport transport(nodes_of(n));
        std::vector<costmodel::NodeId> all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), 0);
        const auto heard = run(transfer(Pattern::all_reduce, collective, all, elements), transport);
        REQUIRE(heard.size() == 2 * static_cast<std::size_t>(n));
        for (const Heard& one : heard) {
          // mean over nodes of i·(node + 1) + elements
          const at::Tensor expected = at::arange(one.elements, at::kFloat) * ((n + 1) / 2.0) + one.elements;
          CHECK(largest_difference(one.values, expected) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("all-reduce sends the chunks that the plan says, per site and class") {
  const std::int64_t elements = 7;
  for (const Collective collective : {Collective::ring, Collective::direct}) {
    InProcessTransport transport(nodes_of(3));
    run(transfer(Pattern::all_reduce, collective, {0, 1, 2}, elements), transport);
    // Chunks of 7 elements: 3 2 2; of 2 elements: 1 1 0. In a ring, position p sends all chunks but p + 1,
    // then all but p + 2. In direct exchange it sends all chunks but its own, then its own chunk twice.
    const std::int64_t dense[3] = {3, 2, 2}, expert[3] = {1, 1, 0};
    for (int p = 0; p < 3; ++p) {
      const int a = (p + 1) % 3, b = (p + 2) % 3;
      const auto sent = [&](const std::int64_t* chunk) {
        const std::int64_t all = chunk[0] + chunk[1] + chunk[2];
        return 4 * (collective == Collective::ring ? 2 * all - chunk[a] - chunk[b]
                                                   : all - chunk[p] + 2 * chunk[p]);
      };
      CHECK(transport.traffic(p).sent[0] == sent(dense));
      CHECK(transport.traffic(p).sent[1] == sent(expert));
      CHECK(transport.traffic(p).total_sent() == sent(dense) + sent(expert));
    }
  }
}

TEST_CASE("fp64 sums are right to 1e-12, however they are taken") {
  at::manual_seed(11);
  for (const int n : {2, 3, 4, 6, 8, 16}) {
    const at::Tensor values = at::randn({n, 101}, at::kDouble);
    for (const Collective collective : {Collective::ring, Collective::direct, Collective::recursive}) {
      if (collective == Collective::recursive && (n & (n - 1)) != 0) continue;
      CAPTURE(n);
      InProcessTransport transport(nodes_of(n));
      std::vector<costmodel::NodeId> all(static_cast<std::size_t>(n));
      std::iota(all.begin(), all.end(), 0);
      TransferOptions exact;
      exact.exact_wire = true;
      int heard = 0;
      run_transfer(
          transfer(Pattern::all_reduce, collective, all, 101), transport,
          [&](const PayloadAt& at) { return values[at.node].narrow(0, 0, at.payload.elements); },
          [&](const PayloadAt& at, const at::Tensor& mean) {
            ++heard;
            CHECK(largest_difference(mean, values.mean(0).narrow(0, 0, at.payload.elements)) < 1e-12);
          },
          exact);
      CHECK(heard == 2 * n);
    }
  }
}

TEST_CASE("halving and doubling: log2 n partners, n/2, n/4 … 1 chunks to each, and as many back") {
  const std::int64_t elements = 19;  // chunks of 8: 3 3 3 2 2 2 2 2
  InProcessTransport transport(nodes_of(8));
  run(transfer(Pattern::all_reduce, Collective::recursive, {0, 1, 2, 3, 4, 5, 6, 7}, elements), transport);
  const auto chunks = [&](int first, int count) {
    std::int64_t sum = 0;
    for (int c = first; c < first + count; ++c)
      sum += costmodel::chunk_elements(elements, 8, c) + costmodel::chunk_elements(2, 8, c);
    return 4 * sum;
  };
  for (int p = 0; p < 8; ++p) {
    std::vector<std::int64_t> expected(8, 0);
    for (const int distance : {4, 2, 1}) {
      const int q = p ^ distance;
      // p sends q the half of its chunks that q will sum, and later the means of its own half.
      expected[static_cast<std::size_t>(q)] =
          chunks(q / distance * distance, distance) + chunks(p / distance * distance, distance);
    }
    CHECK(transport.traffic(p).sent_to == expected);
  }
  CHECK_THROWS_AS(run(transfer(Pattern::all_reduce, Collective::recursive, {0, 1, 2}, 5), transport),
                  std::invalid_argument);
}

TEST_CASE("scattered inside regions, averaged between them, gathered inside: the mean of all") {
  // 6 nodes in 2 regions of 3 nodes; 10 elements in chunks of 4, 3 and 3.
  const std::int64_t elements = 10;
  at::manual_seed(13);
  const at::Tensor values = at::randn({6, elements});
  for (const Collective collective : {Collective::ring, Collective::recursive}) {
    const int per_region = collective == Collective::ring ? 3 : 2, regions = 2, n = per_region * regions;
    const auto whole = [&](Pattern pattern) {
      costmodel::Transfer made{pattern, collective, {}};
      for (int region = 0; region < regions; ++region) {
        std::vector<costmodel::NodeId> nodes(static_cast<std::size_t>(per_region));
        std::iota(nodes.begin(), nodes.end(), region * per_region);
        made.exchanges.push_back(
            {nodes, {payload(elements, ElementType::fp32, costmodel::TrafficClass::dense)}});
      }
      return made;
    };
    costmodel::Transfer across{Pattern::all_reduce, collective, {}};
    for (int rank = 0; rank < per_region; ++rank) {
      auto chunk = payload(costmodel::chunk_elements(elements, per_region, rank), ElementType::fp32,
                           costmodel::TrafficClass::dense);
      chunk.chunk = rank;
      chunk.chunks = per_region;
      across.exchanges.push_back({{rank, per_region + rank}, {chunk}});
    }
    InProcessTransport transport(nodes_of(n));
    PartialMeans partial;
    TransferOptions options;
    options.partial = &partial;
    const auto source = [&](const PayloadAt& at) { return values[at.node]; };
    std::vector<at::Tensor> heard;
    const auto sink = [&](const PayloadAt&, const at::Tensor& mean) { heard.push_back(mean.clone()); };
    run_transfer(whole(Pattern::reduce_scatter), transport, source, sink, options);
    run_transfer(across, transport, source, sink, options);
    CHECK(heard.empty());  // chunks are not delivered to a model
    const std::int64_t before = transport.traffic(0).total_sent();
    // Inside regions, all chunks but one are sent, by ring or by halving; between the two regions, the halves
    // of a chunk are sent twice.
    CHECK(before == 4 * (elements - costmodel::chunk_elements(elements, per_region, 0) +
                         costmodel::chunk_elements(elements, per_region, 0)));
    run_transfer(whole(Pattern::all_gather), transport, source, sink, options);
    REQUIRE(heard.size() == static_cast<std::size_t>(n));
    for (const at::Tensor& mean : heard) {
      CHECK(at::equal(mean, heard.front()));
      CHECK(largest_difference(mean, values.narrow(0, 0, n).mean(0)) < 1e-6);
    }
    CHECK_THROWS_AS(run_transfer(whole(Pattern::all_gather), transport, source, sink, options),
                    std::logic_error);  // no transfer has left a chunk
  }
}

TEST_CASE("direct exchange adds in the order of nodes, and everybody has the same bits on a coarse wire") {
  at::manual_seed(3);
  const at::Tensor values = at::randn({4, 50});
  for (const ElementType type : {ElementType::fp32, ElementType::bf16, ElementType::int8}) {
    for (const Collective collective : {Collective::direct, Collective::ring, Collective::recursive}) {
      const std::vector<costmodel::NodeId> nodes = collective == Collective::recursive
                                                       ? std::vector<costmodel::NodeId>{0, 1, 2, 3}
                                                       : std::vector<costmodel::NodeId>{0, 1, 2};
      InProcessTransport transport(nodes_of(4));
      const auto heard =
          run(transfer(Pattern::all_reduce, collective, nodes, 50, type), transport,
              [&](const PayloadAt& at) { return values[at.node].narrow(0, 0, at.payload.elements); });
      for (const Heard& one : heard) {
        const Heard& first = heard[one.elements == 50 ? 0 : nodes.size()];
        REQUIRE(first.elements == one.elements);
        CHECK(at::equal(one.values, first.values));
        if (type == ElementType::fp32 && collective == Collective::direct) {
          const at::Tensor v = values.narrow(1, 0, one.elements);
          CHECK(at::equal(one.values, (v[0] + v[1] + v[2]) / 3));
        }
      }
    }
  }
}

TEST_CASE("reduce, broadcast, point to point and everybody to all") {
  const std::vector<costmodel::NodeId> nodes = {2, 0, 1};
  InProcessTransport transport(nodes_of(3));
  auto heard = run(transfer(Pattern::reduce, Collective::ring, nodes, 4), transport);
  REQUIRE(heard.size() == 2);
  CHECK(heard[0].node == 2);  // the first node of the exchange; nodes 0 and 1 sent 1·i and 2·i
  CHECK(largest_difference(heard[0].values, at::arange(4, at::kFloat) * 1.5 + 4) == 0);
  CHECK(transport.traffic(0).total_sent() == 4 * (4 + 2));
  CHECK(transport.traffic(2).total_sent() == 0);
  CHECK(transport.traffic(2).total_received() == 2 * 4 * (4 + 2));

  heard = run(transfer(Pattern::broadcast, Collective::ring, nodes, 4), transport);
  REQUIRE(heard.size() == 4);
  for (const Heard& one : heard)
    CHECK(at::equal(one.values, at::arange(one.elements, at::kFloat) * 3 + one.elements));

  heard = run(transfer(Pattern::point_to_point, Collective::ring, {1, 0}, 4), transport);
  REQUIRE(heard.size() == 2);
  CHECK(heard[0].node == 0);
  CHECK(at::equal(heard[0].values, at::arange(4, at::kFloat) * 2 + 4));

  for (const Collective collective : {Collective::ring, Collective::direct}) {
    InProcessTransport fresh(nodes_of(3));
    heard = run(transfer(Pattern::all_to_all_broadcast, collective, {0, 1, 2}, 4), fresh);
    REQUIRE(heard.size() == 6);
    for (const Heard& one : heard)
      CHECK(at::equal(one.values, at::arange(one.elements, at::kFloat) * 2 + one.elements));
    // S to each of the two others, or S passed on twice
    CHECK(fresh.traffic(1).total_sent() == 2 * 4 * (4 + 2));
  }
}

TEST_CASE("a transport learns on which device received bytes will be used, before it makes room for them") {
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {  // for want of a GPU
    Diary diary;
    TransferOptions options;
    options.device = device;
    const costmodel::Transfer what = transfer(Pattern::all_reduce, Collective::ring, {0, 1, 2}, 9);
    TransferRun(what, diary, options).expect();
    CHECK(diary.used_on == std::vector<at::Device>{device});
  }
}

TEST_CASE("exchanges of different sizes go through the same phases") {
  InProcessTransport transport(nodes_of(4));
  costmodel::Transfer both = transfer(Pattern::all_reduce, Collective::ring, {0, 1, 2, 3}, 5);
  both.exchanges.push_back(transfer(Pattern::all_reduce, Collective::ring, {1, 3}, 9).exchanges[0]);
  const auto heard = run(both, transport);
  REQUIRE(heard.size() == 2 * 4 + 2 * 2);
  for (const Heard& one : heard) {
    if (one.elements == 9) CHECK(largest_difference(one.values, at::arange(9) * 3.0 + 9) < 1e-5);
    if (one.elements == 5) CHECK(largest_difference(one.values, at::arange(5) * 2.5 + 5) < 1e-5);
  }
}

TEST_CASE("what nodes of one site send each other does not cross") {
  std::vector<costmodel::Node> nodes = nodes_of(2);
  nodes.push_back({costmodel::NodeKind::server, 0, 0});
  InProcessTransport transport(nodes);
  run(transfer(Pattern::reduce, Collective::ring, {2, 0, 1}, 4), transport);
  CHECK(transport.traffic(0).total_sent() == 0);
  CHECK(transport.traffic(1).total_sent() == 4 * (4 + 2));
  CHECK(transport.traffic(2).total_received() == 4 * (4 + 2));
}

TEST_CASE("codecs: as many bytes as the format counts, and values as close as the type allows") {
  at::manual_seed(5);
  const at::Tensor values = at::randn({1003});
  const auto worst = [&](const costmodel::WireFormat& format) {
    const WireCodec codec(format);
    const at::Tensor bytes = codec.encode(values);
    CHECK(bytes.numel() == format.bytes(1003));
    const at::Tensor back = codec.decode(bytes, 1003, values);
    CHECK(at::equal(back, codec.round_trip(values)));
    return ((back - values).abs() / values.abs().max()).max().item<double>();
  };
  CHECK(worst(costmodel::plain_format(ElementType::fp32)) == 0);
  CHECK(worst(costmodel::plain_format(ElementType::bf16)) < 1.0 / 256);
  CHECK(worst(costmodel::plain_format(ElementType::fp16)) < 1.0 / 2048);
  CHECK(worst(costmodel::plain_format(ElementType::fp8)) < 1.0 / 16);
  CHECK(worst(costmodel::plain_format(ElementType::int8)) < 0.5 / 127 + 1e-6);  // half a quantisation step
  CHECK(worst(costmodel::plain_format(ElementType::int4)) < 0.5 / 7 + 1e-6);

  // 1003 elements with 7-bit positions form groups of 128. The largest quarter of each group survives; the
  // rest is 0.
  const costmodel::WireFormat top = costmodel::top_k_format(ElementType::fp32, 0.25, 7);
  const WireCodec codec(top);
  CHECK(codec.encode(values).numel() == top.bytes(1003));
  const at::Tensor back = codec.round_trip(values);
  CHECK(back.count_nonzero().item<std::int64_t>() == 251);  // ⌈1003/4⌉
  const at::Tensor group = values.narrow(0, 128, 128), kept = back.narrow(0, 128, 128);
  const at::Tensor threshold = std::get<0>(group.abs().sort())[96];
  CHECK(at::equal(kept, at::where(group.abs() >= threshold, group, at::zeros_like(group))));
  CHECK_THROWS_AS(WireCodec(costmodel::top_k_format(ElementType::int2, 0.25, 7)), std::invalid_argument);
}
