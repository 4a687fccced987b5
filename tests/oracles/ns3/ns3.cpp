#include "tests/oracles/ns3/ns3.hpp"

#include <map>
#include <sstream>
#include <stdexcept>

#include "tests/oracles/comparison.hpp"
#include "tests/sim/transfers.hpp"

namespace fomoe::oracles {

using costmodel::Collective;
using costmodel::Pattern;

Ns3Answer ns3_transfer(const std::string& traffic, const Tcp& tcp, const Star& star, long bytes) {
  std::ostringstream command;
  command.precision(15);
  command << '\'' << FOMOE_BINARY_DIR << "/oracle_tcp_transfer' " << traffic << ' ' << tcp.kind << ' '
          << static_cast<long>(tcp.queue_bytes) << ' ' << tcp.window_bytes << ' ' << tcp.segments_an_ack
          << ' ' << bytes;
  for (const StarSite& site : star)
    command << ' ' << site.up_bits_per_s << ',' << site.down_bits_per_s << ',' << site.half_latency_s;
  // A cache, since cases that differ only in fomoe's terms have the same ns-3 result.
  static std::map<std::string, Ns3Answer> known;
  if (const auto found = known.find(command.str()); found != known.end()) return found->second;
  const std::string output = output_of(command.str());
  Ns3Answer answer{std::vector<double>(star.size(), -1), -1};
  std::istringstream lines(output);
  for (std::string word; lines >> word;) {
    int site = 0;
    double end_s = 0;
    if (word == "end" && lines >> site >> end_s) answer.end_s.at(static_cast<std::size_t>(site)) = end_s;
    if (word == "dropped") lines >> answer.dropped;
  }
  if (answer.dropped < 0 || latest(answer.end_s) <= 0)
    throw std::runtime_error("no answer in the output of ns-3:\n" + output);
  return known[command.str()] = answer;
}

std::vector<double> fomoe_transfer(const std::string& traffic, const Star& star, long bytes,
                                   const costmodel::NetworkModel& network) {
  const int n = static_cast<int>(star.size());
  platforms::Platform platform = platforms::uniform(n, 1, 1, 0);
  for (int a = 0; a < n; ++a) {
    const StarSite& site = star[static_cast<std::size_t>(a)];
    platform.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s = site.up_bits_per_s / 8;
    platform.sites[static_cast<std::size_t>(a)].downlink_bytes_per_s = site.down_bits_per_s / 8;
    for (int b = 0; b < n; ++b)
      platform.set_latency(a, b, site.half_latency_s + star[static_cast<std::size_t>(b)].half_latency_s);
  }
  const long elements = bytes / 4;
  const auto all_reduce = [&](Collective collective) {
    return tests::transfer_only(n, Pattern::all_reduce, collective,
                                {tests::exchange_of(tests::first(n), elements)});
  };
  if (traffic == "ring" || traffic == "direct")
    return fomoe_end_s(all_reduce(traffic == "ring" ? Collective::ring : Collective::direct), platform,
                       network);
  std::vector<costmodel::Exchange> exchanges;
  for (int other = 1; other < (traffic == "bulk" || traffic == "again" ? 2 : n); ++other)
    exchanges.push_back(
        tests::exchange_of(traffic == "fan-in" ? std::vector{other, 0} : std::vector{0, other}, elements));
  costmodel::Plan plan =
      tests::transfer_only(n, Pattern::point_to_point, Collective::ring, std::move(exchanges));
  if (traffic == "again") {
    costmodel::RoundPlan round = plan.round(0);
    round.ops.push_back({"pause", costmodel::Compute{costmodel::Work::whole_step, {0, 1}, 1, 1}, {0}});
    round.ops.push_back(round.ops[0]);
    round.ops.back().after = {1};
    plan.round = [round](std::int64_t) { return round; };
  }
  return fomoe_end_s(plan, platform, network, kPause_s);
}

}  // namespace fomoe::oracles
