// Computes the rows of a sweep by the closed form. Numbers are set in the scenario, as the rows of keys say,
// which is resolved again from the first stage that reads them. All other values of a row select a context: a
// scenario that is read once for all rows with the same values.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/value/quality.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/sweep/rows.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::sweep {

namespace {

using costmodel::Resolving;
using costmodel::Scenario;
using scenario::Key;

constexpr std::size_t kKeptContexts = 1024, kKeptQualities = 1 << 16;
constexpr std::size_t kFormulaColumns = column("perplexity");  // the number of columns before "perplexity"

std::array<double, kFormulaColumns> columns_of(const costmodel::Outcome& o) {
  return {o.wall_clock_s,
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
}

bool given(const scenario::Document& document, const char* table, const char* key) {
  const toml::table* found = document.root().get_as<toml::table>(table);
  return found != nullptr && found->contains(key);
}

/// A row's scenario and its resolved form. Both change from row to row.
struct Context {
  Scenario base;      // as it was read
  Scenario scenario;  // with the swept values of a row
  costmodel::Resolved resolved;
  std::vector<std::size_t> digits;  // of the swept axes, in this row; empty: not yet resolved
  std::string problem;              // why this row's combination is impossible; empty if it is possible
  /// The quality of each combination. The key encodes the values on which it depends.
  std::unordered_map<std::uint64_t, costmodel::Quality> qualities;
};

class ClosedFormSweep {
 public:
  explicit ClosedFormSweep(const Request& request) : request_(request) {
    scenario::Document document =
        scenario::Document::read(request.scenario_path, "scenario", "experiments/scenarios/two-sites.toml");
    for (const std::string& assignment : request.overrides) document.override_key(assignment);
    const auto is_default = [&](const char* key) {
      return !given(document, "strategy", key) && !varied(std::string("strategy.") + key);
    };
    default_overlap_ = is_default("expert_overlap");
    default_fragments_ = is_default("fragments");
    // A key that changes what others have set comes after them.
    for (const bool last : {false, true})
      for (const Key& key : scenario::scenario_keys())
        if (key.member.set != nullptr && scales_others(key) == last) add_axes_of(key);
    keep_those_that_equal_the_reader();
    for (std::size_t a = 0; a < axes().size(); ++a) {
      if (std::none_of(swept_.begin(), swept_.end(), [&](const Swept& swept) { return swept.axis == a; }))
        words_.push_back(a);
    }
  }

  void fill(Chunk& chunk) {
    order_.clear();
    for (std::size_t i = 0; i < chunk.rows; ++i) {
      std::uint64_t key = 0;
      for (const std::size_t a : words_)
        key = key * axes()[a].size() + request_.grid.digit(chunk.first_row + i, a);
      order_.emplace_back(key, i);
    }
    if (!words_.empty()) std::sort(order_.begin(), order_.end());
    for (const auto& [key, index] : order_) fill_row(key, chunk, index);
  }

 private:
  struct Swept {
    const Key* key;
    std::size_t axis;
  };

  const std::vector<Axis>& axes() const { return request_.grid.axes(); }

  /// Whether the key changes what other keys have set.
  static bool scales_others(const Key& key) { return !key.member.neutral.empty(); }

  void add_axes_of(const Key& key) {
    for (std::size_t a = 0; a < axes().size(); ++a)
      if (axes()[a].numeric() && axes()[a].key == dotted(key)) swept_.push_back({&key, a});
  }

  bool varied(const std::string& key) const {
    return std::any_of(axes().begin(), axes().end(), [&](const Axis& axis) { return axis.key == key; });
  }

  double value(const Swept& swept, std::uint64_t row) const {
    return axes()[swept.axis].numbers[request_.grid.digit(row, swept.axis)];
  }

  /// The scenario of a row. Keys that are set as factors on others have no effect if `neutral`.
  Scenario read(std::uint64_t row, bool neutral) const {
    scenario::ReadOptions options;
    options.overrides = request_.overrides;
    const std::vector<std::string> assignments = request_.grid.assignments(row);
    options.overrides.insert(options.overrides.end(), assignments.begin(), assignments.end());
    for (const Swept& swept : swept_) {
      if (neutral && scales_others(*swept.key))
        options.overrides.push_back(fmt::format("{}={}", axes()[swept.axis].key, swept.key->member.neutral));
    }
    options.check_together = false;  // a combination that check() refuses is a row, too
    return scenario::read_scenario(request_.scenario_path, options);
  }

  /// Sets the swept values of a row, and what follows from them. Returns false if the row has to be read.
  bool set(Context& context, std::uint64_t row) const {
    Resolving any{};
    return set(context, row, any);
  }
  /// Lowers `first`, the first stage that reads the swept keys, where what follows from them is read earlier.
  bool set(Context& context, std::uint64_t row, Resolving& first) const {
    Scenario& scenario = context.scenario;
    if (resets_platform_) scenario.platform = context.base.platform;
    for (const Swept& swept : swept_) {
      if (!swept.key->member.set(scenario, value(swept, row))) return false;
    }
    const int overlap = scenario.strategy.expert_overlap, fragments = scenario.strategy.fragments;
    if (default_overlap_) scenario.strategy.expert_overlap = scenario.sites();
    const costmodel::Method& method = *scenario.strategy.method;
    if (default_fragments_ && method.usual_fragments != nullptr)
      scenario.strategy.fragments = method.usual_fragments(scenario.model, scenario.strategy);
    if (scenario.strategy.expert_overlap != overlap || scenario.strategy.fragments != fragments)
      first = Resolving::counts;
    return true;
  }

  /// A key is only set where this gives what the reader gives, to the bit, from the smallest value of the
  /// axis to the largest and back. Readings of the other values are then saved.
  void keep_those_that_equal_the_reader() {
    std::vector<Swept> all = std::move(swept_), kept;
    for (const Swept& swept : all) {
      swept_ = {swept};
      if (equals_the_reader()) kept.push_back(swept);
    }
    swept_ = kept;
    if (kept.size() > 1 && !equals_the_reader()) swept_.clear();
    resets_platform_ = resets(swept_);
  }

  static bool resets(const std::vector<Swept>& list) {
    return std::any_of(list.begin(), list.end(), [](const Swept& swept) {
      return scales_others(*swept.key) || (swept.key->table == "platform" && swept.key->name == "sites");
    });
  }

  bool equals_the_reader() {
    resets_platform_ = resets(swept_);
    std::uint64_t smallest = request_.begin, largest = request_.begin;
    for (const Swept& swept : swept_) {
      const std::vector<double>& numbers = axes()[swept.axis].numbers;
      const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
      const auto digit = [&](auto at) { return static_cast<std::size_t>(at - numbers.begin()); };
      smallest = request_.grid.with_digit(smallest, swept.axis, digit(least));
      largest = request_.grid.with_digit(largest, swept.axis, digit(most));
    }
    return equals_the_reader(smallest, largest) && equals_the_reader(largest, smallest);
  }

  /// Whether setting the values of a row in the scenario of another one gives what the reader gives.
  bool equals_the_reader(std::uint64_t from, std::uint64_t to) {
    try {
      Context context;
      context.scenario = context.base = read(from, true);
      if (!set(context, from)) return false;
      context.resolved = costmodel::resolve(context.scenario);
      Resolving first = Resolving::values;
      for (const Swept& swept : swept_) first = std::min(first, swept.key->stage);
      if (!set(context, to, first)) return false;
      costmodel::resolve(context.scenario, first, context.resolved);
      return results_of(context.resolved) == results_of(costmodel::resolve(read(to, false)));
    } catch (const InputError&) {
      return false;
    } catch (const FileError&) {
      return false;
    }
  }

  static std::array<std::uint64_t, kFormulaColumns + 1> results_of(const costmodel::Resolved& resolved) {
    std::array<std::uint64_t, kFormulaColumns + 1> bits{};
    const costmodel::Outcome outcome = costmodel::outcome_of(resolved);
    const std::array<double, kFormulaColumns> columns = columns_of(outcome);
    for (std::size_t c = 0; c < kFormulaColumns; ++c) bits[c] = std::bit_cast<std::uint64_t>(columns[c]);
    bits.back() = std::bit_cast<std::uint64_t>(outcome.gpu_memory_bytes);
    return bits;
  }

  /// The context of these words. Without one, it is created from the scenario of this row.
  Context& context_of(std::uint64_t key, std::uint64_t row) {
    const auto found = contexts_.find(key);
    if (found != contexts_.end()) return *found->second;
    auto context = std::make_unique<Context>();
    context->scenario = context->base = read(row, true);
    if (contexts_.size() >= kKeptContexts) contexts_.clear();
    return *contexts_.emplace(key, std::move(context)).first->second;
  }

  void fill_row(std::uint64_t key, Chunk& chunk, std::size_t index) {
    const std::uint64_t row = chunk.first_row + index;
    try {
      Context& context = context_of(key, row);
      if (resolve(context, row)) return write(context, row, chunk, index);
      Context own;
      own.scenario = read(row, false);
      check_and_resolve(own, Resolving::counts);
      write(own, row, chunk, index);
    } catch (const InputError& error) {
      chunk.problems[index] = error.what();
    } catch (const FileError& error) {
      chunk.problems[index] = error.what();
    }
  }

  /// Moves the context to a row. Returns false if the row has to be read.
  bool resolve(Context& context, std::uint64_t row) {
    const bool known = !context.digits.empty();
    Resolving first = known ? Resolving::values : Resolving::counts;
    bool changed = !known;
    context.digits.resize(swept_.size() + 1);
    for (std::size_t i = 0; i < swept_.size(); ++i) {
      const std::size_t digit = request_.grid.digit(row, swept_[i].axis);
      if (known && context.digits[i] == digit) continue;
      context.digits[i] = digit;
      first = std::min(first, swept_[i].key->stage);
      changed = true;
    }
    if (!changed) return true;
    const std::vector<std::size_t> digits = std::exchange(context.digits, {});  // none if this row fails
    if (!set(context, row, first)) {
      context.scenario = context.base;
      return false;
    }
    check_and_resolve(context, first);
    context.digits = digits;
    return true;
  }

  /// Step times, money and energy cannot make a combination impossible.
  static void check_and_resolve(Context& context, Resolving first) {
    if (first <= Resolving::links) {
      // The stages of an impossible combination were not resolved.
      if (!context.problem.empty()) first = Resolving::counts;
      context.problem.clear();
      try {
        costmodel::check(context.scenario);
      } catch (const InputError& error) {
        context.problem = error.what();
      }
    }
    if (context.problem.empty()) costmodel::resolve(context.scenario, first, context.resolved);
  }

  void write(Context& context, std::uint64_t row, Chunk& chunk, std::size_t index) {
    chunk.problems[index] = context.problem;
    if (!context.problem.empty()) return;
    const costmodel::Outcome outcome = costmodel::outcome_of(context.resolved);
    const std::array<double, kFormulaColumns> columns = columns_of(outcome);
    for (std::size_t c = 0; c < kFormulaColumns; ++c) chunk.results[c][index] = columns[c];
    chunk.exact[index] = costmodel::approximates(context.resolved) ? 0 : 1;
    std::array<double, kQualityColumns> known;
    known.fill(kUnknown);
    if (context.scenario.quality) known = quality_columns(quality(context, row, outcome.tokens));
    for (std::size_t c = 0; c < kQualityColumns; ++c) chunk.results[kFormulaColumns + c][index] = known[c];
    chunk.results[kMemoryColumn][index] = outcome.gpu_memory_bytes > 0 ? outcome.gpu_memory_bytes : kUnknown;
  }

  const costmodel::Quality& quality(Context& context, std::uint64_t row, double tokens) {
    std::uint64_t key = 0;
    for (const Swept& swept : swept_) {
      if (swept.key->stage != Resolving::links && swept.key->stage != Resolving::times)
        key = key * axes()[swept.axis].size() + request_.grid.digit(row, swept.axis);
    }
    if (context.qualities.size() >= kKeptQualities) context.qualities.clear();
    const auto [entry, is_new] = context.qualities.try_emplace(key);
    if (is_new) {
      costmodel::RunReport report;
      report.tokens = static_cast<std::int64_t>(tokens);
      costmodel::add_quality(report, context.scenario);
      entry->second = *report.quality;
    }
    return entry->second;
  }

  const Request& request_;
  std::vector<Swept> swept_;        // in the order of scenario_keys(), those that scale others last
  std::vector<std::size_t> words_;  // axes whose values select contexts
  bool resets_platform_ = false;    // whether a key changes what others have set
  bool default_overlap_ = false;    // whether expert_overlap is the number of sites
  bool default_fragments_ = false;  // whether fragments follow from the model and the rest of the strategy
  std::unordered_map<std::uint64_t, std::unique_ptr<Context>> contexts_;
  std::vector<std::pair<std::uint64_t, std::size_t>> order_;  // rows of a chunk sorted by context
};

}  // namespace

std::array<double, kQualityColumns> quality_columns(const costmodel::Quality& quality) {
  const auto finite = [](double value) { return std::isfinite(value) ? value : kUnknown; };
  std::array<double, kQualityColumns> columns;
  columns.fill(kUnknown);
  if (quality.known) columns[0] = quality.perplexity;
  columns[1] = quality.equal_loss_factor.value_or(kUnknown);
  if (const auto& range = quality.equal_loss_range) {
    columns[2] = finite(range->low);
    columns[3] = finite(range->centre());
    columns[4] = finite(range->high);
  } else {
    columns[2] = columns[3] = columns[4] = columns[1];
  }
  return columns;
}

void Chunk::resize(std::size_t count) {
  rows = count;
  for (auto& column : results) column.resize(count);
  problems.resize(count);
  for (std::string& problem : problems) problem.clear();
  exact.assign(count, 0);
}

void Chunk::refuse_impossible() {
  constexpr double kRounding_s = 1e-6;
  for (std::size_t c = 0; c < kResultCount; ++c) {
    const bool time = kResults[c].ends_with("_s");
    for (std::size_t i = 0; i < rows; ++i) {
      const double value = results[c][i];
      if (!problems[i].empty()) continue;
      if (std::isinf(value) || (time && !(value >= -kRounding_s)))
        problems[i] = fmt::format("{} would be {}: inputs are too small or too large", kResults[c], value);
    }
  }
}

void closed_form_rows(const Request& request, const Sink& sink) {
  ClosedFormSweep sweep(request);
  Chunk chunk;
  for (std::uint64_t row = request.begin; row < request.end; row += chunk.rows) {
    chunk.first_row = row;
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkRows, request.end - row)));
    sweep.fill(chunk);
    chunk.refuse_impossible();
    sink(chunk);
  }
}

}  // namespace fomoe::sweep
