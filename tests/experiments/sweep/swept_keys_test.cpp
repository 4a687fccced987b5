// Each key that a sweep sets in the scenario gives what the reader gives, to the bit, resolved from the first
// stage that reads the key.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/methods/all.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/sweep/axis.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;

namespace {

using costmodel::Resolved;
using costmodel::Scenario;
using scenario::dotted;
using Words = std::vector<std::string>;

const std::string kScenarios = tests::source_dir() + "/experiments/scenarios/";

/// Empty if the reader refuses it.
std::optional<Scenario> read(const std::string& file, Words overrides, const std::string& more) {
  if (!more.empty()) overrides.push_back(more);
  scenario::ReadOptions options;
  options.overrides = overrides;
  try {
    return scenario::read_scenario(kScenarios + file, options);
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const FileError&) {
    return std::nullopt;
  }
}

/// All numbers of the answer. Provenance is left out, as it is text.
std::string numbers_of(const Scenario& scenario, const Resolved& resolved) {
  const costmodel::Outcome row = costmodel::outcome_of(resolved);
  std::string text;
  for (const double value :
       {row.wall_clock_s, row.compute_utilization, row.bytes_per_token, row.sent.total(), row.sent.checkpoint,
        row.memory_bytes_per_site, row.memory_bytes_per_gpu, row.gpu_memory_bytes, row.flops_per_token,
        row.round_compute_s, row.round_communication_s, row.round_exposed_communication_s, row.round_idle_s,
        row.link_busy_share, row.cost_total, row.energy_kwh})
    text += std::to_string(std::bit_cast<std::uint64_t>(value)) + ' ';
  text += costmodel::approximates(resolved) ? "approximate\n" : "exact\n";
  auto report = scenario::to_json(costmodel::closed_form(scenario));
  report.erase("provenance");
  return text + report.dump();
}

struct Base {
  std::string file;
  Words overrides;
  bool strategy_only = false;  // only the keys of [strategy] are compared
};

/// Bases that together allow every key.
std::vector<Base> bases() {
  const Words run = {"strategy.method=diloco", "energy.gpu_power=700W",        "energy.idle_share=0.2",
                     "failures.site_mtbf=7d",  "failures.checkpoint_cost=20s", "failures.detection_time=30s"};
  Words drop = run;
  drop.push_back("failures.policy=drop");
  std::vector<Base> list = {
      {"two-sites.toml", run},
      {"two-sites.toml", drop},
      {"two-sites.toml", {"workload.global_batch_tokens=2097152"}},
      {"two-sites.toml", {"compute.mfu=0.4", "compute.peak_flops=989TFLOPS", "compute.gpus_per_site=8"}},
      {"two-sites.toml",
       {"compute.kernel_efficiency=0.4", "compute.peak_flops=989TFLOPS", "compute.gpus_per_site=16",
        "compute.sharded=4", "compute.memory_bandwidth=3TBps", "compute.intra_site_bandwidth=100GBps",
        "compute.outer_state_on=host"}},
      {"two-sites.toml",
       {"strategy.method=diloco", "compute.gpus_per_site=8", "compute.pipeline_parallel=2",
        "compute.activation_checkpointing=true", "compute.intra_site_bandwidth=100GBps"}},
      {"two-sites.toml",
       {"traffic.data_site=site-0", "traffic.checkpoint_site=site-0", "traffic.rejoin_site=site-1"}},
      {"two-sites.toml",
       {"strategy.method=sparse_loco", "strategy.compression.kind=top_k",
        "strategy.compression.kept_share=0.01", "platform.sites=8"}},
      {"two-sites.toml",
       {"strategy.method=sparse_loco", "strategy.collective=store", "platform.store.uplink=50Gbps",
        "platform.store.downlink=50Gbps", "platform.sites=8", "prices.gpu_hour=2USD",
        "platform.store.million_requests=5USD"}},
      {"two-sites.toml", {"compute.straggler_share=0.1", "strategy.quorum=1", "strategy.method=diloco"}},
      {"four-regions.toml", {"strategy.collective=direct"}},
      {"four-regions.toml", {}},
      {"unequal-sites.toml", {"strategy.method=diloco"}},
  };
  for (const costmodel::Method& method : costmodel::methods())
    list.push_back({"two-sites.toml", {"strategy.method=" + method.name, "platform.sites=4"}, true});
  return list;
}

bool is_swept(const scenario::Key& key) { return scenario::is_number(key.kind) && key.member.set != nullptr; }

/// The example of the key, and values around it.
std::vector<double> values_of(const scenario::Key& key) {
  const std::string name = dotted(key);
  std::vector<double> values;
  const std::string example(key.example);
  const double middle = *scenario::read_single_key(name + '=' + example).number;
  for (const double factor : {1.0, 0.5, 2.0}) {
    double value = middle * factor;
    if (key.kind == scenario::Kind::count) value = std::max(1.0, std::round(value));
    values.push_back(value);
  }
  return values;
}

std::string assignment(const scenario::Key& key, double value) {
  sweep::Axis axis;
  axis.key = dotted(key);
  axis.kind = key.kind;
  axis.numbers = {value};
  return axis.assignment(0);
}

}  // namespace

TEST_CASE("each swept key, set and resolved from its first stage, gives what a fresh reading gives") {
  std::map<std::string, int> compared;
  for (const auto& [file, overrides, strategy_only] : bases()) {
    CAPTURE(overrides.empty() ? file : overrides.front());
    const std::optional<Scenario> plain = read(file, overrides, "");
    if (!plain) continue;
    const Resolved resolved_plain = costmodel::resolve(*plain);
    for (const scenario::Key& key : scenario::scenario_keys()) {
      if (!is_swept(key) || (strategy_only && !key.table.starts_with("strategy"))) continue;
      // A key that displaces others, such as step_time, is only compared where the base has it.
      const std::vector<double> values = values_of(key);
      const std::optional<Scenario> base = read(file, overrides, assignment(key, values.front()));
      if (!base) continue;
      const Resolved first = costmodel::resolve(*base);
      for (const double value : values) {
        CAPTURE(assignment(key, value));
        const std::optional<Scenario> fresh = read(file, overrides, assignment(key, value));
        if (!fresh) continue;
        Scenario scenario = *base;
        if (!key.member.neutral.empty()) {
          const auto neutral = read(file, overrides, dotted(key) + '=' + std::string(key.member.neutral));
          REQUIRE(neutral);
          scenario = *neutral;
        }
        if (!key.member.set(scenario, value)) continue;
        // Defaults that follow from others are the sweep's business (closed_form_rows.cpp).
        if (scenario.strategy.expert_overlap != fresh->strategy.expert_overlap ||
            scenario.strategy.fragments != fresh->strategy.fragments)
          continue;
        if (scenario.gpus.count != fresh->gpus.count) continue;  // follows from the degrees
        Resolved resolved = first;
        costmodel::resolve(scenario, key.stage, resolved);
        const bool equal = numbers_of(scenario, resolved) == numbers_of(*fresh, costmodel::resolve(*fresh));
        CHECK(equal);
        ++compared[dotted(key)];
      }
    }
  }
  for (const scenario::Key& key : scenario::scenario_keys()) {
    CAPTURE(dotted(key));
    if (is_swept(key)) CHECK(compared[dotted(key)] >= 2);
  }
}

TEST_CASE("every numeric key of the closed form is set without the reader, apart from a few") {
  const std::set<std::string> read_anew = {
      "compute.data_parallel",  // joins the degrees to a number of GPUs
      "model.dense_parameters",
      "model.expert_parameters",
      "model.d_ffn",           // rules of the reader
      "platform.mtu",          // decides terms of the host
      "platform.rate_spread",  // draws the sites
      "platform.trace_period",
      "platform.trace_start",  // only simulations read a trace
      // Keys of one site or one path: lines, GPUs' shares and failures of sites that then differ.
      "site.batch_share",
      "site.bandwidth",
      "site.uplink",
      "site.downlink",
      "site.gateways",
      "site.streams",
      "site.site_mtbf",
      "site.link_mtbf",
      "site.preemptions_per_day",
      "site.detection_time",
      "site.restart_time",
      "path.bandwidth",
      "path.latency",
  };
  for (const scenario::Key& key : scenario::scenario_keys()) {
    if (!scenario::is_number(key.kind) || key.table == "trainer") continue;
    const std::string name = dotted(key);
    CAPTURE(name);
    CHECK(is_swept(key) != read_anew.contains(name));
  }
}
