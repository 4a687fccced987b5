#include "tests/oracles/smpi/smpi.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sim/fluid/simgrid_version.hpp"
#include "tests/oracles/comparison.hpp"

namespace fomoe::oracles {

std::string platform_xml(const platforms::Platform& platform) {
  std::ostringstream xml;
  xml.precision(17);
  const auto link = [&](const auto& name, double bytes_per_s, double latency_s, bool shared) {
    xml << "<link id='" << name << "' bandwidth='" << bytes_per_s << "Bps' latency='" << latency_s << "s'"
        << (shared ? "" : " sharing_policy='FATPIPE'") << "/>\n";
  };
  const auto pair_name = [](int from, int to) {
    return "path-" + std::to_string(from) + "-" + std::to_string(to);
  };
  xml << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>\n"
      << "<platform version='4.1'><zone id='wan' routing='Full'>\n";
  for (int i = 0; i < platform.size(); ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    xml << "<host id='site-" << i << "' speed='1Gf'/>\n";
    link("up-" + std::to_string(i), site.uplink_bytes_per_s, 0, true);
    link("down-" + std::to_string(i), site.downlink_bytes_per_s, 0, true);
  }
  for (const bool routes : {false, true}) {
    for (int a = 0; a < platform.size(); ++a) {
      for (int b = 0; b < platform.size(); ++b) {
        if (a == b) continue;
        const platforms::Path& path = platform.path(a, b);
        const bool limited = std::isfinite(path.bandwidth_bytes_per_s);
        if (!routes) {
          link(pair_name(a, b), limited ? path.bandwidth_bytes_per_s : 1e15, path.latency_s, limited);
        } else {
          xml << "<route src='site-" << a << "' dst='site-" << b << "' symmetrical='NO'><link_ctn id='up-"
              << a << "'/><link_ctn id='" << pair_name(a, b) << "'/><link_ctn id='down-" << b
              << "'/></route>\n";
        }
      }
    }
  }
  xml << "</zone></platform>\n";
  return xml.str();
}

std::vector<std::string> without_factors(Sending sending) {
  // A message below the thresholds leaves at once. With a threshold of 0 no message does.
  const char* below = sending == Sending::eager ? "2000000000" : "0";
  return {"network/model:CM02",
          "network/crosstraffic:0",
          "network/TCP-gamma:1e15",  // window in bytes, which limits no flow
          "network/weight-S:0",
          "network/latency-factor:1",
          "network/bandwidth-factor:1",
          std::string(sim::kTimePrecisionSetting) + ":1e-12",
          "smpi/simulate-computation:no",
          "smpi/wtime:0",
          "smpi/bw-factor:0:1",
          "smpi/lat-factor:0:1",
          "smpi/os:0:0:0",
          "smpi/or:0:0:0",
          "smpi/ois:0:0:0",
          std::string("smpi/async-small-thresh:") + below,
          std::string("smpi/send-is-detached-thresh:") + below};
}

std::vector<double> smpi_end_s(const platforms::Platform& platform, const std::string& collective,
                               long elements, const std::vector<std::string>& settings) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("fomoe-smpi-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "platform.xml") << platform_xml(platform);
  std::ofstream hosts(folder / "hosts");
  for (int i = 0; i < platform.size(); ++i) hosts << "site-" << i << "\n";
  hosts.close();
  std::ostringstream command;
  command << "cd '" << folder.string() << "' && smpirun -no-privatize -np " << platform.size()
          << " -platform platform.xml -hostfile hosts --log=root.thresh:error";
  for (const std::string& setting : settings) command << " --cfg=" << setting;
  command << " '" << FOMOE_BINARY_DIR << "/oracle_all_reduce' " << collective << ' ' << elements;
  const std::string output = output_of(command.str());
  fs::remove_all(folder);

  std::vector<double> end_s(static_cast<std::size_t>(platform.size()), -1);
  std::istringstream lines(output);
  for (std::string word; lines >> word;) {
    int rank = 0;
    double start_s = 0, rank_end_s = 0;
    if (word == "end" && lines >> rank >> start_s >> rank_end_s && start_s == 0)
      end_s.at(static_cast<std::size_t>(rank)) = rank_end_s;
  }
  for (const double end : end_s) {
    if (end < 0) throw std::runtime_error("a rank said nothing; the output of smpirun:\n" + output);
  }
  return end_s;
}

}  // namespace fomoe::oracles
