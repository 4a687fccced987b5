// The connections between nodes, and the queues of the links between sites. Bursts of payload, and their
// acknowledgements, pass the queues of their way one after the other. It keeps its own events, in the order
// of time; the caller says how far they may run, since only it knows what else happens.
//
// If a pair of nodes has more than kMostLines connections, each line stands for several that do the same at
// the same time: a line computes one of them, and puts the bytes of all into the queues.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"
#include "sim/tcp/connection.hpp"
#include "sim/tcp/event_queue.hpp"
#include "sim/tcp/link_queue.hpp"

namespace fomoe::sim {

class TcpNetwork {
 public:
  /// Called when a pair of nodes has data to send over a link that is down.
  using IfDown = std::function<void(costmodel::NodeId from, costmodel::NodeId to)>;
  /// The references must outlive the object.
  TcpNetwork(const std::vector<costmodel::Node>& nodes, const costmodel::NetworkModel& network,
             std::uint64_t seed, IfDown if_down);

  /// Starts anew at time 0, with connections that have carried nothing. `platform` is the effective platform
  /// (costmodel::effective_platform) in its present state, which must outlive the run. `described` is the
  /// platform without what its changes have done: queues keep the room that they have there. `stream` selects
  /// the random draws.
  void restart(const platforms::Platform& platform, const platforms::Platform& described,
               std::uint64_t stream);
  /// The platform's links have changed.
  void change(double now_s);
  /// Ends all messages without events, and closes all connections.
  void close_all();
  /// The lines of a pair of nodes, and the connections that one of them stands for.
  static constexpr int kMostLines = 8;
  [[nodiscard]] static int lines(int streams) { return std::min(streams, kMostLines); }
  [[nodiscard]] static int alike(int streams, int line) {
    return streams / lines(streams) + (line < streams % lines(streams) ? 1 : 0);
  }
  /// Sends equal parts of a message, `bytes` in all, on one of the lines of a pair of nodes of different
  /// sites. At most as many parts as connections of the line: fewer take as long, but the others, which carry
  /// nothing then, load the links as well.
  void put(double now_s, costmodel::NodeId from, costmodel::NodeId to, int line, std::int64_t bytes,
           std::int64_t parts, PartEvents& events);
  /// A node tells another on one of their lines that it is ready for a message.
  void announce(double now_s, costmodel::NodeId from, costmodel::NodeId to, int line);
  /// When the next event is; infinite if there is none.
  [[nodiscard]] double next_event_s() const;
  /// Runs the events up to the time `until_s`, which the events themselves may lower.
  void run(const double& until_s);

 private:
  /// A link on a way: the queue of all connections, or what limits each connection by itself, which is the
  /// shared link of that number or, for all() shared links, the rate that a single connection reached there.
  struct Hop {
    LinkQueue* queue = nullptr;
    int alone = -1;
    bool data_only = false;    // acknowledgements do not pass it
    std::uint32_t source = 0;  // of the events when bursts have passed it
  };
  struct Way {
    std::vector<Hop> hops;
    std::size_t before_latency = 0;  // number of hops that a burst passes before it travels
    double latency_s = 0;
  };
  /// A connection in its place.
  struct Line {
    int from_site, to_site;
    costmodel::NodeId from, to;
    int alike;         // connections that it stands for
    Connection tcp;    // one of them
    std::uint64_t id;  // for draws
    std::uint64_t draws = 0;
    double bytes_to_loss = 0;                            // until a segment is lost by chance
    bool stalled = false;                                // waits for its uplink, which is down
    std::vector<std::unique_ptr<LinkQueue>> alone = {};  // [Hop::alone], of what limits it by itself
  };
  enum class What : std::uint8_t { hop, left_host, pump };
  struct Event {
    What what = What::hop;
    std::uint32_t index = 0;  // of the burst (hop), or of the line
    std::int64_t bytes = 0;   // that have left the host
  };

  void make_links(const platforms::Platform& platform);
  Way make_way(const platforms::Platform& platform, int from, int to);
  [[nodiscard]] const Way& way(int from, int to) const {
    return ways_[static_cast<std::size_t>(from) * sites_ + static_cast<std::size_t>(to)];
  }
  [[nodiscard]] double opened_s(int line, int lines) const;
  std::uint32_t line(costmodel::NodeId from, costmodel::NodeId to, int number);
  double draw(Line& line) const;
  void stall(What what, std::uint32_t index, const Line& line);
  void pump(double now_s, std::uint32_t index);
  void hop(double now_s, std::uint32_t index);
  double send_through(LinkQueue& queue, double now_s, const Hop& at, Burst& burst, const Line& line);
  void arrive(double now_s, std::uint32_t index);
  std::int64_t lost_by_chance(Line& line, std::int64_t bytes) const;

  const std::vector<costmodel::Node>& nodes_;
  const costmodel::NetworkModel& network_;
  const std::uint64_t seed_;
  const IfDown if_down_;
  std::uint64_t stream_ = 0;
  std::size_t sites_;
  const platforms::Platform* platform_ = nullptr;  // its present state
  std::vector<LinkQueue> up_, down_, shared_;      // [site], [site], [shared link]
  std::map<std::pair<int, int>, LinkQueue> path_;  // by sites, of the paths that may limit something
  std::vector<Way> ways_;                          // [from site · sites + to site]
  std::vector<std::unique_ptr<Line>> lines_;
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> line_of_;  // (from · nodes + to, number)
  std::vector<Burst> bursts_;
  std::vector<std::uint32_t> free_bursts_;
  EventQueue<Event> events_;  // sources: what leaves the host of each site, then each link of each way
  std::vector<std::pair<What, std::uint32_t>> stalled_;  // what waits for a link that is down
  std::uint64_t openings_ = 0;  // how often all connections were closed: later ones draw other numbers
};

}  // namespace fomoe::sim
