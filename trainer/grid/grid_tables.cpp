#include "trainer/grid/grid_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/files/csv.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "platforms/support/whole_file.hpp"
#include "trainer/run/run_data.hpp"

namespace fomoe::trainer {
namespace {

using Cells = std::vector<std::string>;

// The shortest text that gives the same double again, so that equal results are equal bytes.
std::string text_of(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

std::string line(const Cells& cells) {
  std::string text;
  for (const std::string& cell : cells) text += (&cell == &cells.front() ? "" : ",") + quoted(cell);
  return text + '\n';
}

// Settings that every grid has, so that figures need not know which keys a grid varied.
const std::vector<std::string>& usual_settings() {
  static const std::vector<std::string> names = {
      "method",     "sites",   "local_steps", "expert_overlap", "placement", "outer_optimizer",
      "skip_token", "d_model", "layers",      "experts",        "tokens",    "global_batch_sequences"};
  return names;
}

const std::vector<std::string>& keys_of_usual_settings() {
  static const std::vector<std::string> keys = {
      "strategy.method",         "platform.sites",     "strategy.local_steps",
      "strategy.expert_overlap", "strategy.placement", "strategy.outer_optimizer",
      "strategy.skip_token",     "model.d_model",      "model.layers",
      "model.experts",           "workload.tokens",    "workload.global_batch_sequences"};
  return keys;
}

std::vector<std::string> other_keys(const Grid& grid) {
  const auto& usual = keys_of_usual_settings();
  std::vector<std::string> others;
  for (const std::string& key : grid.keys) {
    if (key != "seed" && std::find(usual.begin(), usual.end(), key) == usual.end()) others.push_back(key);
  }
  return others;
}

// What a method does not use is empty, or has the value that describes what it does.
Cells settings_of(const Grid& grid, const GridRun& run) {
  const costmodel::Scenario& scenario = run.scenario;
  const costmodel::Strategy& strategy = scenario.strategy;
  const costmodel::Method& method = *strategy.method;
  const auto uses = [&](const char* axis) { return costmodel::has_axis(method, axis); };
  const int overlap = method.partial_experts ? strategy.expert_overlap : scenario.sites();
  const bool partial = overlap < scenario.sites();
  Cells cells = {method.name,
                 std::to_string(scenario.sites()),
                 std::to_string(method.every_step || method.one_site ? 1 : strategy.local_steps),
                 std::to_string(overlap),
                 partial ? costmodel::to_string(strategy.placement) : "",
                 uses("outer_optimizer") ? costmodel::to_string(strategy.outer_optimizer) : "",
                 method.partial_experts && strategy.skip_token ? "true" : "false",
                 std::to_string(scenario.model.d_model),
                 std::to_string(scenario.model.layers),
                 std::to_string(scenario.model.experts),
                 std::to_string(scenario.workload.tokens),
                 std::to_string(scenario.workload.global_batch_sequences)};
  for (const std::string& key : other_keys(grid)) cells.push_back(value_in(run, key));
  return cells;
}

struct Computed {
  double parameters = 0, flops_per_token = 0, flops = 0;
  double bytes_per_site = 0;  // sent in the whole run, mean over sites
};

Computed computed(const costmodel::Scenario& scenario) {
  const costmodel::PlanSummary summary = costmodel::summarise(scenario);
  const double per_token = costmodel::flops_per_token(scenario).total();
  const double batch = static_cast<double>(scenario.workload.global_batch_sequences) *
                       static_cast<double>(scenario.model.sequence_length);
  return {static_cast<double>(costmodel::count_parameters(scenario.model).total()), per_token,
          per_token * summary.steps * batch, summary.sent.total() * summary.rounds};
}

struct Column {
  const char* name;
  double (*value)(const GridResult&);
  double GridResult::*member;  // null: computed from another member
};
constexpr Column kResults[] = {
    {"perplexity", [](const GridResult& r) { return std::exp(r.loss); }, nullptr},
    {"site_perplexity", [](const GridResult& r) { return std::exp(r.mean_site_loss); }, nullptr},
    {"loss", [](const GridResult& r) { return r.loss; }, &GridResult::loss},
    {"site_loss", [](const GridResult& r) { return r.mean_site_loss; }, &GridResult::mean_site_loss},
    {"router_entropy", [](const GridResult& r) { return r.router_entropy; }, &GridResult::router_entropy},
    {"load_cv", [](const GridResult& r) { return r.load_cv; }, &GridResult::load_cv},
    {"ghost_share", [](const GridResult& r) { return r.ghost_share; }, &GridResult::ghost_share},
};

void append(Cells& cells, const Cells& more) { cells.insert(cells.end(), more.begin(), more.end()); }

Cells names_of_settings(const Grid& grid) {
  Cells names = usual_settings();
  append(names, other_keys(grid));
  return names;
}

Cells texts_of(const Computed& c) {
  return {text_of(c.parameters), text_of(c.flops_per_token), text_of(c.flops), text_of(c.bytes_per_site)};
}
const Cells kComputedNames = {"parameters", "flops_per_token", "flops", "bytes_per_site"};

/// Finished runs with the same settings, in the order in which they first appear.
struct Group {
  Cells settings;
  const GridRun* run = nullptr;  // the first one
  std::vector<const GridResult*> results;
};

std::vector<Group> groups_of(const Grid& grid, const GridResults& results) {
  std::vector<Group> groups;
  std::map<Cells, std::size_t> at;
  for (std::size_t i = 0; i < grid.runs.size(); ++i) {
    if (!results[i]) continue;
    const Cells settings = settings_of(grid, grid.runs[i]);
    const auto [found, fresh] = at.try_emplace(settings, groups.size());
    if (fresh) groups.push_back({settings, &grid.runs[i], {}});
    groups[found->second].results.push_back(&*results[i]);
  }
  return groups;
}

costmodel::Spread spread(const Group& group, double (*value)(const GridResult&)) {
  std::vector<double> values;
  for (const GridResult* result : group.results) values.push_back(value(*result));
  if (values.size() > 1) return costmodel::spread_of(values);
  costmodel::Spread one;
  one.mean = values.front();
  return one;
}

/// The cell of the spread over seeds. It is empty where there is none: with one seed, or after a divergence.
std::string spread_cell(const Group& group, const costmodel::Spread& over_seeds) {
  const bool known = group.results.size() > 1 && std::isfinite(over_seeds.standard_deviation);
  return known ? text_of(over_seeds.standard_deviation) : std::string();
}

/// Takes out the groups in which a run diverged, and returns the number of their runs: their mean perplexity
/// is no number, which no table for the planner can hold.
std::size_t take_out_diverged(std::vector<Group>& groups) {
  std::size_t runs = 0;
  std::erase_if(groups, [&](const Group& group) {
    if (std::isfinite(spread(group, kResults[0].value).mean)) return false;
    runs += group.results.size();
    return true;
  });
  return runs;
}

}  // namespace

std::optional<GridResult> read_result(const std::string& path) {
  const std::optional<std::string> text = whole_file(path);
  if (!text) return std::nullopt;
  const nlohmann::json report = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded() || !report.is_object() || !report.contains("validation")) return std::nullopt;
  GridResult result;
  const nlohmann::json& validation = report["validation"];
  result.loss = validation.at("loss");
  result.data = validation.value("data", "");  // the same as of the training, unless validated on others
  for (const nlohmann::json& entry : report.at("provenance")) {
    if (entry.value("what", "") == "training data") result.data = entry.value("detail", "");
  }
  result.mean_site_loss = validation.at("mean_site_loss");
  double layers = 0;
  for (const nlohmann::json& site : validation.at("sites")) {
    for (const nlohmann::json& layer : site.at("routers")) {
      result.router_entropy += layer.at("entropy").get<double>();
      result.load_cv += layer.at("load_cv").get<double>();
      result.ghost_share += layer.at("ghost_share").get<double>();
      ++layers;
    }
  }
  if (layers > 0) {
    result.router_entropy /= layers;
    result.load_cv /= layers;
    result.ghost_share /= layers;
  }
  result.seconds = report.at("wall_clock_s");
  result.resumed = !report.at("run").at("whole").get<bool>();
  result.code = report.at("run").value("code", "");
  const std::string detail = report.at("provenance").at(0).at("detail");
  result.device = detail.starts_with("this run on ") ? detail.substr(12) : detail;
  return result;
}

std::map<std::string, GridResult> read_rows(const std::string& path) {
  std::map<std::string, GridResult> rows;
  const std::optional<std::string> text = whole_file(path);
  if (!text) return rows;
  std::istringstream lines(*text);
  Cells header;
  int number = 0;
  for (std::string row; std::getline(lines, row);) {
    const Cells cells = scenario::csv_cells(row);
    if (++number == 1) {
      header = cells;
      continue;
    }
    const auto refuse = [&](const std::string& key, const std::string& got, const std::string& expected) {
      throw FileError(path + ':' + std::to_string(number) + ": " + key + ": got " + got + "; expected " +
                      expected + "; for example the rows.csv that fomoe-train grid wrote");
    };
    const auto cell = [&](const std::string& name) {
      const auto at =
          static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
      if (at >= cells.size()) refuse(name, "no such cell", "a cell of this column");
      return cells[at];
    };
    const auto value = [&](const std::string& name) {
      const std::string word = cell(name);
      const auto result = parse_number<double>(word);
      if (!result) refuse(name, '"' + word + '"', "a number");
      return *result;
    };
    GridResult result;
    for (const Column& column : kResults) {
      if (column.member != nullptr) result.*column.member = value(column.name);
    }
    result.seconds = value("seconds");
    result.resumed = cell("resumed") == "true";
    if (std::find(header.begin(), header.end(), "data") != header.end()) result.data = cell("data");
    result.device = cell("device");
    result.code = cell("code");
    rows.emplace(cell("run"), result);
  }
  return rows;
}

std::string rows_csv(const Grid& grid, const GridResults& results) {
  Cells header = {"run"};
  append(header, names_of_settings(grid));
  append(header, {"seed"});
  append(header, kComputedNames);
  for (const Column& column : kResults) header.emplace_back(column.name);
  append(header, {"data", "seconds", "resumed", "device", "code"});
  std::string text = line(header);
  for (std::size_t i = 0; i < grid.runs.size(); ++i) {
    if (!results[i]) continue;
    const GridRun& run = grid.runs[i];
    Cells cells = {run.id};
    append(cells, settings_of(grid, run));
    append(cells, {std::to_string(run.scenario.seed)});
    append(cells, texts_of(computed(run.scenario)));
    for (const Column& column : kResults) cells.push_back(text_of(column.value(*results[i])));
    append(cells, {results[i]->data, text_of(std::round(results[i]->seconds)),
                   results[i]->resumed ? "true" : "false", results[i]->device, results[i]->code});
    text += line(cells);
  }
  return text;
}

std::string summary_csv(const Grid& grid, const GridResults& results) {
  Cells header = names_of_settings(grid);
  append(header, {"seeds"});
  append(header, kComputedNames);
  for (const Column& column : kResults)
    append(header, {std::string(column.name) + "_mean", std::string(column.name) + "_std"});
  std::string text = line(header);
  for (const Group& group : groups_of(grid, results)) {
    Cells cells = group.settings;
    append(cells, {std::to_string(group.results.size())});
    append(cells, texts_of(computed(group.run->scenario)));
    for (const Column& column : kResults) {
      const costmodel::Spread over_seeds = spread(group, column.value);
      append(cells, {text_of(over_seeds.mean), spread_cell(group, over_seeds)});
    }
    text += line(cells);
  }
  return text;
}

std::string quality_csv(const Grid& grid, const GridResults& results, const std::string& source) {
  std::vector<Group> groups = groups_of(grid, results);
  const std::size_t diverged = take_out_diverged(groups);
  if (groups.empty()) return "";
  const costmodel::Scenario& first = groups.front().run->scenario;
  const costmodel::ModelShape& model = first.model;
  std::string rows;
  std::size_t left_out = 0;
  bool no_text = false;
  std::map<Cells, bool> known;
  for (const Group& group : groups) {
    const costmodel::Scenario& scenario = group.run->scenario;
    const costmodel::Strategy& strategy = scenario.strategy;
    const auto usual = static_cast<std::ptrdiff_t>(usual_settings().size());
    const bool same = std::equal(group.settings.begin() + usual, group.settings.end(),
                                 groups.front().settings.begin() + usual);
    const bool expressed = same && !(strategy.method->partial_experts && strategy.skip_token) &&
                           scenario.model == model && scenario.workload.tokens == first.workload.tokens &&
                           scenario.workload.global_batch_sequences == first.workload.global_batch_sequences;
    // Rows of fomoe have the name of the method with the same outer optimiser
    // (costmodel/inputs/quality_model.hpp).
    const std::string outer = group.settings[5];
    std::string name = strategy.method->name;
    if (strategy.method->partial_experts)
      name = outer == "local_adamw" ? outer : outer == "nesterov" ? "diloco" : "";
    const std::string& placement = group.settings[4];
    const Cells key = {name, group.settings[2], placement.empty() ? "fixed" : placement, group.settings[1],
                       group.settings[3]};
    if (!expressed || name.empty() || !known.emplace(key, true).second) {
      left_out += group.results.size();
      continue;
    }
    no_text = no_text || std::any_of(group.results.begin(), group.results.end(),
                                     [](const GridResult* result) { return is_synthetic(result->data); });
    const costmodel::Spread perplexity = spread(group, kResults[0].value);
    Cells cells = key;
    append(cells, {text_of(perplexity.mean), spread_cell(group, perplexity),
                   std::to_string(group.results.size()) + (group.results.size() == 1 ? " seed" : " seeds")});
    rows += line(cells);
  }
  const auto entry = [](const char* name, auto value) {
    return std::string("# ") + name + ": " + std::to_string(value) + '\n';
  };
  return "# source: " + source + '\n' + entry("parameters", costmodel::count_parameters(model).total()) +
         entry("vocabulary", model.vocabulary) + entry("sequence_length", model.sequence_length) +
         entry("experts", model.experts) + entry("active_experts", model.active_experts) +
         entry("tokens", first.workload.tokens) +
         entry("global_batch_sequences", first.workload.global_batch_sequences) +
         entry("reshuffle_rounds", first.strategy.reshuffle_rounds) +
         "# note: perplexity of the whole model, with the experts of all sites and with means of values that "
         "differ between sites, mean over seeds; plus_minus is the sample standard deviation over seeds\n" +
         (no_text ? "# note: trained on synthetic data: the perplexities say nothing about a text\n" : "") +
         (diverged > 0 ? "# note: " + std::to_string(diverged) +
                             " runs are left out: they diverged, or one with the same settings did\n"
                       : "") +
         (left_out > 0
              ? "# note: " + std::to_string(left_out) + " runs are left out: other settings, or twice\n"
              : "") +
         "strategy,local_steps,placement,sites,expert_overlap,perplexity,plus_minus,note\n" + rows;
}

}  // namespace fomoe::trainer
