#include "experiments/explore/controls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "costmodel/compute/site_times.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "platforms/platform.hpp"

namespace fomoe::explore {

namespace {

using costmodel::Scenario;

struct Slider {
  const char* key;
  const char* label;
  const char* unit;
  double min, max;
  bool log, whole;
};

class Controls {
 public:
  Controls(const Question& question, const Scenario& base)
      : base_(base), document_(scenario::Document::read(question.path, "scenario", "")) {
    for (const std::string& assignment : question.overrides) document_.override_key(assignment);
    scenario::displace_alternatives(document_);
  }

  Json all() {
    add_strategy();
    add_network();
    add_compute();
    return std::move(list_);
  }

  /// platform.rate_factor, which the rates of the platform contain.
  [[nodiscard]] double factor() const { return own("platform.rate_factor").value_or(1.0); }

 private:
  [[nodiscard]] bool given(const std::string& table, const std::string& name) const {
    const toml::table* found = document_.root().get_as<toml::table>(table);
    return found != nullptr && found->contains(name);
  }

  /// The value of a number that the file, or an override, gives for this key, in SI units.
  [[nodiscard]] std::optional<double> own(const std::string& dotted) const {
    const toml::node_view<const toml::node> node = document_.root().at_path(dotted);
    if (node.is_number()) return node.value<double>();
    const auto text = node.value<std::string>();
    return text ? scenario::read_single_key(dotted + '=' + *text).number : std::nullopt;
  }

  /// The slider's range includes the present value.
  void number(const Slider& slider, double value, const std::string& hint = "") {
    list_.push_back({{"key", slider.key},
                     {"label", slider.label},
                     {"kind", "number"},
                     {"unit", slider.unit},
                     {"value", value},
                     {"min", value > 0 ? std::min(slider.min, value) : slider.min},
                     {"max", std::max(slider.max, value)},
                     {"log", slider.log},
                     {"whole", slider.whole},
                     {"hint", hint}});
  }

  void choice(const std::string& key, const std::string& label, const std::vector<std::string>& choices,
              const std::string& value, const std::string& hint = "") {
    list_.push_back({{"key", key},
                     {"label", label},
                     {"kind", "choice"},
                     {"choices", choices},
                     {"value", value},
                     {"hint", hint}});
  }

  /// The values of a key of [strategy], of which the default is the empty text unless the file sets the key.
  void strategy_choice(const std::string& name, const std::string& label, const std::string& hint) {
    std::vector<std::string> values = scenario::find_key("strategy." + name)->member.names();
    std::string value;
    if (const toml::table* table = document_.root().get_as<toml::table>("strategy"))
      value = (*table)[name].value_or(std::string());
    if (value.empty()) values.insert(values.begin(), "");
    choice("strategy." + name, label, values, value, hint);
  }

  void add_strategy() {
    std::vector<std::string> names;
    Json summaries = Json::object();
    for (const costmodel::Method& method : costmodel::methods()) {
      names.push_back(method.name);
      summaries[method.name] = {{"text", method.summary},
                                {"every_step", method.every_step || method.one_site},
                                {"overlap", method.partial_experts},
                                {"source", method.source}};
    }
    choice("strategy.method", "Method", names, base_.strategy.method->name);
    list_.back()["methods"] = summaries;
    number({"strategy.local_steps", "Local steps K", "count", 1, 1024, true, true},
           static_cast<double>(base_.strategy.local_steps), "optimiser steps between two synchronisations");
    if (base_.model.experts > 0)
      number({"strategy.expert_overlap", "Expert overlap O_e", "count", 1, static_cast<double>(base_.sites()),
              false, true},
             base_.strategy.expert_overlap > 0 ? base_.strategy.expert_overlap : base_.sites(),
             "sites that hold each expert");
    strategy_choice("payload_dtype", "Precision of payloads", "number format on the wire");
    number({"workload.tokens", "Training tokens", "count", 1e8, 1e13, true, true},
           static_cast<double>(base_.workload.tokens));
  }

  void add_network() {
    const platforms::Site& first = base_.platform.sites.front();
    const bool uniform = !given("platform", "file") && !given("platform", "preset");
    if (uniform && first.uplink_bytes_per_s == first.downlink_bytes_per_s) {
      number({"platform.bandwidth", "Bandwidth of a site", "rate", 10e6 / 8, 1e12 / 8, true, false},
             own("platform.bandwidth").value_or(first.uplink_bytes_per_s / factor()),
             document_.root().contains("site")
                 ? "up and down, of the sites that have no [[site]] of their own"
                 : "up and down");
    }
    if (!uniform || first.uplink_bytes_per_s != first.downlink_bytes_per_s)
      number({"platform.rate_factor", "Bandwidth, factor", "factor", 0.01, 100, true, false}, factor(),
             "on every link rate of the platform");
    if (uniform && base_.sites() > 1) {
      number({"platform.latency", "Latency, one way", "time", 1e-4, 0.5, true, false},
             own("platform.latency").value_or(base_.platform.path(0, 1).latency_s),
             document_.root().contains("path") ? "of the paths that have no [[path]] of their own" : "");
    } else {
      number({"network_model.latency_factor", "Latency, factor", "factor", 0.1, 10, true, false},
             base_.network.latency_factor, "on every latency of the platform");
    }
    if (uniform || given("platform", "generate") || given("platform", "preset")) {
      number({"platform.sites", "Sites", "count", 1, 16, false, true}, base_.sites());
      return;
    }
    Json names = Json::array(), chosen = Json::array();
    const platforms::Platform file = scenario::read_all_sites(document_);
    for (const platforms::Site& site : file.sites) names.push_back(site.name);
    for (const platforms::Site& site : base_.platform.sites) chosen.push_back(site.name);
    list_.push_back({{"key", "platform.use_sites"},
                     {"label", "Sites"},
                     {"kind", "sites"},
                     {"choices", names},
                     {"value", chosen},
                     {"hint", "of " + file.name}});
  }

  void add_compute() {
    const std::string differing =
        base_.site_compute.empty() ? "" : "of the sites that have no [[site]] of their own";
    number({"compute.gpus_per_site", "GPUs per site", "count", 1, 1024, true, true}, base_.gpus.count,
           differing);
    if (const auto* device = std::get_if<costmodel::AssumedDevice>(&base_.compute)) {
      const bool mfu = device->mfu > 0;
      number({mfu ? "compute.mfu" : "compute.kernel_efficiency", mfu ? "MFU" : "Kernel efficiency", "share",
              0.05, 1, false, false},
             device->share_of_peak(), differing);
    } else {
      Scenario alike = base_;
      alike.site_compute.clear();
      const double seconds = costmodel::site_compute_times(alike, 0).step_s();
      number({"compute.step_time", "Step time", "time", seconds / 30, seconds * 30, true, false}, seconds,
             std::holds_alternative<costmodel::ProfiledCompute>(base_.compute)
                 ? "from the profile, until you change it"
                 : differing);
    }
    if (base_.gpus.intra_site_bytes_per_s > 0)
      number(
          {"compute.intra_site_bandwidth", "Bandwidth inside a site", "rate", 1e9 / 8, 1.8e12, true, false},
          base_.gpus.intra_site_bytes_per_s, "between a GPU and the others of its site");
    // An empty text deletes the choice, so that the file's model, if it has one, cannot be chosen away.
    std::vector<std::string> models = {"published", "paper-table", "diloco-scaling-law"};
    std::string model;
    if (base_.quality && given("quality", "model"))
      model = (*document_.root().get_as<toml::table>("quality"))["model"].value_or(std::string());
    if (model.empty()) models.insert(models.begin(), "");
    choice("quality.model", "Quality model", models, model, "for the loss of the trained model");
  }

  const Scenario& base_;
  scenario::Document document_;
  Json list_ = Json::array();
};

}  // namespace

Json controls_of(const Question& question) {
  const Scenario base = read(question, question.overrides);
  const scenario::Document document = scenario::Document::read(question.path, "scenario", "");
  Controls controls(question, base);
  return {{"name", document.root()["name"].value_or(std::string())},
          {"description", document.root()["description"].value_or(std::string())},
          {"path", question.path},
          {"currency", base.prices ? base.prices->currency : ""},
          {"rate_factor", controls.factor()},
          {"controls", controls.all()}};
}

}  // namespace fomoe::explore
