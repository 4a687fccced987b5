// Computes the rows of a sweep by the closed form. Rows of one context differ only in numbers that enter the
// formulas directly. All other values of a row select a context: a scenario that is read once, and whose
// formulas are used for all rows with the same values.
#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/sweep.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/value/quality.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/sweep/rows.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::sweep {

namespace {

using costmodel::Configuration;
using costmodel::Scenario;

constexpr std::size_t kKeptContexts = 1024, kKeptProblems = 1 << 16;
constexpr std::size_t kFormulaColumns = column("perplexity");  // the number of columns before "perplexity"

/// A key whose value may differ between the rows of a context.
struct SweptKey {
  const char* key;
  void (*set)(Configuration&, double);
  /// Sets the value in the scenario that check() and the quality model see; null if neither depends on it.
  void (*set_in_scenario)(Scenario&, double);
  /// Whether the value can make a combination impossible: never, possibly, or only for a method that
  /// synchronises fragments of the model in turn within the local steps of a round.
  enum class Decides { no, yes, with_fragments } decides;
};

constexpr std::string_view kLocalSteps = "strategy.local_steps";

constexpr SweptKey kDirectKeys[] = {
    {"workload.tokens", [](Configuration& c, double v) { c.axes.tokens = v; },
     [](Scenario& s, double v) { s.workload.tokens = static_cast<std::int64_t>(v); }, SweptKey::Decides::no},
    {"workload.global_batch_sequences", [](Configuration& c, double v) { c.axes.global_batch_sequences = v; },
     [](Scenario& s, double v) { s.workload.global_batch_sequences = static_cast<std::int64_t>(v); },
     SweptKey::Decides::yes},
    {"strategy.local_steps", [](Configuration& c, double v) { c.axes.local_steps = v; },
     [](Scenario& s, double v) { s.strategy.local_steps = static_cast<std::int64_t>(v); },
     SweptKey::Decides::with_fragments},
    {"strategy.expert_overlap", [](Configuration& c, double v) { c.axes.expert_overlap = v; },
     [](Scenario& s, double v) { s.strategy.expert_overlap = static_cast<int>(v); }, SweptKey::Decides::yes},
    {"strategy.reshuffle_rounds", [](Configuration& c, double v) { c.axes.reshuffle_rounds = v; },
     [](Scenario& s, double v) { s.strategy.reshuffle_rounds = static_cast<std::int64_t>(v); },
     SweptKey::Decides::no},
    {"strategy.overlap_steps", [](Configuration& c, double v) { c.axes.overlap_steps = v; },
     [](Scenario& s, double v) { s.strategy.overlap_steps = static_cast<std::int64_t>(v); },
     SweptKey::Decides::yes},
    {"strategy.fragments", [](Configuration& c, double v) { c.axes.fragments = v; },
     [](Scenario& s, double v) { s.strategy.fragments = static_cast<int>(v); }, SweptKey::Decides::yes},
    {"network_model.bandwidth_efficiency", [](Configuration& c, double v) { c.bandwidth_efficiency = v; },
     nullptr, SweptKey::Decides::no},
};

/// Keys that enter the formulas directly only if all sites have the same GPUs and step times.
constexpr SweptKey kAlikeSitesKeys[] = {
    {"compute.step_time", [](Configuration& c, double v) { c.step_time_s = v; }, nullptr,
     SweptKey::Decides::no},
    {"compute.peak_flops", [](Configuration& c, double v) { c.peak_flops = v; }, nullptr,
     SweptKey::Decides::no},
    {"compute.mfu", [](Configuration& c, double v) { c.share_of_peak = v; }, nullptr, SweptKey::Decides::no},
    {"compute.kernel_efficiency", [](Configuration& c, double v) { c.share_of_peak = v; }, nullptr,
     SweptKey::Decides::no},
};

/// Keys that enter the formulas directly only if sites are equal and do not come from a file. Values are set
/// in the order of this table. `sites` comes first, because the default of expert_overlap is the number of
/// sites. `bandwidth` comes before `uplink` and `downlink`, which override it.
constexpr SweptKey kEqualSitesKeys[] = {
    {"platform.sites", [](Configuration& c, double v) { c.axes.sites = v; },
     [](Scenario& s, double v) {
       const platforms::Site site = s.platform.sites.front();
       s.platform =
           platforms::uniform(static_cast<int>(v), site.uplink_bytes_per_s, site.downlink_bytes_per_s, 0);
     },
     SweptKey::Decides::yes},
    {"platform.bandwidth",
     [](Configuration& c, double v) { c.uplink_bytes_per_s = c.downlink_bytes_per_s = v; }, nullptr,
     SweptKey::Decides::no},
    {"platform.uplink", [](Configuration& c, double v) { c.uplink_bytes_per_s = v; }, nullptr,
     SweptKey::Decides::no},
    {"platform.downlink", [](Configuration& c, double v) { c.downlink_bytes_per_s = v; }, nullptr,
     SweptKey::Decides::no},
    {"platform.latency", [](Configuration& c, double v) { c.latency_s = v; }, nullptr, SweptKey::Decides::no},
};

bool given(const scenario::Document& document, const char* table, const char* key) {
  const toml::table* found = document.root().get_as<toml::table>(table);
  return found != nullptr && found->contains(key);
}

/// Whether the default number of fragments of the scenario's method may depend on local_steps.
bool follows_local_steps(const scenario::Document& document) {
  const toml::table* strategy = document.root().get_as<toml::table>("strategy");
  const auto name = strategy == nullptr ? std::nullopt : (*strategy)["method"].value<std::string>();
  const costmodel::Method* method = name ? costmodel::find_method(*name) : nullptr;
  return method != nullptr && method->usual_fragments != nullptr && !method->every_step;
}

struct Context {
  Scenario scenario;
  costmodel::SweepContext formulas;
  bool has_fragments = false;
  Configuration base;
  // The problem of each combination, or an empty text if it is possible. The key encodes the values that
  // decide.
  std::unordered_map<std::uint64_t, std::string> problems;
  // The quality of each combination. The key encodes the values that the quality model depends on.
  std::unordered_map<std::uint64_t, costmodel::Quality> qualities;
};

class ClosedFormSweep {
 public:
  explicit ClosedFormSweep(const Request& request) : request_(request) {
    scenario::Document document =
        scenario::Document::read(request.scenario_path, "scenario", "experiments/scenarios/two-sites.toml");
    for (const std::string& assignment : request.overrides) document.override_key(assignment);
    const std::vector<Axis>& axes = request.grid.axes();
    const auto varied = [&](const char* key) {
      return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.key == key; });
    };
    // By default, some methods have fewer fragments in rounds of fewer steps.
    fragments_follow_ = !given(document, "strategy", "fragments") && !varied("strategy.fragments") &&
                        !varied("strategy.method") && follows_local_steps(document);
    const bool alike = !document.root().contains("site") && !given(document, "workload", "batch") &&
                       !varied("workload.batch");
    const bool equal_links = !given(document, "platform", "file") && !varied("platform.file");
    if (alike && equal_links) add_direct(kEqualSitesKeys);
    add_direct(kDirectKeys);
    if (alike) add_direct(kAlikeSitesKeys);
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const bool is_direct =
          std::any_of(direct_.begin(), direct_.end(), [&](const auto& l) { return l.second == a; });
      if (!is_direct) words_.push_back(a);
    }
    default_overlap_ = !given(document, "strategy", "expert_overlap") && !varied("strategy.expert_overlap");
  }

  void fill(Chunk& chunk) {
    order_.clear();
    for (std::size_t i = 0; i < chunk.rows; ++i) {
      std::uint64_t key = 0;
      for (const std::size_t a : words_)
        key = key * request_.grid.axes()[a].size() + request_.grid.digit(chunk.first_row + i, a);
      order_.emplace_back(key, i);
    }
    if (!words_.empty()) std::sort(order_.begin(), order_.end());
    for (std::size_t begin = 0; begin < order_.size();) {
      std::size_t end = begin;
      while (end < order_.size() && order_[end].first == order_[begin].first) ++end;
      fill_context(chunk, begin, end);
      begin = end;
    }
  }

 private:
  template <std::size_t N>
  void add_direct(const SweptKey (&keys)[N]) {
    for (const SweptKey& key : keys) {
      for (std::size_t a = 0; a < request_.grid.axes().size(); ++a) {
        if (request_.grid.axes()[a].key == key.key && !(fragments_follow_ && key.key == kLocalSteps))
          direct_.emplace_back(&key, a);
      }
    }
  }

  Scenario read(std::uint64_t row) const {
    scenario::ReadOptions options;
    options.overrides = request_.overrides;
    const std::vector<std::string> assignments = request_.grid.assignments(row);
    options.overrides.insert(options.overrides.end(), assignments.begin(), assignments.end());
    options.check_together = false;  // problem() checks it once for all rows with the same result
    return scenario::read_scenario(request_.scenario_path, options);
  }

  // Creates the context from the first row that can be read. Each row before it gets the error as its
  // problem.
  void fill_context(Chunk& chunk, std::size_t begin, std::size_t end) {
    auto found = contexts_.find(order_[begin].first);
    for (; found == contexts_.end() && begin < end; ++begin) {
      const std::size_t index = order_[begin].second;
      try {
        if (contexts_.size() >= kKeptContexts) contexts_.clear();
        auto context = std::make_unique<Context>();
        context->scenario = read(chunk.first_row + index);
        context->formulas = costmodel::sweep_context(context->scenario);
        context->has_fragments = costmodel::has_axis(*context->formulas.method, "fragments");
        context->base = costmodel::configuration_of(context->scenario);
        found = contexts_.emplace(order_[begin].first, std::move(context)).first;
        --begin;  // this row is computed together with the others
      } catch (const InputError& error) {
        chunk.problems[index] = error.what();
      } catch (const FileError& error) {
        chunk.problems[index] = error.what();
      }
    }
    for (; begin < end; ++begin) fill_row(*found->second, chunk, order_[begin].second);
  }

  void fill_row(Context& context, Chunk& chunk, std::size_t index) {
    const std::uint64_t row = chunk.first_row + index;
    Configuration configuration = context.base;
    for (const auto& [swept, axis] : direct_)
      swept->set(configuration, request_.grid.axes()[axis].numbers[request_.grid.digit(row, axis)]);
    if (default_overlap_) configuration.axes.expert_overlap = configuration.axes.sites;
    costmodel::Outcome o;
    costmodel::evaluate(context.formulas, configuration, o);
    const std::array<double, kFormulaColumns> columns = {o.wall_clock_s,
                                                         o.compute_utilization,
                                                         o.tokens_per_s,
                                                         o.bytes_per_token,
                                                         o.bytes_sent_per_site_per_round,
                                                         o.sent.dense,
                                                         o.sent.expert_sync,
                                                         o.sent.migration,
                                                         o.memory_bytes_per_site,
                                                         o.memory_bytes_per_gpu,
                                                         o.flops_per_token,
                                                         o.optimizer_steps,
                                                         o.tokens,
                                                         o.round_count,
                                                         o.round_duration_s,
                                                         o.round_compute_s,
                                                         o.round_communication_s,
                                                         o.round_exposed_communication_s,
                                                         o.round_idle_s,
                                                         o.link_busy_share,
                                                         o.cost_total,
                                                         o.energy_kwh};
    for (std::size_t c = 0; c < kFormulaColumns; ++c) chunk.results[c][index] = columns[c];
    chunk.problems[index] = problem(context, row);
    chunk.exact[index] = o.approximate ? 0 : 1;
    double perplexity = kUnknown, equal_loss_factor = kUnknown;
    if (context.scenario.quality && chunk.problems[index].empty()) {
      const costmodel::Quality& known = quality(context, row, o.tokens);
      if (known.known) perplexity = known.perplexity;
      equal_loss_factor = known.equal_loss_factor.value_or(kUnknown);
    }
    chunk.results[kFormulaColumns][index] = perplexity;
    chunk.results[kFormulaColumns + 1][index] = equal_loss_factor;
    chunk.results[kMemoryColumn][index] = o.gpu_memory_bytes > 0 ? o.gpu_memory_bytes : kUnknown;
  }

  /// The scenario of a row, as far as check() and the quality model use it.
  Scenario scenario_of(const Context& context, std::uint64_t row) const {
    Scenario scenario = context.scenario;
    for (const auto& [swept, axis] : direct_) {
      if (swept->set_in_scenario != nullptr)
        swept->set_in_scenario(scenario, request_.grid.axes()[axis].numbers[request_.grid.digit(row, axis)]);
    }
    if (default_overlap_) scenario.strategy.expert_overlap = scenario.sites();
    return scenario;
  }

  const costmodel::Quality& quality(Context& context, std::uint64_t row, double tokens) {
    std::uint64_t key = 0;
    for (const auto& [swept, axis] : direct_) {
      if (swept->set_in_scenario != nullptr)
        key = key * request_.grid.axes()[axis].size() + request_.grid.digit(row, axis);
    }
    if (context.qualities.size() >= kKeptProblems) context.qualities.clear();
    const auto [entry, is_new] = context.qualities.try_emplace(key);
    if (is_new) {
      costmodel::RunReport report;
      report.tokens = static_cast<std::int64_t>(tokens);
      costmodel::add_quality(report, scenario_of(context, row));
      entry->second = *report.quality;
    }
    return entry->second;
  }

  /// The message of check() for the combination; empty if it is possible.
  const std::string& problem(Context& context, std::uint64_t row) {
    std::uint64_t key = 0;
    for (const auto& [swept, axis] : direct_) {
      if (swept->decides == SweptKey::Decides::no ||
          (swept->decides == SweptKey::Decides::with_fragments && !context.has_fragments))
        continue;
      key = key * request_.grid.axes()[axis].size() + request_.grid.digit(row, axis);
    }
    if (context.problems.size() >= kKeptProblems) context.problems.clear();
    const auto [entry, is_new] = context.problems.try_emplace(key);
    if (!is_new) return entry->second;
    try {
      costmodel::check(scenario_of(context, row));
    } catch (const InputError& error) {
      entry->second = error.what();
    }
    return entry->second;
  }

  const Request& request_;
  std::vector<std::pair<const SweptKey*, std::size_t>> direct_;  // key and axis
  std::vector<std::size_t> words_;                               // axes whose values select contexts
  bool fragments_follow_ = false;
  bool default_overlap_ = false;  // whether expert_overlap is the number of sites
  std::unordered_map<std::uint64_t, std::unique_ptr<Context>> contexts_;
  std::vector<std::pair<std::uint64_t, std::size_t>> order_;  // rows of a chunk sorted by context
};

}  // namespace

void Chunk::resize(std::size_t count) {
  rows = count;
  for (auto& column : results) column.resize(count);
  problems.resize(count);
  for (std::string& problem : problems) problem.clear();
  exact.assign(count, 0);
}

void closed_form_rows(const Request& request, const Sink& sink) {
  ClosedFormSweep sweep(request);
  Chunk chunk;
  for (std::uint64_t row = request.begin; row < request.end; row += chunk.rows) {
    chunk.first_row = row;
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkRows, request.end - row)));
    sweep.fill(chunk);
    sink(chunk);
  }
}

}  // namespace fomoe::sweep
