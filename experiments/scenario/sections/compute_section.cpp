#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "experiments/files/step_profile_io.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {
namespace {

/// The alternative ways in [compute] to give a step time, each with the keys that belong only to it.
struct Alternative {
  const char* key;
  std::vector<const char*> partners;
};
const std::vector<Alternative>& alternatives() {
  static const std::vector<Alternative> all = {{"profile", {}}, {"step_time", {}}, {"peak_flops", {"mfu"}}};
  return all;
}

costmodel::ProfiledCompute read_profiled(const Document& document, const TableReader& table, bool required) {
  costmodel::ProfiledCompute compute;
  const std::string path = document.beside(table.text("profile"));
  if (std::filesystem::exists(path)) {
    compute.profile = read_step_profile(path);
  } else if (required) {
    table.refuse("profile",
                 fmt::format("{} (no such file: {})",
                             as_written(*find_table(document, "compute")->get("profile")), path),
                 "a step profile, relative to the scenario file; `fomoe-train profile` writes one, and "
                 "--set compute.step_time=420ms replaces it");
  }
  for (const costmodel::ProfilePoint& point : compute.profile.points) {
    compute.micro_batch_sequences = std::max(compute.micro_batch_sequences, point.micro_batch_sequences);
  }
  if (table.has("micro_batch_sequences"))
    compute.micro_batch_sequences = table.count("micro_batch_sequences");
  return compute;
}

}  // namespace

const Accelerator* read_accelerator(const Document& document) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  if (!table.has("accelerator")) {
    if (table.has("dtype"))
      table.refuse("dtype", "dtype without accelerator", "dtype only together with accelerator");
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

costmodel::ComputeSpec read_compute(const Document& document, bool required,
                                    std::vector<Provenance>& catalogue) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  const Accelerator* accelerator = read_accelerator(document);
  const Alternative* chosen = nullptr;
  const std::string expected = "exactly one of profile, step_time, or mfu with peak_flops or accelerator";
  for (const Alternative& alternative : alternatives()) {
    if (!table.has(alternative.key)) continue;
    if (chosen != nullptr)
      table.refuse(alternative.key, fmt::format("both {} and {}", alternative.key, chosen->key), expected);
    chosen = &alternative;
  }
  if (chosen == nullptr && accelerator != nullptr && table.has("mfu")) {
    const std::string dtype = table.text("dtype");
    const double peak = accelerator->peak_flops.at(dtype);
    catalogue.push_back(
        from_catalogue("peak FLOP rate", fmt::format("{:g} TFLOP/s, {}", peak / 1e12, dtype), *accelerator));
    return costmodel::AssumedDevice{peak, table.share("mfu")};
  }
  if (chosen == nullptr) {
    if (table.has("mfu"))
      table.refuse("peak_flops", "nothing", "peak_flops or accelerator together with mfu");
    if (accelerator != nullptr)
      table.refuse("mfu", "nothing", "mfu together with accelerator, or profile, or step_time");
    table.refuse("step_time", "nothing", expected);
  }
  for (const Alternative& other : alternatives()) {
    for (const char* partner : other.partners) {
      if (&other != chosen && table.has(partner)) {
        table.refuse(partner, fmt::format("{} together with {}", partner, chosen->key),
                     fmt::format("{} only together with {} or accelerator", partner, other.key));
      }
    }
  }
  if (table.has("profile")) return read_profiled(document, table, required);
  if (table.has("step_time")) return costmodel::GivenStepTime{table.quantity("step_time")};
  return costmodel::AssumedDevice{table.quantity("peak_flops"), table.share("mfu")};
}

costmodel::SiteGpus read_site_gpus(const Document& document, std::vector<Provenance>& catalogue) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  costmodel::SiteGpus gpus;
  gpus.sharded = table.small_count("sharded");
  gpus.tensor_parallel = table.small_count("tensor_parallel");
  gpus.expert_parallel = table.small_count("expert_parallel");
  gpus.pipeline_parallel = table.small_count("pipeline_parallel");
  if (table.has("zero_stage") && gpus.sharded == 1)
    table.refuse("zero_stage", "zero_stage without sharded", "zero_stage only together with sharded above 1");
  gpus.zero_stage = table.small_count("zero_stage");

  double degrees = 1;  // a double, because the product of valid degrees may not fit an int
  for (const int degree : {gpus.sharded, gpus.tensor_parallel, gpus.expert_parallel, gpus.pipeline_parallel})
    degrees *= degree;
  if (table.has("data_parallel")) degrees *= table.small_count("data_parallel");
  constexpr double kMostGpus = 1e5;
  if (degrees > kMostGpus)
    table.refuse("gpus_per_site", fmt::format("{:.0f} GPUs", degrees), "at most 100000 GPUs in a site");
  gpus.count = table.has("gpus_per_site") ? table.small_count("gpus_per_site") : static_cast<int>(degrees);
  if (table.has("data_parallel") && gpus.count != degrees) {
    table.refuse("gpus_per_site",
                 fmt::format("{}, although the parallel degrees multiply to {:.0f}", gpus.count, degrees),
                 "the product of data_parallel and the other degrees, or no data_parallel");
  }
  if (table.has("intra_site_bandwidth")) gpus.intra_site_bytes_per_s = table.quantity("intra_site_bandwidth");
  if (table.has("gpu_memory")) {
    gpus.gpu_memory_bytes = table.quantity("gpu_memory");
  } else if (const Accelerator* accelerator = read_accelerator(document)) {
    gpus.gpu_memory_bytes = accelerator->memory_bytes;
    catalogue.push_back(
        from_catalogue("GPU memory", fmt::format("{:g} GiB", gpus.gpu_memory_bytes / 0x1p30), *accelerator));
  }
  if (table.has("micro_batch_sequences")) gpus.micro_batch_sequences = table.count("micro_batch_sequences");
  gpus.activation_checkpointing = table.boolean("activation_checkpointing");
  gpus.outer_state_on = costmodel::enum_of<costmodel::OuterStateOn>(table.text("outer_state_on")).value();
  return gpus;
}

costmodel::StepVariation read_step_variation(const Document& document) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  costmodel::StepVariation variation;
  variation.from_samples = table.boolean("draw_samples");
  if (variation.from_samples && !table.has("profile"))
    table.refuse("draw_samples", "draw_samples without profile", "draw_samples only together with profile");
  if (variation.from_samples && table.has("step_variation"))
    table.refuse("step_variation", "both step_variation and draw_samples", "only one of them");
  if (table.has("step_variation")) variation.coefficient = table.share("step_variation");
  if (table.has("straggler_share")) variation.straggler_share = table.share("straggler_share");
  if (table.has("straggler_factor") && !table.has("straggler_share"))
    table.refuse("straggler_factor", "straggler_factor without straggler_share",
                 "straggler_factor only together with straggler_share");
  variation.straggler_factor = table.factor("straggler_factor");
  return variation;
}

}  // namespace fomoe::scenario
