#include "trainer/grid/grid_file.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/scenario_source.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "experiments/sweep/axis.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/run/run_data.hpp"

namespace fomoe::trainer {
namespace {

// FNV-1a of 64 bits, of which an id keeps 48: among 10,000 runs, two have the same id with a probability of
// 2e-7.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    state_ = (state_ ^ 0xff) * 0x100000001b3ULL;  // a separator: "ab", "c" differs from "a", "bc"
  }
  [[nodiscard]] std::string digits() const {
    char text[17];
    std::snprintf(text, sizeof text, "%012llx", static_cast<unsigned long long>(state_ >> 16));
    return text;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::string id_of(const std::string& path, const scenario::ReadOptions& how) {
  const scenario::ScenarioSource source = scenario::scenario_source(path, how);
  Hash hash;
  std::istringstream lines(source.toml);
  bool top = true;
  for (std::string line; std::getline(lines, line);) {
    top = top && !line.starts_with('[');
    // A better title is no other run.
    if (!top || !(line.starts_with("name = ") || line.starts_with("description = "))) hash.add(line);
  }
  for (const auto& [name, content] : source.files) {
    hash.add(name);
    hash.add(content);
  }
  // The source is without the data, so that a run has the same id wherever its scenario's data lie. Data that
  // the grid or the command line chooses make another run.
  std::map<std::string, std::string> chosen;
  for (const std::string& assignment : how.overrides) {
    const std::string key = assignment.substr(0, assignment.find('='));
    if (key == "trainer.data" || key == "trainer.validation_data") chosen[key] = assignment;
  }
  for (const auto& [key, assignment] : chosen) hash.add(assignment);
  return hash.digits();
}

class GridReader {
 public:
  GridReader(const std::string& path, const std::vector<std::string>& overrides)
      : document_(scenario::Document::read(path, "grid file", "experiments/proxies/exp1.toml")),
        overrides_(overrides) {
    scenario::refuse_unknown_tables(document_, scenario::grid_file_keys(), {"runs"});
  }

  Grid read() {
    const Table top("", &document_.root(), document_);
    grid_.scenario_path = top.reader.file("scenario");
    const sweep::Grid outer(top.axes);
    std::vector<Table> blocks;
    for (const toml::table* table : scenario::find_tables(document_, "runs"))
      blocks.emplace_back("runs", table, document_);
    if (blocks.empty()) {
      scenario::fail(document_.place("runs", nullptr, nullptr), "runs", "no [[runs]]", "at least one table",
                     "[[runs]] with vary = [\"strategy.local_steps=8,32\"]");
    }
    for (std::uint64_t o = 0; o < outer.rows(); ++o) {
      for (const Table& block : blocks) {
        const sweep::Grid inner(block.axes);
        for (std::uint64_t i = 0; i < inner.rows(); ++i) {
          std::vector<std::string> assignments = top.set;
          append(assignments, outer.assignments(o));
          append(assignments, block.set);
          append(assignments, inner.assignments(i));
          append(assignments, overrides_);
          add(block, std::move(assignments));
        }
      }
    }
    return std::move(grid_);
  }

 private:
  struct Table {
    Table(std::string_view name, const toml::table* table, const scenario::Document& document)
        : reader(document, scenario::grid_file_keys(), name, table), set(reader.words("set")) {
      for (const std::string& text : reader.words("vary")) {
        try {
          axes.push_back(sweep::parse_axis(text));
        } catch (const std::runtime_error& error) {
          throw FileError(reader.place("vary") + ": " + error.what());
        }
      }
    }
    scenario::TableReader reader;
    std::vector<std::string> set;
    std::vector<sweep::Axis> axes;
  };

  static void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  [[noreturn]] static void refuse(const Table& block, const std::string& reason) {
    throw FileError(block.reader.place("set") + ": a run of this table is not possible: " + reason);
  }

  void add(const Table& block, std::vector<std::string> assignments) {
    for (const std::string& assignment : assignments) {
      const std::string key = assignment.substr(0, assignment.find('='));
      if (std::find(grid_.keys.begin(), grid_.keys.end(), key) == grid_.keys.end()) grid_.keys.push_back(key);
    }
    scenario::ReadOptions how;
    how.overrides = assignments;
    how.compute_required = false;
    GridRun run;
    try {
      run.scenario = scenario::read_scenario(grid_.scenario_path, how);
      // Without a validation, a run has no result.
      require_validation(scenario::read_trainer_settings(grid_.scenario_path, how, run.scenario));
      run.id = id_of(grid_.scenario_path, how);
    } catch (const FileError& error) {
      refuse(block, error.what());
    } catch (const UsageError& error) {
      refuse(block, error.what());
    }
    run.scenario.compute = costmodel::GivenStepTime{1};
    run.overrides = std::move(assignments);
    if (ids_.insert(run.id).second) grid_.runs.push_back(std::move(run));
  }

  scenario::Document document_;
  std::vector<std::string> overrides_;
  Grid grid_;
  std::set<std::string> ids_;
};

}  // namespace

Grid read_grid(const std::string& path, const std::vector<std::string>& overrides) {
  return GridReader(path, overrides).read();
}

std::string value_in(const GridRun& run, const std::string& key) {
  std::string value;
  for (const std::string& assignment : run.overrides) {  // the last one counts
    if (!assignment.starts_with(key + '=')) continue;
    value = assignment.substr(key.size() + 1);
    const bool quoted =
        value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front();
    if (quoted) value = value.substr(1, value.size() - 2);
  }
  return value;
}

}  // namespace fomoe::trainer
