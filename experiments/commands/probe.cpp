#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <thread>

#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/probe/coordinator.hpp"
#include "experiments/probe/launch.hpp"
#include "experiments/probe/site.hpp"
#include "experiments/text/human.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

constexpr int kMostStreams = 64;

int in_range(const po::variables_map& values, const char* option, int least, int most, const char* example) {
  const int value = values[option].as<int>();
  if (value < least || value > most)
    throw InputError(fmt::format("--{}", option), std::to_string(value), fmt::format("{} to {}", least, most),
                     fmt::format("--{} {}", option, example));
  return value;
}

std::vector<int> stream_counts(const std::string& text) {
  std::vector<int> counts;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const bool number = !item.empty() && item.size() <= 2 &&
                        std::all_of(item.begin(), item.end(), [](char c) { return c >= '0' && c <= '9'; });
    const int count = number ? std::stoi(item) : 0;
    if (count < 1 || count > kMostStreams || std::find(counts.begin(), counts.end(), count) != counts.end())
      throw InputError("--streams", '"' + text + '"',
                       fmt::format("numbers from 1 to {}, each once, with commas between", kMostStreams),
                       "--streams 1,4,16");
    counts.push_back(count);
  }
  if (counts.empty()) throw InputError("--streams", "nothing", "at least one number", "--streams 1,4,16");
  return counts;
}

std::string site_name(const std::string& name) {
  const bool usable = name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                        return c > ' ' && c < 127 && c != '"' && c != '\\' && c != ',';
                      });
  if (!usable)
    throw InputError("--name", '"' + name + '"',
                     "at most 64 letters, digits and signs, without spaces, quotes, commas and backslashes",
                     "--name paris");
  return name;
}

std::string host_name() {
  std::array<char, 256> text{};
  ::gethostname(text.data(), text.size() - 1);
  return text[0] == 0 ? "site" : text.data();
}

probe::Hello hello_of(const probe::Launch& launch, const po::variables_map& values) {
  probe::Hello hello;
  hello.rank = launch.rank;
  hello.world = launch.world;
  hello.name = site_name(values["name"].as<std::string>());
  hello.host = host_name();
  hello.address = values["address"].as<std::string>();
  if (hello.address.empty() && launch.rank == 0) hello.address = launch.master;
  hello.iperf3 = probe::iperf3_version();
  return hello;
}

/// The site of rank 0. It runs in a thread of rank 0's process and has a control connection, like every other
/// site.
class OwnSite {
 public:
  explicit OwnSite(int first_port) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw std::runtime_error("cannot create a pair of sockets");
    ours_.emplace(Descriptor(ends[0]));
    thread_ = std::thread([other = probe::LineSocket(Descriptor(ends[1])), first_port]() mutable {
      try {
        (void)probe::serve_site(other, first_port);
      } catch (const probe::ConnectionLost&) {
        // Rank 0 has ended with another error and reports that one.
      }
    });
  }
  ~OwnSite() {
    ours_.reset();  // closes the connection if the coordinator does not own it yet
    thread_.join();
  }
  OwnSite(const OwnSite&) = delete;
  OwnSite& operator=(const OwnSite&) = delete;
  probe::LineSocket take() {
    probe::LineSocket taken = std::move(*ours_);
    ours_.reset();
    return taken;
  }

 private:
  std::optional<probe::LineSocket> ours_;
  std::thread thread_;
};

std::string coordinate(const probe::Launch& launch, const probe::Hello& hello,
                       const probe::MeasureOptions& options, const std::string& platform_name, int first_port,
                       double wait_s) {
  const std::optional<Descriptor> listener = probe::listen_on(launch.port);
  if (!listener)
    throw InputError("MASTER_PORT", std::to_string(launch.port) + ", which is in use on this machine",
                     "a free port",
                     fmt::format("MASTER_PORT={}", launch.port < 65000 ? launch.port + 7 : 29500));
  OwnSite own(first_port);
  std::vector<probe::Site> sites = probe::gather_sites(*listener, hello, own.take(), probe::now_s() + wait_s);
  message(fmt::format("{} sites; this takes about {}", sites.size(),
                      human_time(probe::expected_s(static_cast<int>(sites.size()), options))));
  try {
    const probe::Measurements measured = probe::measure(sites, options, message);
    for (const std::string& line : probe::warnings(measured)) message(line);
    std::string text = probe::platform_toml(measured, platform_name);
    probe::end_all(sites, "");
    return text;
  } catch (const std::exception& error) {
    probe::end_all(sites, error.what());
    throw;
  }
}

void follow(const probe::Launch& launch, const probe::Hello& hello, int first_port, double wait_s) {
  std::string error;
  try {
    probe::LineSocket rank0(probe::connect_to(launch.master, launch.port, probe::now_s() + wait_s));
    rank0.send(probe::to_json(hello));
    error = probe::serve_site(rank0, first_port);
  } catch (const probe::ConnectionLost& lost) {
    throw std::runtime_error(fmt::format("the connection to rank 0 is lost: {}", lost.what()));
  }
  if (!error.empty()) throw std::runtime_error(error);
}

}  // namespace

void run_probe(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("output", po::value<std::string>()->default_value("")->value_name("FILE.toml"),
                        "platform file that rank 0 writes (default: stdout of rank 0)")(
      "name", po::value<std::string>()->default_value("")->value_name("NAME"),
      "name of this site (default: its host's name)")(
      "streams", po::value<std::string>()->default_value("1,4,16")->value_name("N,…"),
      "numbers of TCP connections to try for each pair of sites, 1 to 64; the best number is used (only rank "
      "0's option counts)")(
      "seconds", po::value<int>()->default_value(3)->value_name("S"),
      "duration of each transfer in seconds, without its omitted start (only rank 0's option counts)")(
      "repeat", po::value<int>()->default_value(3)->value_name("N"),
      "number of repetitions of each transfer, to measure the spread (only rank 0's option counts)")(
      "port", po::value<int>()->default_value(5201)->value_name("PORT"),
      "first of the 64 ports among which this site takes free ones to listen on")(
      "address", po::value<std::string>()->default_value("")->value_name("ADDRESS"),
      "address at which other sites reach this site (default: the source address of its connection to rank "
      "0)")("wait", po::value<int>()->default_value(300)->value_name("S"),
            "seconds to wait for the other sites");
  const Help help = {
      "probe",
      "--output platform.toml [options]",
      "Measures the links between sites and writes a platform file for platform.file. Start it once at "
      "every\nsite with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment, as torchrun, srun "
      "and\nfomoe-wan run do. First it measures the round trip and iperf3's rate of each ordered pair of "
      "sites, with\nno other transfer at the same time. Then each site sends to one other site at once, one "
      "site sends to all\nothers, and all others send to one, which shows the limits of the sites' own "
      "links. Rates are TCP payload.\nThe file gives the median, the smallest and the largest value of each. "
      "Every site needs iperf3, and the\nports from 5201 on (--port) must be open between the sites.",
      {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 fomoe probe --name paris --output "
       "platform.toml",
       "RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 fomoe probe --name tokyo",
       "torchrun --no-python --nnodes 2 --nproc-per-node 1 … fomoe probe --output platform.toml",
       "fomoe-wan run experiments/scenarios/two-sites.toml --set platform.bandwidth=100Mbps -- "
       "fomoe probe --output platform.toml"}};
  const auto values = parse(arguments, help, options, "argument", Positionals::none);
  if (!values) return;
  const std::string path = (*values)["output"].as<std::string>();
  const Output output("--output", path, {".toml"});
  probe::MeasureOptions measure;
  measure.streams = stream_counts((*values)["streams"].as<std::string>());
  measure.seconds = in_range(*values, "seconds", 1, 600, "3");
  measure.repetitions = in_range(*values, "repeat", 1, 1000, "3");
  const int first_port = in_range(*values, "port", 1024, 65535 - probe::kPorts, "5201");
  const double wait_s = in_range(*values, "wait", 1, 86400, "300");
  const probe::Launch launch = probe::read_launch(probe::process_environment);
  const probe::Hello hello = hello_of(launch, *values);
  // A site without iperf3 connects too. Rank 0 then reports that iperf3 is missing; otherwise the other sites
  // would wait for this site until their time is over.
  if (launch.rank > 0) return follow(launch, hello, first_port, wait_s);
  if (hello.iperf3.empty())
    throw InputError("PATH", "no iperf3 in it", "iperf3 at every site", "apt-get install iperf3");
  const std::string stem = std::filesystem::path(path).stem().string();
  output.write(
      coordinate(launch, hello, measure, stem.empty() || stem == "-" ? "probed" : stem, first_port, wait_s));
}

}  // namespace fomoe::commands
