#include "experiments/figures/trained/trained_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include "experiments/figures/trained/proxy_rows.hpp"
#include "experiments/files/csv.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::figures {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class RowsReader {
 public:
  RowsReader(const std::string& text, std::string name) : lines_(text), name_(std::move(name)) {
    if (std::string line; std::getline(lines_, line)) columns_ = scenario::csv_cells(line);
  }

  void read_into(Trained& trained, std::set<std::pair<Setting, std::string>>& seen) {
    while (next()) {
      Setting setting;
      const std::string method = word("method");
      setting.sites = static_cast<int>(number("sites"));
      setting.overlap = static_cast<int>(number("expert_overlap"));
      setting.local_steps = static_cast<std::int64_t>(number("local_steps"));
      setting.placement = word("placement");
      setting.outer = method == "diloco" || method == "fomoe" ? word("outer_optimizer") : method;
      setting.skip_token = word("skip_token") == "true";
      setting.d_model = static_cast<std::int64_t>(number("d_model"));
      setting.layers = static_cast<std::int64_t>(number("layers"));
      setting.experts = static_cast<std::int64_t>(number("experts"));
      for (const std::string& column : columns_) {
        if (column.find('.') != std::string::npos && !word(column).empty())
          setting.others[column] = word(column);
      }
      const std::string seed = word("seed");
      if (!seen.emplace(setting, seed).second) continue;  // full replicas may be there under two names
      TrainedRuns& runs = trained[setting];
      runs.losses.push_back(number("loss"));
      runs.site_losses.push_back(number("site_loss"));
      runs.bytes_per_site = number("bytes_per_site");
      runs.flops = number("flops");
      const auto n = static_cast<double>(runs.losses.size());
      const auto add = [&](double& running_mean, const char* column) {
        running_mean += (number(column) - running_mean) / n;
      };
      add(runs.router_entropy, "router_entropy");
      // Without skip-token, a site's routers choose among the experts of the site only.
      const double choice = setting.skip_token
                                ? static_cast<double>(setting.experts)
                                : static_cast<double>(setting.experts) * setting.overlap / setting.sites;
      constexpr double kLeast = 1e-9;  // all tokens to the same experts; the logarithm stays finite
      const double above = number("router_entropy") - std::log(kActive);
      runs.evenness.push_back(
          choice > kActive ? std::log(std::max(above / std::log(choice / kActive), kLeast)) : 0);
      runs.seed_names.push_back(seed);
      add(runs.load_cv, "load_cv");
      add(runs.ghost_share, "ghost_share");
    }
  }

 private:
  bool next() {
    for (std::string line; std::getline(lines_, line);) {
      ++line_;
      if (line.empty()) continue;
      cells_ = scenario::csv_cells(line);
      if (cells_.size() != columns_.size())
        refuse("row", fmt::format("{} cells", cells_.size()),
               fmt::format("{}, as in the header", columns_.size()));
      return true;
    }
    return false;
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& got,
                           const std::string& expected) const {
    scenario::fail(fmt::format("{}:{}", name_, line_), key, got, expected,
                   "a rows.csv that fomoe-train grid wrote");
  }

  [[nodiscard]] const std::string& word(const std::string& column) const {
    const auto at =
        static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin());
    if (at >= cells_.size()) refuse(column, "no such column", "a table with this column");
    return cells_[at];
  }

  [[nodiscard]] double number(const std::string& column) const {
    const std::string& text = word(column);
    const auto value = parse_number<double>(text);
    if (!value || !(*value >= 0)) refuse(column, '"' + text + '"', "a number of at least 0");
    return *value;
  }

  std::istringstream lines_;
  std::string name_;
  int line_ = 1;
  std::vector<std::string> columns_, cells_;
};

}  // namespace

double mean_of(const TrainedRuns& runs, OfSeeds values) { return mean(runs.*values); }

double perplexity_of(double loss) {
  constexpr double kPlaces = 1e9;  // more than anybody prints, and fewer than the logarithm loses
  return std::round(std::exp(loss) * kPlaces) / kPlaces;
}

Trained without_diverged(const Trained& trained) {
  std::map<int, double> best;  // by number of sites
  for (const auto& [setting, runs] : trained) {
    const auto found = best.try_emplace(setting.sites, runs.loss()).first;
    found->second = std::min(found->second, runs.loss());
  }
  Trained kept;
  for (const auto& point : trained) {
    if (point.second.loss() <= best.at(point.first.sites) + std::log(2.0)) kept.insert(point);
  }
  return kept;
}

double TrainedRuns::loss() const { return mean(losses); }
double TrainedRuns::site_loss() const { return mean(site_losses); }

Trained trained_runs(const std::string& text, const std::string& name) {
  Trained trained;
  std::set<std::pair<Setting, std::string>> seen;
  RowsReader(text, name).read_into(trained, seen);
  return trained;
}

Trained trained_runs(Assumptions& assume, const std::vector<std::string>& grids) {
  const std::string path = assume.text("rows", "");
  if (!path.empty()) {
    const std::optional<std::string> text = whole_file(path);
    if (!text) {
      scenario::fail("--set rows=" + path, "rows", "no readable file",
                     "a rows.csv that fomoe-train grid wrote",
                     "rows=experiments/proxies/results/exp1/rows.csv");
    }
    return trained_runs(*text, path);
  }
  Trained all;
  std::set<std::pair<Setting, std::string>> seen;  // a setting that two grids share has the runs of both
  for (const std::string& grid : grids) {
    for (const auto& [name, text] : kProxyRows) {
      if (name == grid) RowsReader(text, grid + "/rows.csv").read_into(all, seen);
    }
  }
  return all;
}

}  // namespace fomoe::figures
