// The order of the measurements: first round trips and single transfers with no other transfer at the same
// time; then transfers in which all sites take part at once, each sending to one other site; then transfers
// from all sites to one site, and from one site to all sites.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>

#include "experiments/probe/coordinator.hpp"

namespace fomoe::probe {

using nlohmann::json;

namespace {

constexpr int kPings = 20;
constexpr int kAttempts = 2;
// Seconds that a site may need beside the transfer itself, for connecting and ending.
constexpr double kSlack_s = 20;
constexpr double kAnswer_s = 10;  // seconds after a site's own limit until it counts as lost

/// A site could not do what was requested.
class Failed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Transfer {
  int from = 0, to = 0;
  int streams = 1;
};

struct Request {
  int rank = 0;
  int id = 0;
};

/// Sends requests to sites and matches their answers by id.
class Conversation {
 public:
  explicit Conversation(std::vector<Site>& sites) : sites_(sites) {}

  Request ask(int rank, json what) {
    const Request request{rank, ++last_id_};
    what["id"] = request.id;
    send(rank, what);
    wanted_.insert(request.id);
    return request;
  }

  json answer(const Request& request, double until_s) {
    while (!answers_.count(request.id)) listen(request.rank, until_s);
    json found = std::move(answers_.at(request.id));
    answers_.erase(request.id);
    wanted_.erase(request.id);
    if (found.contains("error")) throw Failed(found["error"].get<std::string>());
    return found;
  }

  /// Stops everything that a failed measurement left running.
  void stop(const Request& request) {
    wanted_.erase(request.id);
    answers_.erase(request.id);
    send(request.rank, {{"do", "stop"}, {"of", request.id}});
  }

 private:
  Site& site(int rank) { return sites_[static_cast<std::size_t>(rank)]; }

  [[noreturn]] void lost(int rank, const std::string& how) {
    throw SiteLost(
        fmt::format("{} (rank {}, {}) is lost: {}", site(rank).name, rank, site(rank).address, how));
  }

  void send(int rank, const json& line) {
    try {
      site(rank).connection.send(line);
    } catch (const ConnectionLost& error) {
      lost(rank, error.what());
    }
  }

  /// Receives from all sites, so that the loss of any site is noticed, even while this object waits for
  /// another site.
  void listen(int awaited, double until_s) {
    std::vector<pollfd> ready;
    for (const Site& one : sites_) ready.push_back({one.connection.descriptor(), POLLIN, 0});
    const double left_s = until_s - now_s();
    if (left_s <= 0) lost(awaited, "it does not answer");
    ::poll(ready.data(), ready.size(), static_cast<int>(std::ceil(left_s * 1e3)));
    for (int rank = 0; rank < static_cast<int>(sites_.size()); ++rank) {
      if (ready[static_cast<std::size_t>(rank)].revents == 0) continue;
      try {
        while (auto line = site(rank).connection.receive(now_s())) {
          const int id = line->value("id", -1);
          if (wanted_.count(id)) answers_[id] = std::move(*line);
        }
      } catch (const ConnectionLost& error) {
        lost(rank, error.what());
      }
    }
  }

  std::vector<Site>& sites_;
  int last_id_ = 0;
  std::set<int> wanted_;
  std::map<int, json> answers_;
};

class Measuring {
 public:
  Measuring(std::vector<Site>& sites, const MeasureOptions& options,
            const std::function<void(const std::string&)>& say)
      : sites_(sites), options_(options), say_(say), conversation_(sites) {
    for (const Site& site : sites) result_.sites.push_back(site.name);
    result_.pairs.resize(sites.size() * sites.size());
    result_.seconds = options.seconds;
    result_.repetitions = options.repetitions;
  }

  Measurements run() {
    const int n = result_.size();
    for_all_pairs([&](int from, int to) { measure_round_trips(from, to); });
    for_all_pairs([&](int from, int to) { measure_alone(from, to); });
    for (int shift = 1; shift < n; ++shift) measure_shift(shift);
    for (int site = 0; site < n && n > 2; ++site) measure_fans(site);
    return result_;
  }

 private:
  template <class Work>
  void for_all_pairs(Work work) {
    for (int from = 0; from < result_.size(); ++from) {
      for (int to = 0; to < result_.size(); ++to) {
        if (from != to) work(from, to);
      }
    }
  }

  const Site& site(int rank) const { return sites_[static_cast<std::size_t>(rank)]; }

  /// Runs `attempt` a second time if it fails once.
  template <class Attempt>
  auto persistently(Attempt attempt) {
    for (int tried = 1;; ++tried) {
      try {
        return attempt();
      } catch (const Failed& error) {
        if (tried == kAttempts) throw std::runtime_error(error.what());
        say_(fmt::format("repeating a measurement, because {}", error.what()));
      }
    }
  }

  [[noreturn]] void failed(int from, int to, const char* what, const std::string& why) const {
    throw Failed(fmt::format("{} from {} to {} ({}): {}", what, site(from).name, site(to).name,
                             site(to).address, why));
  }

  void measure_round_trips(int from, int to) {
    std::vector<double>& values = result_.pair(from, to).round_trips_s;
    values = persistently([&] {
      const json limit = {{"limit_s", kSlack_s}};
      json wait = limit, ping = limit;
      wait["do"] = "echo";
      const double until_s = now_s() + kSlack_s + kAnswer_s;
      const Request echo = conversation_.ask(to, wait);
      try {
        const int port = conversation_.answer(echo, until_s).at("port");
        ping.update({{"do", "ping"},
                     {"host", site(to).address},
                     {"port", port},
                     {"count", kPings * options_.repetitions}});
        return conversation_.answer(conversation_.ask(from, ping), until_s + kAnswer_s)
            .at("round_trips_s")
            .get<std::vector<double>>();
      } catch (const Failed& error) {
        conversation_.stop(echo);
        failed(from, to, "round trip", error.what());
      }
    });
    longest_round_trip_s_ = std::max(longest_round_trip_s_, spread_of(values).median);
  }

  /// Seconds at the start of each transfer that iperf3 does not count. TCP's window doubles every round trip,
  /// so the window needs ten round trips to grow a thousandfold. The window then exceeds what the path can
  /// carry, segments are lost, and TCP needs about another ten round trips to recover. When the lost segments
  /// arrive, TCP delivers the data behind them all at once, so that the measured rate would be too high.
  int omitted_s(double round_trip_s) const {
    return std::clamp(static_cast<int>(std::ceil(1 + 20 * round_trip_s)), 2, 15);
  }

  /// Runs all transfers at the same time. Returns the payload rate of each in bytes per second.
  std::vector<double> transfer(const std::vector<Transfer>& transfers, double round_trip_s) {
    return persistently([&] { return attempt(transfers, omitted_s(round_trip_s)); });
  }

  std::vector<double> attempt(const std::vector<Transfer>& transfers, int omit_s) {
    const double limit_s = options_.seconds + omit_s + kSlack_s, until_s = now_s() + limit_s + kAnswer_s;
    std::vector<Request> receivers, senders;
    std::size_t at = 0;
    try {
      for (const Transfer& one : transfers)
        receivers.push_back(conversation_.ask(one.to, {{"do", "receive"}, {"limit_s", limit_s}}));
      std::vector<int> ports;
      for (at = 0; at < transfers.size(); ++at)
        ports.push_back(conversation_.answer(receivers[at], until_s).at("port"));
      for (at = 0; at < transfers.size(); ++at) {
        senders.push_back(conversation_.ask(transfers[at].from, {{"do", "send"},
                                                                 {"host", site(transfers[at].to).address},
                                                                 {"port", ports[at]},
                                                                 {"streams", transfers[at].streams},
                                                                 {"seconds", options_.seconds},
                                                                 {"omit", omit_s},
                                                                 {"limit_s", limit_s}}));
      }
      std::vector<double> rates;
      for (at = 0; at < transfers.size(); ++at)
        rates.push_back(conversation_.answer(senders[at], until_s + kAnswer_s).at("bytes_per_s"));
      return rates;
    } catch (const Failed& error) {
      for (const Request& request : receivers) conversation_.stop(request);
      for (const Request& request : senders) conversation_.stop(request);
      failed(transfers[at].from, transfers[at].to, "transfer", error.what());
    }
  }

  void measure_alone(int from, int to) {
    PairMeasurements& pair = result_.pair(from, to);
    const double round_trip_s = spread_of(pair.round_trips_s).median;
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      for (const int streams : options_.streams)
        pair.alone[streams].push_back(transfer({{from, to, streams}}, round_trip_s).front());
    }
    const PathRate best = path_rate(result_, from, to);
    say_(fmt::format("{} to {}: {:.4g} Mbit/s with {} stream{}, round trip {:.4g} ms", site(from).name,
                     site(to).name, best.bytes_per_s.median * 8 / 1e6, best.streams,
                     best.streams == 1 ? "" : "s", round_trip_s * 1e3));
  }

  Transfer beside_others(int from, int to) const {
    return {from, to, streams_beside_others(result_, from, to)};
  }

  void measure_shift(int shift) {
    const int n = result_.size();
    std::vector<Transfer> transfers;
    for (int from = 0; from < n; ++from) transfers.push_back(beside_others(from, (from + shift) % n));
    say_(fmt::format("every site sends to one other site at the same time, {} of {}", shift, n - 1));
    repeat(transfers, &PairMeasurements::together);
  }

  void measure_fans(int centre) {
    std::vector<Transfer> out, in;
    for (int other = 0; other < result_.size(); ++other) {
      if (other == centre) continue;
      out.push_back(beside_others(centre, other));
      in.push_back(beside_others(other, centre));
    }
    say_(fmt::format("{} sends to all other sites at the same time, then receives from them",
                     site(centre).name));
    repeat(out, &PairMeasurements::with_the_senders_others);
    repeat(in, &PairMeasurements::with_the_receivers_others);
  }

  void repeat(const std::vector<Transfer>& transfers, std::vector<double> PairMeasurements::*where) {
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      const std::vector<double> rates = transfer(transfers, longest_round_trip_s_);
      for (std::size_t i = 0; i < rates.size(); ++i)
        (result_.pair(transfers[i].from, transfers[i].to).*where).push_back(rates[i]);
    }
  }

  std::vector<Site>& sites_;
  const MeasureOptions& options_;
  const std::function<void(const std::string&)>& say_;
  Conversation conversation_;
  Measurements result_;
  double longest_round_trip_s_ = 0;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string versions(const std::vector<Site>& sites) {
  std::set<std::string> known;
  for (const Site& site : sites) known.insert(site.iperf3);
  return fmt::format("{}", fmt::join(known, ", "));
}

}  // namespace

Measurements measure(std::vector<Site>& sites, const MeasureOptions& options,
                     const std::function<void(const std::string&)>& say) {
  Measurements measured = Measuring(sites, options, say).run();
  measured.date = today();
  measured.iperf3_version = versions(sites);
  return measured;
}

double expected_s(int sites, const MeasureOptions& options) {
  const double pairs = static_cast<double>(sites) * (sites - 1);
  const double together = (sites - 1) + (sites > 2 ? 2.0 * sites : 0.0);
  const double each_s = options.seconds + 3 + 0.5;  // the omitted start, and the time for starting and ending
  return (pairs * static_cast<double>(options.streams.size()) + together) * options.repetitions * each_s +
         pairs * 0.1 * (20 * options.repetitions + 5);
}

}  // namespace fomoe::probe
