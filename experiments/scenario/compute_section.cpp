#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "experiments/scenario/json_io.hpp"
#include "experiments/scenario/sections.hpp"
#include "experiments/scenario/table_reader.hpp"

namespace fomoe::scenario {
namespace {

/// The alternatives of [compute], each with the keys that belong to it alone.
struct Alternative {
  const char* key;
  std::vector<const char*> partners;
};
const std::vector<Alternative>& alternatives() {
  static const std::vector<Alternative> all = {
      {"profile", {"micro_batch_sequences"}}, {"step_time", {}}, {"peak_flops", {"mfu", "gpus_per_site"}}};
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
                 "--set compute.step_time=420ms does without");
  }
  for (const costmodel::ProfilePoint& point : compute.profile.points) {
    compute.micro_batch_sequences = std::max(compute.micro_batch_sequences, point.micro_batch_sequences);
  }
  if (table.has("micro_batch_sequences"))
    compute.micro_batch_sequences = table.count("micro_batch_sequences");
  return compute;
}

}  // namespace

costmodel::ComputeSpec read_compute(const Document& document, bool required) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  const Alternative* chosen = nullptr;
  const std::string expected = "exactly one of profile, step_time, or peak_flops with mfu";
  for (const Alternative& alternative : alternatives()) {
    if (!table.has(alternative.key)) continue;
    if (chosen != nullptr) table.refuse(alternative.key, fmt::format("it beside {}", chosen->key), expected);
    chosen = &alternative;
  }
  if (chosen == nullptr) {
    if (table.has("mfu")) table.refuse("peak_flops", "nothing", "peak_flops beside mfu");
    table.refuse("step_time", "nothing", expected);
  }
  for (const Alternative& other : alternatives()) {
    for (const char* partner : other.partners) {
      if (&other != chosen && table.has(partner)) {
        table.refuse(partner, fmt::format("it beside {}", chosen->key),
                     fmt::format("it only beside {}", other.key));
      }
    }
  }
  if (table.has("profile")) return read_profiled(document, table, required);
  if (table.has("step_time")) return costmodel::GivenStepTime{table.quantity("step_time")};
  return costmodel::AssumedDevice{table.quantity("peak_flops"), table.share("mfu"),
                                  table.small_count("gpus_per_site")};
}

}  // namespace fomoe::scenario
