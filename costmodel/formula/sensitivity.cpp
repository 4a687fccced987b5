#include "costmodel/formula/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

/// Returns the factor that was really applied; 1 if the scenario does not have the input.
using Change = double (*)(Scenario&, double);

double whole(std::int64_t& count, double factor) {
  const std::int64_t before = count;
  const std::int64_t step =
      std::max<std::int64_t>(1, std::llround(static_cast<double>(before) * kSensitivityStep));
  count = std::max<std::int64_t>(1, before + (factor < 1 ? -step : step));
  return static_cast<double>(count) / static_cast<double>(before);
}

double scale(double& value, double factor) {
  if (value == 0 || std::isinf(value)) return 1;
  value *= factor;
  return factor;
}

double rates(Scenario& scenario, double factor) {
  scenario.platform = platforms::scaled_bandwidth(std::move(scenario.platform), factor);
  return factor;
}

double latencies(Scenario& scenario, double factor) {
  double changed = 1;
  scenario.platform = platforms::changed_latencies(std::move(scenario.platform), [&](double latency_s) {
    if (latency_s > 0) changed = factor;
    return latency_s * factor;
  });
  return changed;
}

/// Applies a change to the compute of each site.
double each_site(Scenario& scenario, double factor, double (*change)(ComputeSpec&, SiteGpus&, double)) {
  if (scenario.site_compute.empty()) return change(scenario.compute, scenario.gpus, factor);
  double changed = 1;
  for (SiteCompute& site : scenario.site_compute)
    if (const double own = change(site.compute, site.gpus, factor); own != 1) changed = own;
  return changed;
}

struct Input {
  const char* name;
  Change change;
};

constexpr Input kInputs[] = {
    {"workload.tokens", [](Scenario& s, double f) { return whole(s.workload.tokens, f); }},
    {"workload.global_batch_sequences",
     [](Scenario& s, double f) { return whole(s.workload.global_batch_sequences, f); }},
    {"strategy.local_steps", [](Scenario& s, double f) { return whole(s.strategy.local_steps, f); }},
    {"compute.step_time",
     [](Scenario& s, double f) {
       return each_site(s, f, [](ComputeSpec& compute, SiteGpus&, double factor) {
         auto* given = std::get_if<GivenStepTime>(&compute);
         return given == nullptr ? 1 : scale(given->seconds, factor);
       });
     }},
    {"measured step times",
     [](Scenario& s, double f) {
       double changed = 1;
       for (int site = 0; site < s.sites(); ++site) {
         if (!std::holds_alternative<ProfiledCompute>(AtSite(s, site).scenario().compute)) continue;
         s.platform.sites[static_cast<std::size_t>(site)].compute_factor *= f;
         changed = f;
       }
       return changed;
     }},
    {"compute.peak_flops x mfu",
     [](Scenario& s, double f) {
       return each_site(s, f, [](ComputeSpec& compute, SiteGpus&, double factor) {
         auto* device = std::get_if<AssumedDevice>(&compute);
         return device == nullptr ? 1 : scale(device->peak_flops, factor);
       });
     }},
    {"compute.intra_site_bandwidth",
     [](Scenario& s, double f) {
       return each_site(s, f, [](ComputeSpec&, SiteGpus& gpus, double factor) {
         return scale(gpus.intra_site_bytes_per_s, factor);
       });
     }},
    {"compute.memory_bandwidth",
     [](Scenario& s, double f) {
       return each_site(s, f, [](ComputeSpec&, SiteGpus& gpus, double factor) {
         return scale(gpus.memory_bytes_per_s, factor);
       });
     }},
    {"link rates", rates},
    {"latencies", latencies},
    {"network_model.tcp_window",
     [](Scenario& s, double f) {
       return s.network.tcp_window_bytes ? scale(*s.network.tcp_window_bytes, f) : 1;
     }},
    {"network_model.send_buffer",
     [](Scenario& s, double f) {
       return s.network.send_buffer_bytes ? scale(*s.network.send_buffer_bytes, f) : 1;
     }},
    {"network_model.loss_rate",
     [](Scenario& s, double f) { return s.network.loss_rate ? scale(*s.network.loss_rate, f) : 1; }},
    {"network_model.jitter", [](Scenario& s, double f) { return scale(s.network.jitter_s, f); }},
    {"network_model.call_overhead",
     [](Scenario& s, double f) { return scale(s.network.call_overhead_s, f); }},
    {"network_model.background_share",
     [](Scenario& s, double f) {
       return s.network.background_share < 0.9 ? scale(s.network.background_share, f) : 1;
     }},
};

}  // namespace

Sensitivities sensitivity(const Scenario& scenario, const WallClocks& wall_clocks_s) {
  Sensitivities all;
  std::vector<Scenario> scenarios = {scenario};  // then two for each input
  for (const Input& input : kInputs) {
    Sensitivity row;
    row.input = input.name;
    Scenario less = scenario, more = scenario;
    row.less_share = input.change(less, 1 - kSensitivityStep);
    row.more_share = input.change(more, 1 + kSensitivityStep);
    if (row.less_share == 1 && row.more_share == 1) continue;
    try {
      check(less);
      check(more);
    } catch (const InputError&) {
      continue;  // one of the two changes gives an invalid scenario
    }
    all.inputs.push_back(row);
    scenarios.push_back(std::move(less));
    scenarios.push_back(std::move(more));
  }
  const std::vector<double> times_s = wall_clocks_s(scenarios);
  all.unchanged_s = times_s.front();
  for (std::size_t i = 0; i < all.inputs.size(); ++i) {
    Sensitivity& row = all.inputs[i];
    row.less_s = times_s[2 * i + 1];
    row.more_s = times_s[2 * i + 2];
    const double down = row.less_s / all.unchanged_s - 1, up = row.more_s / all.unchanged_s - 1;
    constexpr double kLarger = 1 + 1e-9;  // rounding does not decide between equal ones
    row.change = std::abs(down) > std::abs(up) * kLarger ? down : up;
  }
  std::erase_if(all.inputs,
                [](const Sensitivity& row) { return std::isnan(row.less_s) || std::isnan(row.more_s); });
  std::stable_sort(all.inputs.begin(), all.inputs.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.change) > std::abs(b.change);
  });
  return all;
}

Sensitivities sensitivity(const Scenario& scenario) {
  Sensitivities all = sensitivity(scenario, [](const std::vector<Scenario>& scenarios) {
    std::vector<double> times_s;
    for (const Scenario& one : scenarios) {
      try {
        times_s.push_back(resolve(one).wall_clock_s());
      } catch (const InputError&) {
        times_s.push_back(std::nan(""));
      }
    }
    return times_s;
  });
  // The formula does not model windows, losses, jitter and calls, so a zero change means nothing there.
  std::erase_if(all.inputs, [](const Sensitivity& row) {
    return row.change == 0 && std::string_view(row.input).starts_with("network_model.");
  });
  return all;
}

}  // namespace fomoe::costmodel
