// A program that simulates transfers between sites over TCP in ns-3, packet by packet. It shares no code with
// fomoe.
//
//   tcp_transfer TRAFFIC TCP QUEUE_BYTES WINDOW_BYTES ACK_EVERY BYTES  UP,DOWN,HALF_LATENCY…
//
// Each site has one triple, in bit/s and seconds. A WINDOW_BYTES of 0 sets no limit.
//
// The network is a star. Each site's only link goes to a hub without limits, so the latency between two sites
// is the sum of their halves. Every queue is first in first out, holds QUEUE_BYTES, and drops packets that
// arrive when it is full. All connections are opened beforehand. TRAFFIC:
//   bulk     site 0 sends BYTES to site 1          fan     site 0 sends BYTES to every other
//   again    bulk, and once more 2 s after its end fan-in  every other sends BYTES to site 0
//   ring     2(n−1) steps, BYTES ÷ n to the next   direct  2 steps, BYTES ÷ n to every other
// A site begins a step when all data that it receives in earlier steps has arrived.
// The program prints the time at which each site ends, and the number of dropped packets.
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kSegmentBytes = 1448;  // 1500 − 20 (IP) − 20 (TCP) − 12 (time stamps)
constexpr double kStart_s = 10;           // by then every connection is open

struct Site {
  double up_bits_per_s = 0, down_bits_per_s = 0, half_latency_s = 0;
};

struct Flow {
  int from = 0, to = 0;
  uint64_t bytes = 0;
};

// The flows of each step.
std::vector<std::vector<Flow>> steps_of(const std::string& traffic, int n, uint64_t bytes) {
  std::vector<Flow> step;
  const uint64_t part = bytes / static_cast<uint64_t>(n);
  for (int a = 0; a < n; ++a) {
    for (int shift = 1; shift < n; ++shift) {  // each site begins with a different receiver
      const int b = (a + shift) % n;
      if (traffic == "ring" && b == (a + 1) % n) step.push_back({a, b, part});
      if (traffic == "direct") step.push_back({a, b, part});
      if ((traffic == "bulk" || traffic == "again") && a == 0 && b == 1) step.push_back({a, b, bytes});
      if (traffic == "fan" && a == 0) step.push_back({a, b, bytes});
      if (traffic == "fan-in" && b == 0) step.push_back({a, b, bytes});
    }
  }
  const int count = traffic == "ring" ? 2 * (n - 1) : traffic == "direct" || traffic == "again" ? 2 : 1;
  return std::vector<std::vector<Flow>>(static_cast<std::size_t>(count), step);
}

class Transfer {
 public:
  Transfer(ns3::NodeContainer nodes, std::vector<ns3::Ipv4Address> addresses,
           std::vector<std::vector<Flow>> steps, double pause_s)
      : nodes_(std::move(nodes)),
        addresses_(std::move(addresses)),
        steps_(std::move(steps)),
        pause_s_(pause_s),
        step_(addresses_.size(), -1),
        end_s_(addresses_.size(), 0) {}

  void connect() {
    for (const auto& step : steps_) {
      for (const Flow& flow : step) open(flow.from, flow.to);
    }
  }

  void start() {
    for (int site = 0; site < static_cast<int>(addresses_.size()); ++site) next_step(site);
  }
  [[nodiscard]] const std::vector<double>& end_s() const { return end_s_; }

 private:
  using Pair = std::pair<int, int>;

  void open(int from, int to) {
    if (senders_.count({from, to})) return;
    const auto port = static_cast<uint16_t>(5000 + from);
    const ns3::Ptr<ns3::Socket> listener =
        ns3::Socket::CreateSocket(nodes_.Get(static_cast<uint32_t>(to)), ns3::TcpSocketFactory::GetTypeId());
    listener->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
    listener->Listen();
    listener->SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                                ns3::Callback<void, ns3::Ptr<ns3::Socket>, const ns3::Address&>(
                                    [this, from, to](ns3::Ptr<ns3::Socket> socket, const ns3::Address&) {
                                      socket->SetRecvCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>>(
                                          [this, from, to](ns3::Ptr<ns3::Socket> readable) {
                                            while (const ns3::Ptr<ns3::Packet> packet = readable->Recv())
                                              received(from, to, packet->GetSize());
                                          }));
                                    }));
    const ns3::Ptr<ns3::Socket> sender = ns3::Socket::CreateSocket(nodes_.Get(static_cast<uint32_t>(from)),
                                                                   ns3::TcpSocketFactory::GetTypeId());
    sender->Bind();
    sender->Connect(ns3::InetSocketAddress(addresses_[static_cast<std::size_t>(to)], port));
    listeners_.push_back(listener);
    senders_[{from, to}] = sender;
  }

  // Each sender is checked separately, since one may be a step ahead.
  [[nodiscard]] bool has_all(int site) const {
    for (const auto& [pair, bytes] : missing_) {
      if (pair.second == site && bytes > 0) return false;
    }
    return true;
  }

  void received(int from, int to, uint32_t bytes) {
    missing_[{from, to}] -= bytes;
    const auto s = static_cast<std::size_t>(to);
    while (has_all(to)) {
      end_s_[s] = ns3::Simulator::Now().GetSeconds() - kStart_s;
      if (step_[s] + 1 == static_cast<int>(steps_.size())) return;
      if (pause_s_ >
          0) {  // the sender learns of the end at once, since the case tests only the effect of a silence
        ns3::Simulator::Schedule(ns3::Seconds(pause_s_), [this, from, to] {
          next_step(from);
          next_step(to);
        });
        return;
      }
      next_step(to);
    }
  }

  void next_step(int site) {
    const int step = ++step_[static_cast<std::size_t>(site)];
    for (const Flow& flow : steps_[static_cast<std::size_t>(step)]) {
      if (flow.from == site)
        senders_.at({flow.from, flow.to})->Send(ns3::Create<ns3::Packet>(static_cast<uint32_t>(flow.bytes)));
      if (flow.to == site) missing_[{flow.from, flow.to}] += static_cast<int64_t>(flow.bytes);
    }
  }

  ns3::NodeContainer nodes_;
  std::vector<ns3::Ipv4Address> addresses_;
  std::vector<std::vector<Flow>> steps_;
  double pause_s_;
  std::vector<int> step_;            // [site]: its current step
  std::map<Pair, int64_t> missing_;  // bytes missing for the receiver's step; negative if the sender is ahead
  std::vector<double> end_s_;
  std::map<Pair, ns3::Ptr<ns3::Socket>> senders_;
  std::vector<ns3::Ptr<ns3::Socket>> listeners_;
};

// Sets TCP to Linux's values where ns-3's defaults differ: sizes, and a minimum retransmission time-out of
// 200 ms.
void set_tcp(const std::string& tcp, uint32_t window_bytes, uint32_t segments_an_ack) {
  using ns3::Config::SetDefault;
  SetDefault("ns3::TcpL4Protocol::SocketType", ns3::StringValue("ns3::" + tcp));
  SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(kSegmentBytes));
  SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(10));
  SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(segments_an_ack));
  SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(400'000'000));
  SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(window_bytes ? window_bytes : 400'000'000));
  SetDefault("ns3::TcpSocketBase::WindowScaling", ns3::BooleanValue(true));
  SetDefault("ns3::TcpSocketBase::Sack", ns3::BooleanValue(true));
  SetDefault("ns3::TcpSocketBase::Timestamp", ns3::BooleanValue(true));
  SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::MilliSeconds(200)));
}

std::vector<Site> sites_of(char** begin, char** end) {
  std::vector<Site> sites;
  for (char** text = begin; text != end; ++text) {
    Site site;
    if (std::sscanf(*text, "%lf,%lf,%lf", &site.up_bits_per_s, &site.down_bits_per_s, &site.half_latency_s) !=
        3)
      std::exit(2);
    sites.push_back(site);
  }
  return sites;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 9) return 2;
  const std::string traffic = argv[1];
  set_tcp(argv[2], static_cast<uint32_t>(std::atol(argv[4])), static_cast<uint32_t>(std::atoi(argv[5])));
  const std::vector<Site> sites = sites_of(argv + 7, argv + argc);
  const int n = static_cast<int>(sites.size());

  ns3::NodeContainer nodes, hub;
  nodes.Create(static_cast<uint32_t>(n));
  hub.Create(1);
  ns3::InternetStackHelper().InstallAll();
  ns3::PointToPointHelper link;
  link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::StringValue(std::string(argv[3]) + "B"));
  ns3::Ipv4AddressHelper network("10.0.0.0", "255.255.255.0");
  std::vector<ns3::Ipv4Address> addresses;
  uint64_t dropped = 0;
  const ns3::Callback<void, ns3::Ptr<const ns3::Packet>> drop(
      [&dropped](ns3::Ptr<const ns3::Packet>) { ++dropped; });
  for (int i = 0; i < n; ++i) {
    const Site& site = sites[static_cast<std::size_t>(i)];
    link.SetChannelAttribute("Delay", ns3::TimeValue(ns3::Seconds(site.half_latency_s)));
    const ns3::NetDeviceContainer ends = link.Install(nodes.Get(static_cast<uint32_t>(i)), hub.Get(0));
    for (uint32_t e = 0; e < 2; ++e) {
      const auto device = ends.Get(e)->GetObject<ns3::PointToPointNetDevice>();
      device->SetDataRate(
          ns3::DataRate(static_cast<uint64_t>(e == 0 ? site.up_bits_per_s : site.down_bits_per_s)));
      device->GetQueue()->TraceConnectWithoutContext("Drop", drop);
    }
    // Only the device's queue is wanted. Assigning addresses installs a default queue, so it comes first.
    addresses.push_back(network.Assign(ends).GetAddress(0));
    ns3::TrafficControlHelper().Uninstall(ends);
    network.NewNetwork();
  }
  for (uint32_t i = 0; i < ns3::NodeList::GetNNodes(); ++i) {
    // If a device's queue is full, the traffic control layer of a node drops packets without offering them to
    // the queue. These drops are therefore traced as well.
    ns3::NodeList::GetNode(i)->GetObject<ns3::TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop",
                                                                                                 drop);
  }
  ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  Transfer transfer(nodes, addresses, steps_of(traffic, n, std::strtoull(argv[6], nullptr, 10)),
                    traffic == "again" ? 2.0 : 0.0);
  ns3::Simulator::Schedule(ns3::Seconds(1), [&] { transfer.connect(); });
  ns3::Simulator::Schedule(ns3::Seconds(kStart_s), [&] { transfer.start(); });
  ns3::Simulator::Stop(ns3::Seconds(kStart_s + 600));
  ns3::Simulator::Run();
  for (int i = 0; i < n; ++i) std::printf("end %d %.9f\n", i, transfer.end_s()[static_cast<std::size_t>(i)]);
  std::printf("dropped %llu\n", static_cast<unsigned long long>(dropped));
  ns3::Simulator::Destroy();
  return 0;
}
