#include "costmodel/compose/memory_remedy.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <optional>
#include <sstream>

#include "costmodel/compose/check.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

constexpr int kMaxGpuFactor = 64;

struct Step {
  std::string setting;
  std::function<void(SiteGpus&)> apply;
};

double gpu_bytes(const Scenario& scenario) { return counts_of(scenario).sites.front().need_of_gpu.needed; }

/// Bytes of the fullest GPU with the steps applied; empty if the scenario is invalid with them.
std::optional<double> gpu_bytes_with(Scenario scenario, const std::vector<Step>& steps) {
  for (const Step& step : steps) step.apply(scenario.gpus);
  try {
    check(scenario);
  } catch (const InputError&) {
    return std::nullopt;
  }
  return gpu_bytes(scenario);
}

/// Whether the scenario may state a stage: there are GPUs that can share the state.
bool may_state_stage(const SiteGpus& gpus) { return gpus.sharded * gpus.context_parallel > 1; }

/// The stage of ZeRO that the framework has: Megatron-LM's distributed optimiser has the first one. Where
/// nobody has stated the framework, GPUs that share weights mean another one. A higher stage that the
/// scenario states is kept.
int zero_stage_of(const SiteGpus& gpus) {
  const int usual = gpus.stack == Stack::megatron && !gpus.stack_assumed ? 1 : 3;
  return may_state_stage(gpus) ? std::max(usual, gpus.zero_stage) : usual;
}

/// The setting of the stage beside one of compute.sharded, or nothing if it follows from that. A stage that
/// the scenario states would stay, and without a stage sharded GPUs would mean that they share weights.
std::string stage_setting(const SiteGpus& gpus) {
  const int stage = zero_stage_of(gpus);
  const bool follows = stage == 3 && !(may_state_stage(gpus) && gpus.zero_stage != stage);
  return follows ? "" : " compute.zero_stage=" + std::to_string(stage);
}

/// The setting beside compute.sharded that makes room for it where the scenario states the replicas.
std::string without_replicas(const SiteGpus& gpus) {
  return gpus.data_parallel_given ? " compute.data_parallel=1" : "";
}

/// What a scenario means with so many GPUs that share the state.
void shard(SiteGpus& gpus, int sharded) {
  gpus.zero_stage = zero_stage_of(gpus);
  gpus.sharded = sharded;
  if (gpus.stack_assumed) gpus.stack = Stack::torchtitan;
}

std::vector<Step> within_the_site(const SiteGpus& gpus) {
  std::vector<Step> steps;
  const int stage = zero_stage_of(gpus), sharded = gpus.sharded * gpus.data_parallel();
  if (sharded > 1 && (sharded > gpus.sharded || gpus.zero_stage < stage)) {
    steps.push_back(
        {"compute.sharded=" + std::to_string(sharded) + without_replicas(gpus) + stage_setting(gpus),
         [sharded](SiteGpus& g) { shard(g, sharded); }});
  }
  if (gpus.outer_state_on == OuterStateOn::device)
    steps.push_back(
        {"compute.outer_state_on=host", [](SiteGpus& g) { g.outer_state_on = OuterStateOn::host; }});
  if (!gpus.activation_checkpointing)
    steps.push_back(
        {"compute.activation_checkpointing=true", [](SiteGpus& g) { g.activation_checkpointing = true; }});
  if (gpus.micro_batch_sequences > 1)
    steps.push_back({"compute.micro_batch_sequences=1", [](SiteGpus& g) { g.micro_batch_sequences = 1; }});
  return steps;
}

/// Removes each step without which the state still fits.
void leave_out_unneeded(const Scenario& scenario, std::vector<Step>& steps, double available) {
  for (std::size_t i = 0; i < steps.size();) {
    std::vector<Step> fewer = steps;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const auto needed = gpu_bytes_with(scenario, fewer);
    if (needed && *needed <= available) {
      steps = fewer;
    } else {
      ++i;
    }
  }
}

/// The settings of all steps; a step can consist of two settings.
std::vector<std::string> settings_of(const std::vector<Step>& steps) {
  std::vector<std::string> settings;
  for (const Step& step : steps) {
    std::size_t from = 0;
    for (std::size_t space = step.setting.find(' '); space != std::string::npos;
         from = space + 1, space = step.setting.find(' ', from))
      settings.push_back(step.setting.substr(from, space - from));
    settings.push_back(step.setting.substr(from));
  }
  return settings;
}

/// The combination of settings with which the state fits into the given GPUs and a step takes least time, so
/// that the run costs least. Of equally fast combinations it is the one with the fewest settings. Each
/// combination has the largest micro-batch that fits. All have the steps `always`. Empty if nothing fits.
std::optional<MemoryRemedy> cheapest_inside(const Scenario& scenario, const std::vector<Step>& always) {
  std::vector<Step> steps = within_the_site(scenario.gpus);
  std::erase_if(steps, [](const Step& step) { return step.setting.starts_with("compute.micro_batch"); });
  std::optional<MemoryRemedy> best;
  double best_s = 0;
  std::size_t best_count = 0;
  for (unsigned chosen = 0; chosen < 1U << steps.size(); ++chosen) {
    std::vector<Step> taken = always;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if ((chosen >> i & 1U) != 0) taken.push_back(steps[i]);
    }
    Scenario changed = scenario;
    for (const Step& step : taken) step.apply(changed.gpus);
    std::int64_t& micro_batch = changed.gpus.micro_batch_sequences;
    try {
      check(changed);
      const SiteCounts site = counts_of(changed).sites.front();
      const std::optional<std::int64_t> largest = largest_micro_batch_sequences(site.model, site.load);
      if (micro_batch > 1 && largest && *largest > 0 && *largest < micro_batch) {
        micro_batch = *largest;
        taken.push_back({"compute.micro_batch_sequences=" + std::to_string(micro_batch), nullptr});
        check(changed);
      }
      const double needed = gpu_bytes(changed);
      if (needed > scenario.gpus.gpu_memory_bytes) continue;
      const double step_s = site_compute_times(changed, 0).step_s();
      const bool faster = !best || step_s < best_s * (1 - 1e-9);
      if (!faster && (step_s > best_s * (1 + 1e-9) || taken.size() >= best_count)) continue;
      best = MemoryRemedy{settings_of(taken), needed, true};
      best_s = step_s;
      best_count = taken.size();
    } catch (const InputError&) {
      continue;  // for example a profile that has no such micro-batch
    }
  }
  return best;
}

/// The same with the experts divided among as few GPUs as suffice, to which their tokens are sent.
std::optional<MemoryRemedy> with_divided_experts(const Scenario& scenario) {
  for (int divided = 2 * scenario.gpus.expert_parallel; divided <= scenario.gpus.count; divided *= 2) {
    const Step step{"compute.expert_parallel=" + std::to_string(divided),
                    [divided](SiteGpus& g) { g.expert_parallel = divided; }};
    if (auto fitting = cheapest_inside(scenario, {step})) return fitting;
  }
  return std::nullopt;
}

}  // namespace

MemoryRemedy memory_remedy(const Scenario& of_all_sites) {
  const AtSite fullest(of_all_sites, static_cast<int>(counts_of(of_all_sites).fullest));
  const Scenario& scenario = fullest;
  const double available = scenario.gpus.gpu_memory_bytes;
  MemoryRemedy remedy{{}, gpu_bytes(scenario), true};
  if (available == 0 || remedy.gpu_bytes <= available) return remedy;
  if (const std::optional<MemoryRemedy> inside = cheapest_inside(scenario, {})) return *inside;
  if (const std::optional<MemoryRemedy> inside = with_divided_experts(scenario)) return *inside;
  remedy.fits = false;

  std::vector<Step> taken;
  const auto take = [&](const Step& step) {
    std::vector<Step> with = taken;
    with.push_back(step);
    const auto needed = gpu_bytes_with(scenario, with);
    if (!needed || *needed >= remedy.gpu_bytes) return;
    taken = with;
    remedy.gpu_bytes = *needed;
    remedy.fits = *needed <= available;
  };
  for (const Step& step : within_the_site(scenario.gpus)) {
    if (!remedy.fits) take(step);
  }
  const std::vector<Step> inside = taken;
  const double inside_bytes = remedy.gpu_bytes;
  for (int times = 2; times <= kMaxGpuFactor && !remedy.fits; times *= 2) {
    const int gpus = scenario.gpus.count * times;
    const int sharded = scenario.gpus.sharded * scenario.gpus.data_parallel() * times;
    taken.clear();
    for (const Step& step : inside) {
      if (!step.setting.starts_with("compute.sharded")) taken.push_back(step);
    }
    remedy.gpu_bytes = inside_bytes;
    take({"compute.gpus_per_site=" + std::to_string(gpus) + " compute.sharded=" + std::to_string(sharded) +
              without_replicas(scenario.gpus) + stage_setting(scenario.gpus),
          [gpus, sharded](SiteGpus& g) {
            g.count = gpus;
            shard(g, sharded);
          }});
    if (!remedy.fits) {
      taken = inside;
      remedy.gpu_bytes = inside_bytes;
    }
  }
  if (remedy.fits) {
    leave_out_unneeded(scenario, taken, available);
    remedy.gpu_bytes = *gpu_bytes_with(scenario, taken);
  }
  remedy.settings = settings_of(taken);
  return remedy;
}

namespace {

/// Whole gigabytes, or hundredths of small sizes and where `precise`.
std::string gigabytes(double bytes, bool precise = false) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(precise || bytes < 10e9 ? 2 : 0)
       << (precise || bytes < 10e9 ? bytes / 1e9 : std::floor(bytes / 1e9));
  return text.str();
}

}  // namespace

std::string remedy_text(const MemoryRemedy& remedy) {
  if (remedy.settings.empty()) return "";
  std::string list;
  for (std::size_t i = 0; i < remedy.settings.size(); ++i)
    list += (i == 0 ? "" : i + 1 == remedy.settings.size() ? " and " : ", ") + remedy.settings[i];
  const std::string size = gigabytes(remedy.gpu_bytes) + " GB";
  return remedy.fits ? "with " + list + " the model would fit (" + size + ")"
                     : "even with " + list + " a GPU would need " + size +
                           "; add GPUs to each site or use GPUs with more memory";
}

std::string memory_problem(const Scenario& scenario) { return memory_problem(scenario, counts_of(scenario)); }

std::string memory_problem(const Scenario& of_all_sites, const Counts& counts) {
  const int site = static_cast<int>(counts.fullest);
  const auto [needed, available, most] = fullest_gpu(counts);
  if (available == 0 || needed <= available) return "";
  const AtSite at(of_all_sites, site);
  const Scenario& scenario = at;
  const bool alike = gigabytes(needed) == gigabytes(available);
  std::string remedy = remedy_text(memory_remedy(scenario));
  if (!of_all_sites.site_compute.empty() && !remedy.empty())
    remedy += " (set these keys in the [[site]] of " +
              of_all_sites.platform.sites[static_cast<std::size_t>(site)].name + " if it has its own)";
  const std::string where =
      of_all_sites.site_compute.empty()
          ? ""
          : " of site " + of_all_sites.platform.sites[static_cast<std::size_t>(site)].name;
  // Sharded weights are gathered layer by layer.
  const bool one_layer = scenario.model.opaque && scenario.model.layers == 1 && scenario.gpus.sharded > 1;
  return "does not fit: a GPU" + where + " needs " + gigabytes(needed, alike) + " GB and has " +
         gigabytes(available, alike) + " GB" + (remedy.empty() ? "" : "; " + remedy) +
         (one_layer ? "; all weights are gathered at once, because model.layers is not given" : "") +
         (micro_batch_sequences(scenario) == 0
              ? "; activations are not included, because compute.micro_batch_sequences is not given"
              : "");
}

}  // namespace fomoe::costmodel
