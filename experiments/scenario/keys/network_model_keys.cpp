// Keys of the effects between link rates and payload rates.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::NetworkModel;

constexpr KeyMember hosts = {.names = costmodel::all_names<costmodel::Host>};

bool set_loss_rate(Scenario& scenario, double value) {
  assign(scenario.network.loss_rate, value);
  return scenario.network.congestion_control != costmodel::CongestionControl::bbr;
}
constexpr KeyMember loss_rate = {.set = set_loss_rate, .get = member<&NetworkModel::loss_rate>.get};

constexpr Key kNetworkModelKeys[] = {
    {"host", Kind::choice, "\"linux\"", "",
     "terms that are not given: those of an ordinary Linux host (headers, growth of TCP's windows, windows "
     "that shrink when idle, socket buffers), or off",
     "\"ideal\"", hosts},
    {"bandwidth_efficiency", Kind::share, "",
     "0.949 with host = \"linux\", packets of 1500 bytes and rates that include headers, else 1",
     "share of every link rate that is available to payload", "0.956",
     member<&NetworkModel::bandwidth_efficiency>, links},
    {"background_share", Values(Kind::share, 0.99), "", "no other traffic",
     "share of every link's rate that other traffic always uses", "0.2",
     member<&NetworkModel::background_share>, links},
    {"latency_factor", Values(Kind::multiple, 1e3), "1.0", "", "factor on every latency", "1.1",
     member<&NetworkModel::latency_factor>, links},
    {"jitter", Kind::latency, "\"0ms\"", "",
     "upper bound of a uniformly distributed delay that is added to every flow's latency", "\"5ms\"",
     member<&NetworkModel::jitter_s>, links, "jitter_s"},
    {"call_overhead", Kind::latency, "\"0ms\"", "",
     "time that each site needs before each call of a collective", "\"1ms\"",
     member<&NetworkModel::call_overhead_s>, links, "call_overhead_s"},
    {"payload_rate", Kind::rate, "",
     "the rate that a profile measured, otherwise local processing takes no time",
     "rate at which a site copies, encodes and adds payloads, before it sends each part", "\"10Gbps\"",
     member<&NetworkModel::payload_bytes_per_s>, links, "payload_bytes_per_s"},
    {"streams", Values(Kind::count, 65536), "1", "",
     "TCP connections between two machines; a flow between sites with several gateways has as many for each "
     "gateway",
     "16", member<&NetworkModel::streams>, links},
    {"tcp_window", Kind::size, "", "windows do not limit any flow",
     "largest window of one connection; limits each connection to window / round trip", "\"16MiB\"",
     member<&NetworkModel::tcp_window_bytes>, links, "tcp_window_bytes"},
    {"send_buffer", Kind::size, "", "4MiB with host = \"linux\", else send buffers do not limit any flow",
     "largest send buffer of a connection's socket, the third number of net.ipv4.tcp_wmem; limits "
     "each connection to 2/3 x send_buffer / round trip",
     "\"4MiB\"", member<&NetworkModel::send_buffer_bytes>, links, "send_buffer_bytes"},
    {"receive_buffer", Kind::size, "",
     "6MiB with host = \"linux\", else receive buffers do not limit any flow",
     "largest receive buffer of a connection's socket, the third number of net.ipv4.tcp_rmem; its window is "
     "half of it, which limits each connection to 1/2 x receive_buffer / round trip",
     "\"6MiB\"", member<&NetworkModel::receive_buffer_bytes>, links, "receive_buffer_bytes"},
    {"uplink_queue", Kind::choice, "\"host\"", "",
     "where data wait for the uplink; host: in the site's own hosts, which never drop them; router: in a "
     "router, where acknowledgements wait behind data; only with initial_window",
     "\"router\"", member<&NetworkModel::uplink_queue>},
    {"queue_bdp", Values(Kind::multiple, 1e6), "1.0", "",
     "room of each link's queue, in the link's rate x its longest round trip, at least 256 KiB; only with "
     "initial_window",
     "8.0", member<&NetworkModel::queue_bdp>, links},
    {"loss_rate", Kind::share, "", "no loss",
     "share p of segments that are lost; with reno, a connection is limited to segment / round trip x "
     "sqrt(3 / 2p); with cubic, to what RFC 9438 gives",
     "0.0001", loss_rate, links},
    {"congestion_control", Kind::choice, "\"cubic\"", "",
     "TCP congestion control; bbr keeps its rate after losses and idle times, and probes every 10 s",
     "\"bbr\"", member<&NetworkModel::congestion_control>},
    {"segment_size", Kind::size, "", "1448 B with host = \"linux\" and packets of 1500 bytes, else 1460 B",
     "payload of a TCP segment: windows grow, and losses are counted, by segments", "\"1460B\"",
     member<&NetworkModel::segment_bytes>, links, "segment_bytes"},
    {"initial_window", Kind::size, "",
     "10 segments with host = \"linux\", else connections are not simulated",
     "initial window of a connection; switches the simulation of connections on, with windows and queues",
     "\"14600B\"", member<&NetworkModel::initial_window_bytes>, links, "initial_window_bytes"},
    {"idle_restart", Kind::boolean, "", "true with host = \"linux\", else false",
     "whether the window halves for each retransmission time-out in which a connection was idle, as in "
     "Linux; with initial_window",
     "true", member<&NetworkModel::idle_restart>},
    {"receives_ahead", Values(Kind::count, 1024), "1", "",
     "steps of a collective for which a site announces that it is ready before their turn; with more, a ring "
     "over latencies that differ does not wait for announcements, and holds that many more received chunks "
     "in "
     "memory; only with initial_window",
     "4", member<&NetworkModel::receives_ahead>, links},
    {"ring_model", Kind::choice, "\"stepwise\"", "",
     "model of a ring: stepwise simulates the chunks of a ring as flows one after another; fluid simulates "
     "all bytes of a hop as one flow",
     "\"fluid\"", member<&NetworkModel::ring_model>},
};

}  // namespace

std::vector<Key> network_model_keys() { return keys_in("network_model", kNetworkModelKeys); }

}  // namespace fomoe::scenario
