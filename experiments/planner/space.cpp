#include "experiments/planner/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <variant>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/choose_sites.hpp"

namespace fomoe::planner {

namespace {

using costmodel::Method;
using costmodel::Scenario;
using sweep::Axis;

constexpr std::int64_t kLargestLocalSteps = 1024;
constexpr costmodel::ElementType kElementTypes[] = {
    costmodel::ElementType::fp32, costmodel::ElementType::bf16, costmodel::ElementType::fp16,
    costmodel::ElementType::fp8,  costmodel::ElementType::int8, costmodel::ElementType::int4,
    costmodel::ElementType::int2};
constexpr std::size_t kMostSiteSets = 16;  // enough for all subsets of up to four sites

Axis numbers(const std::string& key, const std::set<std::int64_t>& values) {
  std::string text = key + '=';
  for (const std::int64_t value : values) text += fmt::format("{}{}", text.back() == '=' ? "" : ",", value);
  return sweep::parse_axis(text);
}

Axis words(const std::string& key, const std::vector<std::string>& values) {
  Axis axis;
  axis.key = axis.column = key;
  axis.words = values;
  return axis;
}

std::string values_text(const Axis& axis) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const std::string assignment = axis.assignment(i);
    std::string value = assignment.substr(assignment.find('=') + 1);
    std::erase(value, '\'');
    values.push_back(value);
  }
  if (values.size() > 16)
    return fmt::format("{}, {} … {}: {} values", values[0], values[1], values.back(), values.size());
  return scenario::joined(values, axis.key == "platform.use_sites" ? " | " : ", ");
}

/// Powers of two up to `most`, and the scenario's own value.
std::set<std::int64_t> doubling(std::int64_t most, std::int64_t own) {
  std::set<std::int64_t> values = {own};
  for (std::int64_t value = 1; value <= most; value *= 2) values.insert(value);
  return values;
}

class SpaceBuilder {
 public:
  SpaceBuilder(const Scenario& base, const Question& question) : base_(base), question_(question) {
    scenario::Document document = scenario::Document::read(question.scenario_path, "scenario", "");
    for (const std::string& assignment : question.overrides) document.override_key(assignment);
    const toml::table* strategy = document.root().get_as<toml::table>("strategy");
    given_payload_ =
        base.strategy.secure_aggregation ||
        (strategy != nullptr && (strategy->contains("payload_dtype") || strategy->contains("compression")));
    const toml::table* platform = document.root().get_as<toml::table>("platform");
    named_sites_ = platform != nullptr && platform->contains("file");
    drawn_sites_ = platform != nullptr && (platform->contains("generate") || platform->contains("preset"));
    choose_sites();
  }

  Space build() {
    std::vector<std::string> names;
    if (const Axis* asked = varied("strategy.method")) {
      names = asked->words;
    } else {
      for (const Method& method : costmodel::methods()) names.emplace_back(method.name);
    }
    for (const std::string& name : names) {
      const Method* method = costmodel::find_method(name);
      if (method == nullptr) continue;  // null only for a name that parse_axis would have rejected
      if (method->one_site && given_step_time() && varied("strategy.method") == nullptr) {
        space_.tried.push_back(
            fmt::format("{} is omitted: one site that computes the whole batch would have another step_time "
                        "than the given one",
                        name));
        continue;
      }
      space_.methods.push_back(name);
      add_families(*method);
    }
    space_.tried.insert(space_.tried.begin(), "strategy.method: " + scenario::joined(space_.methods));
    for (const Axis& axis : question_.vary) describe(axis);
    if (!own_formats_.empty())
      space_.tried.push_back("number formats of their own: " + scenario::joined(own_formats_));
    if (!alone_.empty()) space_.tried.push_back("one site alone, each of them: " + scenario::joined(alone_));
    return std::move(space_);
  }

 private:
  /// Whether the step time of some site does not depend on the batch.
  [[nodiscard]] bool given_step_time() const {
    const auto given = [](const auto& site) {
      return std::holds_alternative<costmodel::GivenStepTime>(site.compute);
    };
    return base_.site_compute.empty()
               ? given(base_)
               : std::any_of(base_.site_compute.begin(), base_.site_compute.end(), given);
  }
  [[nodiscard]] const Axis* varied(const std::string& key) const {
    for (const Axis& axis : question_.vary) {
      if (axis.key == key) return &axis;
    }
    return nullptr;
  }
  /// Whether faster sites could get larger parts of the batch than slower ones.
  [[nodiscard]] bool batches_may_differ(const Method& method) const {
    return !base_.site_compute.empty() && base_.workload.batch_shares.empty() && !given_step_time() &&
           !method.one_site && costmodel::allows_unequal_parts(method);
  }
  /// Whether the values of a key may train models of different quality, which QualityCoordinates does not
  /// see.
  static bool may_cost_quality(const std::string& key) {
    static const std::set<std::string> seen = {
        "strategy.method",        "strategy.local_steps", "strategy.expert_overlap",
        "strategy.payload_dtype", "strategy.fragments",   "strategy.placement",
        "strategy.overlap_steps", "strategy.collective",  "strategy.ring_order",
        "strategy.regions",       "strategy.skip_token",  "strategy.reshuffle_rounds",
        "strategy.bucket_bytes",  "workload.batch"};
    const bool of_training =
        key.starts_with("strategy.") || key.starts_with("workload.") || key.starts_with("model.");
    return of_training && !seen.contains(key);
  }
  void describe(const Axis& axis) {
    if (described_.insert(axis.key).second && axis.key != "strategy.method")
      space_.tried.push_back(axis.key + ": " + values_text(axis) +
                             (may_cost_quality(axis.key) ? " (what they cost in loss is not compared)" : ""));
  }

  /// The axis of participating sites. A step time that the scenario gives is valid only for the scenario's
  /// number of sites, because with fewer sites each site would compute a larger batch. With such a step time,
  /// the number of sites is therefore not varied.
  void choose_sites() {
    const bool asked = varied("platform.sites") != nullptr || varied("platform.use_sites") != nullptr;
    if (asked || base_.sites() < 2) return;
    if (given_step_time()) {
      space_.tried.push_back(fmt::format(
          "all {} sites: step_time is given, and it would differ for other numbers of sites (with a "
          "profile, or with peak_flops and mfu, the number of sites is varied)",
          base_.sites()));
      return;
    }
    if (named_sites_ && !drawn_sites_) {
      const double bytes = base_.strategy.wire.bytes_per_element() *
                           static_cast<double>(costmodel::count_parameters(base_.model).total()) /
                           base_.sites();
      const platforms::SiteSets found = platforms::sets_of_sites(base_.platform, 2, bytes, kMostSiteSets);
      space_.names_sites = true;
      for (const auto& set : found.sets) sets_.push_back(names_of(set));
      if (!found.all) add_other_sets();
      for (int site = 0; site < base_.sites(); ++site) single_sites_.push_back(names_of({site}));
      described_.insert("platform.use_sites");
      if (found.all) {
        space_.tried.push_back(fmt::format("sites: all {} sets of two or more of them", sets_.size()));
      } else {
        std::string shown;
        for (const std::string& set : sets_) shown += "\n    " + set;
        space_.tried.push_back(fmt::format(
            "sites: for each number of sites, the set whose slowest pair is fastest, that with the cheapest "
            "GPUs and that with the fastest{}:{}",
            found.exact ? "" : ", found by a greedy search if there are more than 20,000 sets", shown));
      }
    } else if (!named_sites_ && !drawn_sites_) {
      equal_sites_ = true;
      if (!base_.site_compute.empty() || (base_.prices && !base_.prices->of_all_sites))
        space_.tried.push_back(
            "sites: the first 2, 3, … of them, in the order of their names, although [[site]] or a "
            "price file may make them differ; "
            "with a platform file, sets of sites are chosen");
    } else {
      space_.tried.push_back(fmt::format(
          "all {} sites: the sites of a preset and generated sites are not varied", base_.sites()));
    }
  }

  /// Of each number of sites, those with the cheapest GPUs and those that compute fastest: links alone do not
  /// say which sites are worth their price.
  void add_other_sets() {
    std::vector<std::vector<double>> orders;
    if (base_.prices && !base_.prices->of_all_sites) {
      std::vector<double>& price = orders.emplace_back();
      for (const costmodel::SitePrices& site : base_.prices->sites) price.push_back(site.gpu_price_per_s);
    }
    if (!base_.site_compute.empty()) {
      std::vector<double>& seconds = orders.emplace_back();
      for (int site = 0; site < base_.sites(); ++site)
        seconds.push_back(costmodel::site_compute_times(base_, site).step_s());
    }
    for (const std::vector<double>& order : orders) {
      std::vector<int> sites(order.size());
      std::iota(sites.begin(), sites.end(), 0);
      std::stable_sort(sites.begin(), sites.end(), [&](int a, int b) {
        return order[static_cast<std::size_t>(a)] < order[static_cast<std::size_t>(b)];
      });
      for (std::size_t count = 2; count < sites.size(); ++count) {
        std::vector<int> set(sites.begin(), sites.begin() + static_cast<std::ptrdiff_t>(count));
        std::sort(set.begin(), set.end());
        if (std::find(sets_.begin(), sets_.end(), names_of(set)) == sets_.end())
          sets_.push_back(names_of(set));
      }
    }
  }

  [[nodiscard]] std::string names_of(const std::vector<int>& set) const {
    std::vector<std::string> names;
    for (const int site : set) names.push_back(base_.platform.sites[static_cast<std::size_t>(site)].name);
    return scenario::joined(names, ",");
  }

  /// Adds the axis, or the axis that --vary gives for the same key.
  void add(std::vector<Axis>& axes, const Axis& usual) {
    const Axis* asked = varied(usual.key);
    axes.push_back(asked != nullptr ? *asked : usual);
    describe(axes.back());
  }

  void add_families(const Method& method) {
    std::vector<Axis> axes;
    add_sites(method, axes);
    if (batches_may_differ(method)) add(axes, words("workload.batch", {"equal", "balanced"}));
    const auto has = [&](const char* name) { return costmodel::has_axis(method, name); };
    if (has("collective")) {
      std::vector<std::string> known = {"ring", "direct", "recursive"};
      if (base_.platform.store && method.through_store) known.emplace_back("store");
      if (base_.strategy.regions > 1) known.emplace_back("hierarchical");
      add(axes, words("strategy.collective", known));
    } else if (method.through_chain) {
      add(axes, words("strategy.collective", {"direct", "chain"}));
    }
    if (has("payload_dtype")) add_payload(method, axes);
    // Without a table of measured runs, the outer optimiser's effect on quality is unknown, so that it stays.
    if (has("outer_optimizer") && base_.quality &&
        std::holds_alternative<costmodel::QualityTable>(*base_.quality)) {
      std::vector<std::string> outer = {"nesterov"};  // diloco with LocalAdamW is the method local_adamw
      if (method.partial_experts) outer.emplace_back("local_adamw");
      add(axes, words("strategy.outer_optimizer", outer));
    }
    if (method.partial_experts) {
      std::set<std::int64_t> overlaps = doubling(base_.sites(), base_.sites());
      if (base_.sites() <= 32) {
        for (int overlap = 1; overlap <= base_.sites(); ++overlap) overlaps.insert(overlap);
      }
      add(axes, numbers("strategy.expert_overlap", overlaps));
    }
    if (has("fragments")) {
      const std::int64_t layers = std::max<std::int64_t>(1, base_.model.layers);
      add(axes, numbers("strategy.fragments",
                        doubling(std::min<std::int64_t>(8, layers), base_.strategy.fragments)));
    }
    if (has("overlap_steps"))
      add(axes, numbers("strategy.overlap_steps", {0, 1, 2, 5, base_.strategy.overlap_steps}));
    add_others(method, axes);
    if (has("placement")) {
      add_placements(method, axes);
    } else {
      add_family(method, {}, axes);
    }
  }

  void add_sites(const Method& method, std::vector<Axis>& axes) {
    if (equal_sites_) {
      axes.push_back(method.one_site
                         ? numbers("platform.sites", {1})
                         : sweep::parse_axis(fmt::format("platform.sites=2..{}+1", base_.sites())));
      if (!method.one_site) describe(axes.back());
    } else if (!sets_.empty()) {
      axes.push_back(words("platform.use_sites", method.one_site ? single_sites_ : sets_));
      if (method.one_site) alone_.push_back(method.name);
    }
  }

  /// Adds the axis of number formats on the wire. A method that is defined by its number format keeps that
  /// format, and a scenario with a sparse format keeps the sparse format.
  void add_payload(const Method& method, std::vector<Axis>& axes) {
    if (varied("strategy.payload_dtype") != nullptr) {
      axes.push_back(*varied("strategy.payload_dtype"));
      return;
    }
    if ((method.usual_wire && !given_payload_) || base_.strategy.wire.sparse() ||
        base_.strategy.secure_aggregation) {
      if (method.usual_wire && !given_payload_)
        own_formats_.push_back(fmt::format("{} {}", method.name, to_string(method.usual_wire->type)));
      return;
    }
    std::vector<std::string> types = {"bf16", "int8"};
    const std::string own = to_string(base_.strategy.wire.type);
    if (given_payload_ && own != "bf16" && own != "int8") types.insert(types.begin(), own);
    add(axes, words("strategy.payload_dtype", types));
  }

  /// Adds the axes of --vary for keys without a default axis. A method skips axes that it does not use.
  void add_others(const Method& method, std::vector<Axis>& axes) {
    const std::set<std::string> elsewhere = {"strategy.method", "strategy.placement",
                                             "strategy.reshuffle_rounds", "strategy.local_steps"};
    for (const Axis& axis : question_.vary) {
      const bool there =
          std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.key == axis.key; });
      if (there || elsewhere.contains(axis.key)) continue;
      const std::string name = axis.key.starts_with("strategy.") ? axis.key.substr(9) : "";
      const auto& all = costmodel::methods();
      const bool of_methods = std::any_of(
          all.begin(), all.end(), [&](const Method& other) { return costmodel::has_axis(other, name); });
      if (!name.empty() && of_methods && !costmodel::has_axis(method, name)) continue;
      axes.push_back(axis);
    }
  }

  void add_placements(const Method& method, const std::vector<Axis>& axes) {
    std::vector<std::string> kinds = {"fixed", "random"};
    if (!base_.strategy.routing_counts.empty()) kinds.emplace_back("affinity");
    if (const Axis* asked = varied("strategy.placement")) kinds = asked->words;
    describe(words("strategy.placement", kinds));
    for (const std::string& kind : kinds) {
      std::vector<Axis> more = axes;
      if (kind == "random")
        add(more, numbers("strategy.reshuffle_rounds", {1, 4, 16, base_.strategy.reshuffle_rounds}));
      add_family(method, {"strategy.placement=" + kind}, more);
    }
  }

  void add_family(const Method& method, std::vector<std::string> overrides, std::vector<Axis> axes) {
    overrides.insert(overrides.begin(), fmt::format("strategy.method={}", method.name));
    const auto steps = static_cast<std::int64_t>(costmodel::summarise(base_).steps);
    // The last axis varies fastest. It is numeric, and rows that differ in numbers are computed together.
    if (!method.every_step && costmodel::has_axis(method, "local_steps"))
      add(axes, numbers("strategy.local_steps",
                        doubling(std::min(kLargestLocalSteps, steps), base_.strategy.local_steps)));
    std::vector<double> wire_bytes = wire_bytes_of(method, axes);
    space_.families.push_back(
        {&method, std::move(overrides), sweep::Grid(std::move(axes)), std::move(wire_bytes)});
  }

  [[nodiscard]] std::vector<double> wire_bytes_of(const Method& method, const std::vector<Axis>& axes) const {
    const costmodel::WireFormat& own = base_.strategy.wire;
    const auto payload = std::find_if(axes.begin(), axes.end(),
                                      [](const Axis& axis) { return axis.key == "strategy.payload_dtype"; });
    if (payload == axes.end() || own.sparse() || base_.strategy.secure_aggregation) {
      const costmodel::WireFormat usual =
          method.usual_wire.value_or(costmodel::plain_format(costmodel::ElementType::bf16));
      return {(given_payload_ ? own : usual).bytes_per_element()};
    }
    std::vector<double> bytes;
    for (const std::string& name : payload->words) {
      for (const costmodel::ElementType type : kElementTypes) {
        if (name == to_string(type)) bytes.push_back(costmodel::plain_format(type).bytes_per_element());
      }
    }
    return bytes;
  }

  const Scenario& base_;
  const Question& question_;
  bool given_payload_ = false;
  bool named_sites_ = false, drawn_sites_ = false, equal_sites_ = false;
  std::vector<std::string> sets_, single_sites_;
  std::set<std::string> described_;
  std::vector<std::string> own_formats_, alone_;  // methods with a usual number format, and those of one site
  Space space_;
};

}  // namespace

double Space::candidates() const {
  double sum = 0;
  for (const Family& family : families) sum += static_cast<double>(family.grid.rows());
  return sum;
}

Space candidate_space(const Scenario& base, const Question& question) {
  return SpaceBuilder(base, question).build();
}

}  // namespace fomoe::planner
