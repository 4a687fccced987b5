// Tests the logic of the relay with a simulated clock, and its packet parser.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "platforms/wan/relay/frame.hpp"
#include "platforms/wan/relay/relay_core.hpp"

using namespace fomoe::platforms;
using namespace fomoe::platforms::wan;

namespace {

struct Delivered {
  double at_s;
  Packet packet;
};

/// All packets that are due by `until_s`, in the order of delivery.
std::vector<Delivered> drain(RelayCore& core, double until_s) {
  std::vector<Delivered> all;
  core.advance(until_s, [&](Packet&& packet, double due_s) { all.push_back({due_s, std::move(packet)}); });
  return all;
}

Packet packet(int from, int to, double bytes, double segment = 0, int number = 0) {
  return {from, to, bytes, segment > 0 ? segment : bytes, {static_cast<std::byte>(number)}};
}

}  // namespace

TEST_CASE("relay: one packet takes both links and the latency") {
  RelayCore core(lay_out(uniform(2, 1e6, 2e6, 0.010), {}));
  core.receive(5.0, packet(0, 1, 1000));
  const auto all = drain(core, 100);
  REQUIRE(all.size() == 1);
  // 1000 bytes at 1 MB/s, 10 ms of latency, 1000 bytes at 2 MB/s.
  CHECK(all[0].at_s == doctest::Approx(5.0 + 0.001 + 0.010 + 0.0005).epsilon(1e-12));
}

TEST_CASE("relay: nothing comes before it is due") {
  RelayCore core(lay_out(uniform(2, 1e6, 2e6, 0.010), {}));
  core.receive(0, packet(0, 1, 1000));
  CHECK(drain(core, 0.01149).empty());
  REQUIRE(core.next_s());
  CHECK(*core.next_s() == doctest::Approx(0.0115).epsilon(1e-12));
  CHECK(drain(core, 0.01151).size() == 1);
  CHECK_FALSE(core.next_s());
}

TEST_CASE("relay: the rate over time is the slowest link's, whatever the burst") {
  // 1000 packets at once; the queue of 2 MB holds them all.
  RelayCore core(lay_out(uniform(2, 3e6, 1e6, 0.020), {1500, 2e6}));
  for (int i = 0; i < 1000; ++i) core.receive(0, packet(0, 1, 1000));
  const auto all = drain(core, 100);
  REQUIRE(all.size() == 1000);
  // The first packet takes both links and the latency; 999 more follow at 1 MB/s.
  const double first_s = 1000 / 3e6 + 0.020 + 0.001;
  CHECK(all.front().at_s == doctest::Approx(first_s).epsilon(1e-9));
  CHECK(all.back().at_s == doctest::Approx(first_s + 999 * 0.001).epsilon(1e-9));
}

TEST_CASE("relay: an idle link saves no credit") {
  RelayCore core(lay_out(uniform(2, 1e6, 1e6, 0), {}));
  core.receive(0, packet(0, 1, 1000));
  drain(core, 10);
  for (int i = 0; i < 3; ++i) core.receive(10, packet(0, 1, 1000));
  const auto all = drain(core, 20);
  REQUIRE(all.size() == 3);
  CHECK(all[0].at_s == doctest::Approx(10.002).epsilon(1e-12));
  CHECK(all[2].at_s == doctest::Approx(10.004).epsilon(1e-12));
}

TEST_CASE("relay: of one pair nothing is reordered, with sizes of all kinds and a late look at the clock") {
  Platform p = uniform(3, 5e6, 2e6, 0.010);
  p.set_latency(1, 2, 0.003);
  RelayCore core(lay_out(p, {1500, 10e6}));
  std::map<int, int> next_number;
  std::vector<Delivered> all;
  for (int i = 0; i < 600; ++i) {
    const double now_s = 0.0001 * i;
    const int from = i % 2;
    core.receive(now_s, packet(from, 2, 64 + (i * 7919) % 1437, 64, i / 2 % 256));
    if (i % 50 == 0)  // otherwise the relay is not called for 5 ms
      for (Delivered& one : drain(core, now_s)) all.push_back(std::move(one));
  }
  for (Delivered& one : drain(core, 100)) all.push_back(std::move(one));
  REQUIRE(all.size() == 600);
  double last_s = 0;
  for (const Delivered& one : all) {
    CHECK(one.at_s >= last_s);
    last_s = one.at_s;
    int& number = next_number[one.packet.from];
    CHECK(static_cast<int>(one.packet.content[0]) == number % 256);
    ++number;
  }
}

TEST_CASE("relay: the queue drops what does not fit, and counts it") {
  // 10.5 kB hold ten packets of 1000 bytes: the one in transmission, and nine that wait behind it.
  RelayCore core(lay_out(uniform(2, 1e6, 1e6, 0.010), {1500, 10.5e3}));
  for (int i = 0; i < 25; ++i) core.receive(0, packet(0, 1, 1000));
  CHECK(drain(core, 100).size() == 10);
  CHECK(core.counts()[0].drops == 15);
  CHECK(core.counts()[0].bytes == 10e3);
  // 4 ms later there is room for four more packets.
  RelayCore again(lay_out(uniform(2, 1e6, 1e6, 0.010), {1500, 10.5e3}));
  for (int i = 0; i < 25; ++i) again.receive(0, packet(0, 1, 1000));
  for (int i = 0; i < 25; ++i) again.receive(0.004, packet(0, 1, 1000));
  CHECK(drain(again, 100).size() == 14);
}

TEST_CASE("relay: of a run that does not fit, the queue keeps the segments that do, as of single packets") {
  const Layout layout = lay_out(uniform(2, 1e6, 1e6, 0.010), {1500, 10.5e3});
  RelayCore whole(layout), cut(layout);
  for (int run = 0; run < 4; ++run) {
    whole.receive(0, packet(0, 1, 7000, 1000));
    for (int i = 0; i < 7; ++i) cut.receive(0, packet(0, 1, 1000));
  }
  CHECK(whole.counts()[0].bytes == 10e3);
  CHECK(whole.counts()[0].drops == 18);
  CHECK(whole.counts()[0].bytes == cut.counts()[0].bytes);
  CHECK(whole.counts()[0].drops == cut.counts()[0].drops);
  const auto runs = drain(whole, 100), packets = drain(cut, 100);
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].packet.wire_bytes == 3000);
  CHECK(runs[1].at_s == doctest::Approx(packets.back().at_s).epsilon(1e-12));
}

TEST_CASE("relay: two senders share a downlink, each with its own uplink") {
  RelayCore core(lay_out(uniform(3, 1e6, 1e6, 0.010), {1500, 1e6}));
  for (int i = 0; i < 100; ++i) {
    core.receive(0, packet(0, 2, 1000));
    core.receive(0, packet(1, 2, 1000));
  }
  const auto all = drain(core, 100);
  REQUIRE(all.size() == 200);
  CHECK(all.back().at_s == doctest::Approx(0.001 + 0.010 + 200 * 0.001).epsilon(1e-9));
  int of_site_0 = 0;
  for (int i = 0; i < 100; ++i) of_site_0 += all[static_cast<std::size_t>(i)].packet.from == 0;
  CHECK(of_site_0 == 50);
}

TEST_CASE("relay: a run of segments takes as long as its segments one by one") {
  const Layout layout = lay_out(uniform(2, 1e6, 2e6, 0.010), {1500, 1e6});
  RelayCore whole(layout), cut(layout);
  whole.receive(0, packet(0, 1, 15000, 1500));
  for (int i = 0; i < 10; ++i) cut.receive(0, packet(0, 1, 1500));
  const auto one = drain(whole, 100), ten = drain(cut, 100);
  REQUIRE(ten.size() == 10);
  REQUIRE(one.size() == 1);
  CHECK(one[0].at_s == doctest::Approx(ten.back().at_s).epsilon(1e-12));
}

TEST_CASE("frame: destination and wire bytes, of a packet and of a run of segments") {
  // virtio header, IPv4 header of 20 bytes, TCP header of 32 bytes, 3000 bytes of payload
  std::vector<std::byte> bytes(10 + 20 + 32 + 3000);
  const auto put = [&](std::size_t at, int value) { bytes[at] = static_cast<std::byte>(value); };
  put(10, 0x45);
  put(26, 10), put(27, 83), put(28, 0), put(29, 2);
  put(30 + 12, 8 << 4);
  auto frame = parse_frame(bytes);
  REQUIRE(frame);
  CHECK(dotted(frame->destination) == "10.83.0.2");
  CHECK(frame->wire_bytes == 3052);
  CHECK(frame->segment_bytes == 3052);

  put(1, 1);  // TCP over IPv4, in pieces of 1448 bytes
  const std::uint16_t piece = 1448;
  std::memcpy(&bytes[4], &piece, sizeof piece);
  frame = parse_frame(bytes);
  REQUIRE(frame);
  CHECK(frame->wire_bytes == 3000 + 3 * 52);  // 1448, 1448 and 104
  CHECK(frame->segment_bytes == 1500);

  put(10, 0x60);  // IPv6
  CHECK_FALSE(parse_frame(bytes));
  CHECK_FALSE(parse_frame(std::span(bytes).first(29)));
}

TEST_CASE("frame: a shortened run has the right lengths and checksums, and not the flags of its end") {
  std::vector<std::byte> bytes(10 + 20 + 32 + 3000);
  const auto put = [&](std::size_t at, int value) { bytes[at] = static_cast<std::byte>(value); };
  const auto word = [&](std::size_t at) {
    return std::to_integer<unsigned>(bytes[at]) << 8 | std::to_integer<unsigned>(bytes[at + 1]);
  };
  const auto folded = [](unsigned sum) {
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
  };
  // Addresses, protocol and length of TCP, as the sender's kernel leaves them in the checksum's place.
  const auto pseudo_header = [&](unsigned tcp_bytes) {
    return folded(word(22) + word(24) + word(26) + word(28) + 6 + tcp_bytes);
  };
  put(1, 1);
  const std::uint16_t piece = 1448;
  std::memcpy(&bytes[4], &piece, sizeof piece);
  put(10, 0x45), put(12, 3052 >> 8), put(13, 3052 & 0xff), put(19, 6);
  put(22, 10), put(23, 83), put(25, 1), put(26, 10), put(27, 83), put(29, 2);
  put(30 + 12, 8 << 4), put(30 + 13, 0x19);  // ACK, PSH, FIN
  const unsigned sum = pseudo_header(3032);
  put(46, static_cast<int>(sum >> 8)), put(47, static_cast<int>(sum & 0xff));

  std::vector<std::byte> same = bytes;
  keep_segments(same, 3);
  CHECK(same == bytes);
  for (const std::size_t kept : {2, 1}) {
    CAPTURE(kept);
    keep_segments(bytes, kept);
    REQUIRE(bytes.size() == 10 + 52 + kept * 1448);
    CHECK(word(12) == 52 + kept * 1448);
    unsigned of_ip = 0;
    for (std::size_t i = 10; i < 30; i += 2) of_ip += word(i);
    CHECK(folded(of_ip) == 0xffff);  // RFC 1071
    CHECK(word(46) == pseudo_header(static_cast<unsigned>(32 + kept * 1448)));
    CHECK(std::to_integer<int>(bytes[43]) == 0x10);
    const auto frame = parse_frame(bytes);
    REQUIRE(frame);
    CHECK(frame->wire_bytes == static_cast<double>(kept * 1500));
    CHECK(frame->segment_bytes == 1500);
  }
  CHECK(std::to_integer<int>(bytes[1]) == 0);  // one segment is no run
}

TEST_CASE("layout: rates of payload become rates of packets with their headers") {
  Platform p = uniform(2, 1448e3, 2896e3, 0);
  p.payload_rates = true;
  const Layout layout = lay_out(p, {});
  CHECK(layout.links[0].bytes_per_s == doctest::Approx(1500e3));
  CHECK(layout.links[1].bytes_per_s == doctest::Approx(3000e3));
}
