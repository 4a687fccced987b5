#include "experiments/explore/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/approximations.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/methods/all.hpp"
#include "experiments/explore/controls.hpp"
#include "experiments/explore/formula.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::explore {

namespace {

using costmodel::Scenario;

constexpr int kHalfOctaves = 8;  // rates from 1/16 to 16
constexpr double kLatencies[] = {0.25, 0.5, 1, 2, 4};
constexpr const char* kFormats[] = {"bf16", "int8", "int4"};
constexpr int kMostOverlaps = 8;

/// A number as the page shows it and as --set takes it, so that both mean the same.
struct Step {
  std::string text;
  double value = 0;
};
Step step(double value) {
  const std::string text = fmt::format("{:.4g}", value);
  return {text, parse_number<double>(text).value()};
}

/// Six digits are enough to draw and to compare, and keep the page small.
Json rounded(double value) { return parse_number<double>(fmt::format("{:.6g}", value)).value(); }

class Grid {
 public:
  explicit Grid(const Question& question) : question_(question), base_(read(question, question.overrides)) {
    const Json about = controls_of(question);
    for (const char* key : {"name", "description", "path", "currency"}) document_[key] = about[key];
    document_["options"] = options_of(question.overrides);
    rate_factor_ = about["rate_factor"].get<double>();
    for (const Json& control : about["controls"]) {
      if (control["key"] == "strategy.payload_dtype") own_format_ = control["value"].get<std::string>();
      if (control["key"] == "strategy.method") summaries_ = control["methods"];
    }
    for (int i = -kHalfOctaves; i <= kHalfOctaves; ++i)
      rates_.push_back(step(rate_factor_ * std::exp2(i / 2.0)));
    for (const double factor : kLatencies) latencies_.push_back(step(base_.network.latency_factor * factor));
    formats_ = {own_format_};
    for (const char* format : kFormats) {
      if (format != own_format_) formats_.emplace_back(format);
    }
    local_steps_ = {base_.strategy.local_steps};
    for (std::int64_t k = 1; k <= kLargestLocalSteps; k *= 2) local_steps_.insert(k);
  }

  Json document() && {
    Json blocks = Json::object();
    std::set<int> overlaps;
    std::vector<std::string> methods;
    for (const costmodel::Method& method : costmodel::methods()) {
      bool any = false;
      for (const std::string& format : formats_) {
        for (const int overlap : overlaps_of(method)) {
          const Json block = block_of(method, format, overlap);
          if (block.is_null()) continue;
          any = true;
          if (overlap > 0) overlaps.insert(overlap);
          blocks[fmt::format("{}|{}|{}", method.name, format, overlap)] = block;
        }
      }
      if (any) methods.push_back(method.name);
    }
    add_controls(methods, overlaps);
    double rate = base_.platform.sites.front().uplink_bytes_per_s;
    for (const platforms::Site& site : base_.platform.sites)
      rate = std::min({rate, site.uplink_bytes_per_s, site.downlink_bytes_per_s});
    document_["grid"] = {{"blocks", blocks},
                         {"rates", values(rates_)},
                         {"latencies", values(latencies_)},
                         {"rate_factor", rate_factor_},
                         {"rate_bytes_per_s", rate},
                         {"sites", base_.sites()},
                         {"gpus_per_site", gpus_of(base_)}};
    return std::move(document_);
  }

 private:
  static Json values(const std::vector<Step>& steps) {
    Json list = Json::array();
    for (const Step& one : steps) list.push_back(one.value);
    return list;
  }

  /// The scenario's own overlap.
  [[nodiscard]] int own_overlap() const {
    return base_.strategy.expert_overlap > 0 ? base_.strategy.expert_overlap : base_.sites();
  }

  [[nodiscard]] std::vector<int> overlaps_of(const costmodel::Method& method) const {
    if (!method.partial_experts || base_.model.experts == 0) return {0};
    std::vector<int> overlaps;
    for (int i = 1; i <= std::min(base_.sites(), kMostOverlaps); ++i) overlaps.push_back(i);
    const int own = own_overlap();
    if (own > overlaps.back()) overlaps.push_back(own);
    return overlaps;
  }

  /// `own` with other local steps, or nothing if they are impossible. The reader computes the number of
  /// fragments from the local steps, if the method has fragments.
  [[nodiscard]] std::optional<Scenario> moved_to(const Scenario& own,
                                                 const std::vector<std::string>& overrides,
                                                 std::int64_t local_steps) const {
    if (own.strategy.method->usual_fragments != nullptr)
      return with_local_steps(question_, overrides, local_steps);
    Scenario moved = own;
    moved.strategy.local_steps = local_steps;
    try {
      costmodel::check(moved);
    } catch (const InputError&) {
      return std::nullopt;
    }
    return moved;
  }

  /// Null if the reader refuses the settings.
  [[nodiscard]] Json block_of(const costmodel::Method& method, const std::string& format, int overlap) const {
    std::vector<std::string> overrides = question_.overrides;
    overrides.push_back("strategy.method=" + method.name);
    if (!format.empty()) overrides.push_back("strategy.payload_dtype=" + format);
    if (overlap > 0) overrides.push_back(fmt::format("strategy.expert_overlap={}", overlap));
    Scenario own;
    try {
      own = read(question_, overrides);
    } catch (const FileError&) {
      return nullptr;
    }
    const bool one_k = method.every_step || method.one_site;
    Json steps = Json::array(), bytes = Json::array(), wall = Json::array(), used = Json::array(),
         cost = Json::array(), problems = Json::array();
    bool exact = true;
    for (const std::int64_t k : local_steps_) {
      if (one_k && k != base_.strategy.local_steps) continue;
      steps.push_back(k);
      problems.push_back("");
      const std::optional<Scenario> scenario = moved_to(own, overrides, k);
      costmodel::Resolved resolved;
      if (scenario) {
        resolved = costmodel::resolve(*scenario);
        exact = exact && !costmodel::approximates(resolved);
        problems.back() = costmodel::closed_form(*scenario).memory_problem;
      }
      for (const Step& latency : latencies_) {
        for (const Step& rate : rates_) {
          if (!scenario) {
            for (Json* list : {&bytes, &wall, &used, &cost}) list->push_back(nullptr);
            continue;
          }
          Scenario moved = *scenario;
          moved.network.latency_factor = latency.value;
          moved.platform = platforms::scaled_bandwidth(std::move(moved.platform), rate.value / rate_factor_);
          costmodel::resolve(moved, costmodel::Resolving::links, resolved);
          const costmodel::Outcome outcome = costmodel::outcome_of(resolved);
          bytes.push_back(rounded(outcome.bytes_sent_per_site_per_round));
          wall.push_back(rounded(outcome.wall_clock_s));
          used.push_back(rounded(outcome.compute_utilization));
          if (!std::isnan(outcome.cost_total)) cost.push_back(rounded(outcome.cost_total));
        }
      }
    }
    return {{"local_steps", steps}, {"every_step", one_k},  {"bytes", bytes},      {"problems", problems},
            {"exact", exact},       {"wall_clock_s", wall}, {"utilization", used}, {"cost", cost}};
  }

  void add_steps(const std::string& key, const std::string& label, const std::vector<std::string>& texts,
                 const std::string& value, const std::string& hint) {
    document_["controls"].push_back({{"key", key},
                                     {"label", label},
                                     {"kind", "steps"},
                                     {"choices", texts},
                                     {"value", value},
                                     {"hint", hint}});
  }

  void add_controls(const std::vector<std::string>& methods, const std::set<int>& overlaps) {
    document_["controls"] = Json::array();
    Json& controls = document_["controls"];
    controls.push_back({{"key", "strategy.method"},
                        {"label", "Method"},
                        {"kind", "choice"},
                        {"choices", methods},
                        {"value", base_.strategy.method->name},
                        {"hint", ""},
                        {"methods", summaries_}});
    const auto texts = [](const auto& numbers) {
      std::vector<std::string> list;
      for (const auto number : numbers) list.push_back(std::to_string(number));
      return list;
    };
    const auto of_steps = [](const std::vector<Step>& steps) {
      std::vector<std::string> list;
      for (const Step& one : steps) list.push_back(one.text);
      return list;
    };
    add_steps("strategy.local_steps", "Local steps K", texts(local_steps_),
              std::to_string(base_.strategy.local_steps), "optimiser steps between two synchronisations");
    if (!overlaps.empty()) {
      add_steps("strategy.expert_overlap", "Expert overlap O_e", texts(overlaps),
                std::to_string(own_overlap()), "sites that hold each expert");
    }
    controls.push_back({{"key", "strategy.payload_dtype"},
                        {"label", "Precision of payloads"},
                        {"kind", "choice"},
                        {"choices", formats_},
                        {"value", own_format_},
                        {"hint", "number format on the wire"}});
    add_steps("platform.rate_factor", "Bandwidth, factor", of_steps(rates_), step(rate_factor_).text,
              "on every link rate");
    add_steps("network_model.latency_factor", "Latency, factor", of_steps(latencies_),
              step(base_.network.latency_factor).text, "on every latency");
  }

  const Question& question_;
  Scenario base_;
  double rate_factor_ = 1;  // of the scenario, which the rates of its platform contain
  std::string own_format_;
  Json summaries_, document_ = Json::object();
  std::vector<Step> rates_, latencies_;
  std::vector<std::string> formats_;
  std::set<std::int64_t> local_steps_;
};

}  // namespace

Json grid_of(const Question& question) { return Grid(question).document(); }

}  // namespace fomoe::explore
