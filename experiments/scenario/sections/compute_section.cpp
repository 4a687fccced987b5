#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "costmodel/model/flops.hpp"
#include "experiments/files/published_steps.hpp"
#include "experiments/files/step_profile_io.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

costmodel::ProfiledCompute read_profiled(const Document& document, const TableReader& table, bool required) {
  costmodel::ProfiledCompute compute;
  const std::string path = document.beside(table.text("profile"));
  if (path_exists(path)) {
    compute.profile = read_step_profile(path);
  } else if (required) {
    table.refuse("profile",
                 fmt::format("{} (no such file: {})",
                             as_written(*find_table(document, "compute")->get("profile")), path),
                 "a step profile, relative to the scenario file; `fomoe-train profile` writes one, and "
                 "--set compute.step_time=420ms replaces it");
  }
  compute.micro_batch_sequences = costmodel::usual_micro_batch(compute.profile);
  return compute;
}

constexpr std::string_view kPublished = "published:";

/// The published training speed that compute.profile names, or nullptr if it names a file.
const PublishedSteps* read_published(const TableReader& table) {
  if (!table.has("profile")) return nullptr;
  const std::string written = table.text("profile");
  if (!written.starts_with(kPublished)) return nullptr;
  const PublishedSteps* found = find_published_steps(written.substr(kPublished.size()));
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const PublishedSteps& row : published_steps()) names.push_back(std::string(kPublished) + row.id);
    table.refuse("profile", '"' + written + '"', "an id that `fomoe list profiles` prints",
                 nearest(written, names));
  }
  return found;
}

/// Whether the published run trained the scenario's model. Names round the numbers of parameters: a token
/// uses 3.35 G of Qwen3-30B-A3B, and 3.9 G of Qwen3-Next-80B-A3B.
bool trained_this_model(const PublishedSteps& row, const costmodel::ModelShape& model) {
  constexpr double kTotal = 0.05, kActive = 0.3;
  const auto near = [](double published, double own, double most) {
    return std::abs(published / own - 1) < most;
  };
  if (!row.active_parameters) return false;
  const bool of_all =
      row.total_parameters &&
      near(*row.total_parameters, static_cast<double>(count_parameters(model).total()), kTotal);
  return near(*row.active_parameters, static_cast<double>(costmodel::active_parameters(model)),
              of_all ? kActive : kTotal);
}

/// The MFU with which a GPU reaches the published speed. MFU is the scenario's FLOPs per token · tokens/s ÷
/// peak, as in all answers (costmodel/model/flops.hpp). If the published run trained the scenario's model,
/// these are its FLOPs with the run's own sequences, so that the answer has the run's speed if its sequences
/// are as long. Otherwise the published run has the MFU that its source states, or 6 FLOPs per active
/// parameter and token, and the scenario's model is assumed to reach the same share of the peak.
costmodel::AssumedDevice published_device(const costmodel::ModelShape& model, const TableReader& table,
                                          const PublishedSteps& row) {
  for (const char* key : {"peak_flops", "dtype"})
    if (table.has(key))
      table.refuse(key, fmt::format("{} together with profile = \"published:{}\"", key, row.id),
                   fmt::format("profile without {}, because the run has its own: {} in {}", key,
                               row.accelerator, number_format(row)));
  if (table.has("accelerator") && table.text("accelerator") != row.accelerator)
    table.refuse(
        "accelerator",
        fmt::format("\"{}\" together with profile = \"published:{}\"", table.text("accelerator"), row.id),
        fmt::format("\"{}\", which is the run's, or no accelerator", row.accelerator));
  costmodel::AssumedDevice device;
  device.peak_flops = peak_flops(row);
  const std::optional<double> rate = tokens_per_s_per_gpu(row), mfu = mfu_of(row);
  if (device.peak_flops == 0 || (!mfu && !(rate && row.active_parameters)))
    table.refuse("profile",
                 fmt::format("\"published:{}\", whose source does not state enough for a step time", row.id),
                 "a row with tokens per second and active parameters, or with an MFU");
  if (!rate || !trained_this_model(row, model)) {
    device.mfu = mfu.value();
    return device;
  }
  costmodel::ModelShape trained = model;
  if (row.sequence_length) trained.sequence_length = static_cast<std::int64_t>(*row.sequence_length);
  device.mfu = costmodel::model_flops_utilisation(costmodel::full_replica_flops(trained).total(), *rate,
                                                  device.peak_flops);
  return device;
}

/// compute.mfu or compute.kernel_efficiency with that peak rate.
costmodel::AssumedDevice assumed_device(const TableReader& table, double peak_flops) {
  costmodel::AssumedDevice device;
  device.peak_flops = peak_flops;
  if (table.has("mfu") && table.has("kernel_efficiency"))
    table.refuse("kernel_efficiency", "both mfu and kernel_efficiency", "only one of them");
  (table.has("mfu") ? device.mfu : device.kernel_efficiency) =
      table.number(table.has("mfu") ? "mfu" : "kernel_efficiency");
  return device;
}

}  // namespace

const Accelerator* read_accelerator(const Document& document) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (!table.has("accelerator")) {
    if (const PublishedSteps* published = read_published(table))
      return find_accelerator(published->accelerator);
    table.only_together("dtype", "accelerator");
    return nullptr;
  }
  const std::string name = table.text("accelerator");
  const Accelerator* found = find_accelerator(name);
  if (found == nullptr)
    table.refuse("accelerator", '"' + name + '"', known_accelerators(), near_accelerators(name));
  const std::string dtype = table.text("dtype");
  if (!found->peak_flops.contains(dtype)) {
    table.refuse("dtype", fmt::format("\"{}\", for which the catalogue has no peak of {}", dtype, name),
                 "one of " + known_dtypes(*found));
  }
  return found;
}

costmodel::ComputeSpec read_compute(const Document& document, const costmodel::ModelShape& model,
                                    bool required) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  const bool share = table.has("mfu") || table.has("kernel_efficiency");
  const bool peak = table.has("peak_flops") || read_accelerator(document) != nullptr;
  const char* share_key = table.has("mfu") ? "mfu" : "kernel_efficiency";
  const char* chosen = nullptr;
  const std::string expected =
      "exactly one of profile, step_time, mfu and kernel_efficiency; the last two with peak_flops or "
      "accelerator";
  for (const char* key : {"profile", "step_time"}) {
    if (!table.has(key)) continue;
    if (chosen != nullptr) table.refuse(key, fmt::format("both {} and {}", key, chosen), expected);
    if (share)
      table.refuse(share_key, fmt::format("{} together with {}", share_key, key),
                   fmt::format("{} without {}, because it determines the step time", share_key, key));
    chosen = key;
  }
  if (const PublishedSteps* published = read_published(table))
    return published_device(model, table, *published);
  if (table.has("profile")) return read_profiled(document, table, required);
  if (table.has("step_time")) return costmodel::GivenStepTime{table.quantity("step_time")};
  if (share && !peak)
    table.refuse("peak_flops", "nothing",
                 fmt::format("peak_flops or accelerator together with {}", share_key));
  if (!share && peak)
    table.refuse("mfu", "nothing",
                 "mfu or kernel_efficiency together with the peak, or profile, or step_time");
  if (!share) table.refuse("step_time", "nothing", expected);
  return assumed_device(table, *read_peak_flops(document));
}

std::optional<double> read_peak_flops(const Document& document) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (table.has("peak_flops")) return table.quantity("peak_flops");
  const Accelerator* accelerator = read_accelerator(document);
  if (accelerator == nullptr) return std::nullopt;
  return accelerator->peak_flops.at(table.text("dtype"));
}

void add_peak(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (const PublishedSteps* published = read_published(table)) {
    const auto& device = std::get<costmodel::AssumedDevice>(scenario.compute);
    scenario.peak_flops = device.peak_flops;
    scenario.catalogue.push_back(
        {"MFU", Origin::assumed,
         fmt::format("{:.1f} %, as in a published run of {} on {} ({}): {}", 100 * device.mfu,
                     published->model, published->accelerator, published->id, published->source)});
    return;
  }
  if (table.has("kernel_efficiency")) {
    scenario.catalogue.push_back({"kernel efficiency", Origin::assumed,
                                  "of the FLOPs that are executed; since version 1.1 without the half of "
                                  "attention that causal masking removes"});
  }
  std::optional<double> peak = read_peak_flops(document);
  std::string dtype = table.text("dtype");
  const Accelerator* accelerator = table.has("peak_flops") ? nullptr : read_accelerator(document);
  const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute);
  if (!peak && profiled != nullptr) {
    accelerator = accelerator_of_device(profiled->profile.device_name);
    dtype = profiled->profile.dtype;
    if (accelerator != nullptr && accelerator->peak_flops.contains(dtype))
      peak = accelerator->peak_flops.at(dtype);
  }
  if (!peak) return;
  scenario.peak_flops = *peak;
  if (accelerator != nullptr)
    scenario.catalogue.push_back(
        from_catalogue("peak FLOP rate", fmt::format("{:g} TFLOP/s, {}", *peak / 1e12, dtype), *accelerator));
}

void check_step_variation(const Document& document) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (table.boolean("draw_samples")) {
    table.only_together("draw_samples", "profile");
    table.only_one_of("step_variation", "draw_samples");
  }
  for (const char* key : {"straggler_factor", "straggler_lasts", "stragglers_together"})
    table.only_together(key, "straggler_share");
}

}  // namespace fomoe::scenario
