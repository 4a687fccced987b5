// The program fomoe-wan: emulates a scenario's platform with network namespaces on this machine, and runs a
// command at every site. It exits with the command's status, with 2 if the input is wrong, and with 1 if this
// machine cannot do it.
#include <fmt/format.h>
#include <sched.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "platforms/wan/session/session.hpp"

namespace {

namespace po = boost::program_options;
namespace wan = fomoe::platforms::wan;
using fomoe::InputError;

constexpr int kWrongInput = 2, kFailure = 1;

class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr const char* kHelp =
    R"(fomoe-wan emulates a scenario's platform on this machine, with one network namespace per site

Usage: fomoe-wan check SCENARIO.toml [options]
       fomoe-wan run SCENARIO.toml [options] -- CMD [ARGUMENT…]

check  emulates the platform and measures it: the target and measured rates and
       round trips of all pairs of sites, and the largest throughput of the relay
run    does the same, and then runs CMD at each site with RANK, WORLD_SIZE,
       LOCAL_RANK, MASTER_ADDR, MASTER_PORT, GLOO_SOCKET_IFNAME,
       NCCL_SOCKET_IFNAME and FOMOE_LINKS, which tells reports that links were
       emulated; with --report also FOMOE_REPORT, a file for a RunReport

Every packet between two sites passes a relay. The relay limits uplinks, downlinks,
paths and backbones to the platform's rates, and delays packets by the platform's
latencies. Rates include IP and TCP headers; those of a platform with
rates = "payload" become higher by their headers. [network_model] and
connection_bandwidth are not applied. fomoe-wan needs user namespaces or root, and /dev/net/tun. It
never changes the host's interfaces, and removes everything that it creates when it
ends. The sites can reach each other and nothing else.

)";
constexpr const char* kExamples = R"(
Examples:
  fomoe-wan check experiments/scenarios/two-sites.toml --set platform.bandwidth=100Mbps
  fomoe-wan run experiments/scenarios/two-sites.toml --set platform.bandwidth=100Mbps --report run.json -- ip addr
)";

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
                        "override a key of the scenario; may be repeated")(
      "mtu", po::value<int>()->value_name("BYTES"),
      "MTU of every site's interface (default: that of the platform, 1500 unless it says another one); a "
      "larger MTU needs less CPU time in the relay")(
      "queue", po::value<std::string>()->default_value("8x")->value_name("SIZE|Nx"),
      "size of the packet queue of every link; Nx: N times the link's rate × its longest round trip, at "
      "least 256KiB; short queues drop packets, and more of them with --uplink-queue router; fomoe simulate "
      "has the same queues with network_model.queue_bdp and network_model.uplink_queue")(
      "uplink-queue", po::value<std::string>()->default_value("host")->value_name("host|router"),
      "where the packet queue of an uplink is: in the site's own kernel, which applies backpressure to "
      "sockets, or in a router behind the site, where acknowledgements wait behind data")(
      "cpus-per-site", po::value<int>()->value_name("N"),
      "pin each site to N cores and the relay to a core of its own (default: the kernel decides)")(
      "processes-per-site", po::value<int>()->default_value(1)->value_name("N"),
      "processes that run CMD at each site, with consecutive ranks; for fomoe-train the number of "
      "compute.gpus_per_site")(
      "cpu-quota", po::value<double>()->value_name("CORES"),
      "CPU time of CMD at each site, in cores; 0.4 is two fifths of a core (default: no limit)")(
      "congestion-control", po::value<std::string>()->value_name("NAME"),
      "TCP congestion control in every site (default: this machine's)")(
      "socket-buffers", po::value<std::string>()->default_value("system")->value_name("system|large"),
      "limits of TCP's buffers while CMD runs: this machine's, with which one connection may not fill a link "
      "of large bandwidth x latency, or large enough for every link")(
      "master-port", po::value<int>()->default_value(29500)->value_name("PORT"), "value of MASTER_PORT")(
      "no-check", "do not measure the emulation before CMD starts")(
      "report", po::value<std::string>()->value_name("FILE.json"),
      "file for the target and measured values, the exit status of each site and rank 0's RunReport")(
      "tun-device", po::value<std::string>()->default_value("/dev/net/tun")->value_name("FILE"),
      "TUN device of this machine")("help,h", "print this help and exit");
  return options;
}

void print_help(const po::options_description& options) {
  std::ostringstream table;
  table << options;
  fmt::print("{}{}{}", kHelp, table.str(), kExamples);
}

po::variables_map parse(const std::vector<std::string>& arguments, const po::options_description& options) {
  po::options_description all = options;
  all.add_options()("scenario", po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add("scenario", -1);
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map values;
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(positions).style(style).run(),
              values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : options.options()) known.push_back("--" + option->long_name());
    const std::string meant = fomoe::scenario::nearest(error.get_option_name(), known);
    throw UsageError(fmt::format("{}: unknown option; {}; write CMD's own options after --",
                                 error.get_option_name(),
                                 meant.empty() ? "see fomoe-wan --help" : "did you mean " + meant + "?"));
  } catch (const po::error& error) {
    throw UsageError(std::string(error.what()) + "; see fomoe-wan --help");
  }
  const std::size_t given =
      values.count("scenario") ? values["scenario"].as<std::vector<std::string>>().size() : 0;
  if (given != 1) {
    throw UsageError(fmt::format(
        "got {} scenarios; expected one; for example fomoe-wan check experiments/scenarios/two-sites.toml",
        given));
  }
  return values;
}

int in_range(const po::variables_map& values, const char* option, int least, int most, const char* example) {
  const int value = values[option].as<int>();
  if (value < least || value > most)
    throw InputError(std::string("--") + option, std::to_string(value), fmt::format("{} to {}", least, most),
                     example);
  return value;
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

double read_quota(double cores, int sites) {
  if (!(cores >= 0.01 && cores <= 1024))
    throw InputError("--cpu-quota", fmt::format("{}", cores), "0.01 to 1024 cores", "--cpu-quota 0.4");
  const auto all = static_cast<double>(allowed_cores().size());
  if (cores * sites + 1 > all)
    fmt::print(
        stderr,
        "fomoe-wan: {} sites of {} cores and one core for the relay are more than the {} cores of this "
        "machine, so the relay may forward packets late\n",
        sites, cores, all);
  return cores;
}

void read_queue(const std::string& text, wan::LayoutOptions& options) {
  if (text.ends_with('x')) {
    options.queue_products =
        fomoe::parse_number<double>(std::string_view(text).substr(0, text.size() - 1)).value_or(0);
    if (!(options.queue_products > 0 && options.queue_products <= 1000))
      throw InputError("--queue", text, "a size, or a number above 0 and up to 1000, followed by x",
                       "--queue 1x");
    return;
  }
  try {
    options.queue_bytes = fomoe::scenario::parse_quantity(text, fomoe::scenario::Quantity::size);
  } catch (const fomoe::scenario::QuantityError& error) {
    throw InputError("--queue", error.what(), "a size, or a number followed by x",
                     "--queue 512KiB or --queue 1x");
  }
  if (*options.queue_bytes < options.mtu)
    throw InputError("--queue", text, "at least the size of a packet (--mtu)", "--queue 512KiB");
}

wan::UplinkQueue read_uplink_queue(const std::string& text) {
  if (text == "host") return wan::UplinkQueue::host;
  if (text == "router") return wan::UplinkQueue::router;
  throw InputError("--uplink-queue", "\"" + text + "\"", "host or router", "--uplink-queue router");
}

wan::Buffers read_buffers(const std::string& text) {
  if (text == "system") return wan::Buffers::system;
  if (text == "large") return wan::Buffers::large;
  throw InputError("--socket-buffers", "\"" + text + "\"", "system or large", "--socket-buffers large");
}

constexpr int kLargestMtu = 65000;

void warn_of_connections(const fomoe::platforms::Platform& platform) {
  for (int from = 0; from < platform.size(); ++from)
    for (int to = 0; to < platform.size(); ++to)
      if (from != to &&
          platform.path(from, to).connection_bytes_per_s < platform.route_bytes_per_s(from, to)) {
        fmt::print(stderr,
                   "fomoe-wan: connection_bandwidth is not emulated, because it limits each connection by "
                   "itself; a connection from {} to {} may reach the rate of its links\n",
                   platform.sites[static_cast<std::size_t>(from)].name,
                   platform.sites[static_cast<std::size_t>(to)].name);
        return;
      }
}

wan::Layout read_layout(const po::variables_map& values) {
  wan::LayoutOptions options;
  fomoe::scenario::ReadOptions read;
  if (values.count("set")) read.overrides = values["set"].as<std::vector<std::string>>();
  read.compute_required = false;
  const auto scenario =
      fomoe::scenario::read_scenario(values["scenario"].as<std::vector<std::string>>().front(), read);
  if (scenario.platform.size() < 2)
    throw InputError("platform.sites", std::to_string(scenario.platform.size()), "at least 2", "sites = 2");
  if (scenario.strategy.collective == fomoe::costmodel::Collective::store)
    throw InputError("strategy.collective", "\"store\" with fomoe-wan",
                     "a collective among the sites, because files in a shared folder cross no emulated link",
                     "collective = \"ring\"");
  options.mtu = values.count("mtu") != 0 ? in_range(values, "mtu", 576, kLargestMtu, "--mtu 9000")
                                         : static_cast<int>(scenario.platform.packet_bytes);
  if (options.mtu > kLargestMtu)
    throw InputError("platform.mtu", fmt::format("{} bytes", options.mtu),
                     fmt::format("at most {}, which an emulated interface can have", kLargestMtu),
                     "--mtu 9000");
  read_queue(values["queue"].as<std::string>(), options);
  warn_of_connections(scenario.platform);
  return wan::lay_out(scenario.platform, options);
}

int run(const std::string& command, std::vector<std::string> arguments) {
  wan::SessionOptions session;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != "--") continue;
    session.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
    arguments.resize(i);
    break;
  }
  const po::options_description options = make_options();
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    print_help(options);
    return 0;
  }
  const po::variables_map values = parse(arguments, options);
  if (command == "run" && session.command.empty())
    throw UsageError(
        "run: got no command; expected -- and a command; for example fomoe-wan run S.toml -- fomoe-train run "
        "S.toml");
  if (command == "check" && !session.command.empty())
    throw UsageError(
        "check: got a command; expected none, because only run starts a command; for example fomoe-wan run "
        "S.toml -- CMD");
  if (command == "check" && values.count("no-check"))
    throw UsageError("--no-check: got it with check; expected it only with run");

  session.check = !values.count("no-check");
  session.uplink_queue = read_uplink_queue(values["uplink-queue"].as<std::string>());
  session.network.tun_device = values["tun-device"].as<std::string>();
  if (values.count("congestion-control"))
    session.network.congestion_control = values["congestion-control"].as<std::string>();
  session.buffers = read_buffers(values["socket-buffers"].as<std::string>());
  session.processes_per_site = in_range(values, "processes-per-site", 1, 64, "--processes-per-site 2");
  session.master_port = in_range(values, "master-port", 1024, 65535, "--master-port 29500");
  const fomoe::FileClaims claims;
  if (values.count("report")) fomoe::claim_output("--report", values["report"].as<std::string>());
  const wan::Layout layout = read_layout(values);
  if (values.count("cpus-per-site")) {
    session.cores = wan::share_cores(allowed_cores(), layout.size(), values["cpus-per-site"].as<int>());
    if (session.cores->shared)
      fmt::print(
          stderr,
          "fomoe-wan: --cpus-per-site requires more cores than are available, so some sites share a core\n");
  }
  if (values.count("cpu-quota"))
    session.quota_cores = read_quota(values["cpu-quota"].as<double>(), layout.size());
  if (values.count("report")) {
    // The commands of the sites may run in other folders, so all of them get an absolute path.
    session.report = std::filesystem::absolute(values["report"].as<std::string>()).string();
    const auto folder = std::filesystem::path(session.report).parent_path();
    if (!std::filesystem::is_directory(folder))
      throw InputError("--report", "\"" + session.report + "\", in a folder that does not exist",
                       "an existing folder", "mkdir -p " + folder.string());
  }
  return wan::run_session(layout, session);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string command = arguments.empty() ? "" : arguments.front();
    if (command == "--help" || command == "-h" || command == "help") {
      print_help(make_options());
      return 0;
    }
    if (command == "--version") {
      fmt::print("fomoe-wan {}\n", FOMOE_VERSION);
      return 0;
    }
    if (command != "run" && command != "check")
      throw UsageError(fmt::format("got \"{}\"; expected run or check; see fomoe-wan --help", command));
    arguments.erase(arguments.begin());
    return run(command, std::move(arguments));
  } catch (const fomoe::FileError& error) {
    fmt::print(stderr, "{}\n", error.what());  // the message begins with file:line, where editors expect it
    return kWrongInput;
  } catch (const InputError& error) {
    fmt::print(stderr, "fomoe-wan: {}\n", error.what());
    return kWrongInput;
  } catch (const UsageError& error) {
    fmt::print(stderr, "fomoe-wan: {}\n", error.what());
    return kWrongInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fomoe-wan: {}\n", error.what());
    return kFailure;
  }
}
