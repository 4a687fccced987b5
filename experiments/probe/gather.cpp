// Accepts the control connections of all sites, and tells the sites to end.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/probe/coordinator.hpp"

namespace fomoe::probe {

using nlohmann::json;

namespace {

constexpr const char* kSchema = "fomoe.probe/1";
constexpr double kHello_s = 5;

Hello hello_from(const json& line) {
  Hello hello;
  hello.rank = whole_number(line, "rank");
  hello.world = whole_number(line, "world");
  hello.name = line.at("name");
  hello.host = line.at("host");
  hello.address = line.at("address");
  hello.iperf3 = line.at("iperf3");
  return hello;
}

std::string of_rank(const Hello& hello) {
  return fmt::format("{} (rank {})", hello.name.empty() ? hello.host : hello.name, hello.rank);
}

void refuse_what_differs(const Hello& hello, int world) {
  if (hello.world != world)
    throw std::runtime_error(fmt::format("{}: WORLD_SIZE: got {}; expected the value of rank 0, {}",
                                         of_rank(hello), hello.world, world));
  if (hello.iperf3.empty())
    throw std::runtime_error(
        fmt::format("{}: iperf3 is not on PATH; on Debian and Ubuntu install it with apt-get install iperf3",
                    of_rank(hello)));
}

std::string missing_ranks(const std::vector<std::optional<Hello>>& hellos) {
  std::string list;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    if (!hellos[rank]) list += fmt::format("{}rank {}", list.empty() ? "" : ", ", rank);
  }
  return list;
}

}  // namespace

json to_json(const Hello& hello) {
  return {{"schema", kSchema},  {"rank", hello.rank},       {"world", hello.world},  {"name", hello.name},
          {"host", hello.host}, {"address", hello.address}, {"iperf3", hello.iperf3}};
}

std::vector<std::string> site_names(const std::vector<Hello>& hellos) {
  std::vector<std::string> names;
  for (const Hello& one : hellos) {
    const auto of_host = [&](const Hello& other) { return other.name.empty() && other.host == one.host; };
    const bool alone = std::count_if(hellos.begin(), hellos.end(), of_host) == 1;
    names.push_back(!one.name.empty() ? one.name
                    : alone           ? one.host
                                      : fmt::format("{}-{}", one.host, one.rank));
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      throw std::runtime_error(
          fmt::format("--name: got \"{}\" at two sites; expected different names; for example --name {}-{}",
                      names.back(), names.back(), one.rank));
  }
  return names;
}

std::vector<Site> gather_sites(const Descriptor& listener, const Hello& first, LineSocket own,
                               double until_s) {
  const auto world = static_cast<std::size_t>(first.world);
  std::vector<std::optional<Hello>> hellos(world);
  std::vector<std::optional<LineSocket>> connections(world);
  hellos[0] = first;
  connections[0].emplace(std::move(own));
  try {
    refuse_what_differs(first, first.world);
    while (!missing_ranks(hellos).empty()) {
      std::string peer;
      std::optional<Descriptor> socket = accept_from(listener, until_s, &peer);
      if (!socket)
        throw SiteLost(fmt::format(
            "{} did not connect: check that fomoe probe runs there and can reach MASTER_ADDR and MASTER_PORT",
            missing_ranks(hellos)));
      LineSocket connection(std::move(*socket));
      Hello hello;
      try {
        const std::optional<json> line = connection.receive(now_s() + kHello_s);
        // A port scanner or another version of this program.
        if (!line || line->value("schema", "") != kSchema) continue;
        hello = hello_from(*line);
      } catch (const ConnectionLost&) {
        continue;
      } catch (const json::exception&) {
        continue;
      }
      const auto rank = static_cast<std::size_t>(hello.rank);
      const bool new_rank = hello.rank > 0 && rank < world && !hellos[rank];
      if (new_rank) connections[rank].emplace(std::move(connection));
      refuse_what_differs(hello, first.world);
      if (!new_rank)
        throw std::runtime_error(fmt::format(
            "{} at {}: another site has the same rank; expected each rank once", of_rank(hello), peer));
      if (hello.address.empty()) hello.address = peer;
      hellos[rank] = hello;
    }
    std::vector<Hello> all;
    for (const auto& hello : hellos) all.push_back(*hello);
    const std::vector<std::string> names = site_names(all);
    std::vector<Site> sites;
    for (std::size_t rank = 0; rank < world; ++rank)
      sites.push_back({names[rank], all[rank].address, all[rank].iperf3, std::move(*connections[rank])});
    return sites;
  } catch (const std::exception& error) {
    for (auto& connection : connections) {
      try {
        if (connection) connection->send({{"do", "end"}, {"error", error.what()}});
      } catch (const ConnectionLost&) {
        // The site is gone, and the error concerns another site.
      }
    }
    throw;
  }
}

void end_all(std::vector<Site>& sites, const std::string& error) noexcept {
  for (Site& site : sites) {
    try {
      site.connection.send({{"do", "end"}, {"error", error}});
    } catch (const std::exception&) {
      // The site is gone already.
    }
  }
}

}  // namespace fomoe::probe
