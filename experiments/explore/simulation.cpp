#include "experiments/explore/simulation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "experiments/analysis/comparable_runs.hpp"
#include "experiments/analysis/envelope.hpp"
#include "experiments/analysis/interval.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/results/round_json.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::explore {

namespace {

namespace fs = std::filesystem;

constexpr int kMostSites = 16;  // a larger matrix is not readable

Json matrix_of(const costmodel::Scenario& scenario, const sim::SimulatedRun& run) {
  const platforms::Platform platform =
      costmodel::platform_of_connections(scenario.platform, scenario.network);
  const costmodel::Timeline& timeline = run.timeline;
  const int shown = std::min(platform.size(), kMostSites);
  const auto count = static_cast<std::size_t>(shown);
  const double rounds = std::max<double>(1, static_cast<double>(timeline.rounds.size()));
  std::vector<std::vector<double>> bytes(count, std::vector<double>(count, 0));
  const auto nodes = static_cast<int>(run.plan.nodes.size());
  const auto site_of = [&](int node) { return run.plan.nodes[static_cast<std::size_t>(node)].site; };
  for (int from = 0; from < nodes; ++from) {
    if (site_of(from) >= shown) continue;
    for (int to = 0; to < nodes; ++to) {
      if (site_of(to) < shown)
        bytes[static_cast<std::size_t>(site_of(from))][static_cast<std::size_t>(site_of(to))] +=
            timeline.sent.at(from, to) / rounds;
    }
  }
  Json names = Json::array(), rows = Json::array();
  for (int i = 0; i < shown; ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    names.push_back({{"name", site.name},
                     {"uplink_bytes_per_s", site.uplink_bytes_per_s},
                     {"downlink_bytes_per_s", site.downlink_bytes_per_s}});
    Json row = Json::array();
    for (int j = 0; j < shown; ++j) {
      const double sent = bytes[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      if (i == j) {
        row.push_back(nullptr);
        continue;
      }
      const double rate = platform.route_bytes_per_s(i, j);
      row.push_back({{"bytes", sent},
                     {"busy", std::isfinite(rate) ? sent / rate / run.report.round.duration_s : 0},
                     {"rate_bytes_per_s", std::isfinite(rate) ? Json(rate) : Json()},
                     {"latency_s", platform.path(i, j).latency_s}});
    }
    rows.push_back(row);
  }
  return {{"sites", names}, {"rows", rows}, {"left_out", platform.size() - shown}};
}

/// A folder that only this user can read, removed with its contents.
class PrivateFolder {
 public:
  PrivateFolder() : path_((fs::temp_directory_path() / "fomoe-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot create a folder in " + fs::temp_directory_path().string());
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

/// The name of a result becomes the name of a file.
std::string file_name(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '/' || c == '\0' ? ' ' : c;
  return text.substr(0, 100) + ".json";
}

}  // namespace

Json simulation_answer(const Question& question, const std::vector<std::string>& overrides) {
  const costmodel::Scenario scenario = read(question, overrides);
  const sim::SimulatedRun run = commands::execute(scenario, {});
  Json answer = {
      {"report", scenario::to_json(run.report)},
      {"validation_envelope", commands::outside_of_validation(run.report, scenario)},
      {"accuracy", commands::accuracy_json(scenario)},
      {"interval", commands::interval_json(commands::interval_of(
                       run.report, scenario, costmodel::known_spread(scenario, run.report.wall_clock_s)))},
      {"matrix", matrix_of(scenario, run)},
      {"command", command_of(question, overrides)}};
  if (!run.timeline.rounds.empty())
    answer["round_timeline"] =
        scenario::to_json(costmodel::round_timeline(run.plan, run.timeline), run.plan, scenario.platform);
  return answer;
}

std::string report_page(const Question& question,
                        const std::vector<std::pair<std::string, std::vector<std::string>>>& results,
                        Simulate simulate, const report::ChartLibrary& library) {
  const PrivateFolder folder;
  std::vector<std::string> files;
  std::string commands;
  for (const auto& [name, overrides] : results) {
    std::vector<std::string> arguments = {question.path};
    for (const std::string& assignment : overrides) {
      const bool unset = assignment.starts_with('!');
      arguments.emplace_back(unset ? "--unset" : "--set");
      arguments.push_back(unset ? assignment.substr(1) : assignment);
    }
    files.push_back(folder.file(file_name(name)));
    arguments.insert(arguments.end(), {"--output", files.back()});
    simulate(arguments);
    const std::string output = "result-" + std::to_string(files.size()) + ".json";
    commands += command_of(question, overrides) + " --output " + output + "; ";
  }
  std::string last = "fomoe report";
  for (std::size_t i = 1; i <= files.size(); ++i) last += " result-" + std::to_string(i) + ".json";
  return report::page(report::read_results(files), library, commands + last + " --output report.html");
}

}  // namespace fomoe::explore
