// Keys of [compute] that describe the GPUs of a site: their number, parallel degrees, memory and framework.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "costmodel/compose/warnings.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::SiteGpus;
using costmodel::Stack;

/// The framework that logs of a profile name, if its memory has a model.
std::optional<Stack> stack_of(const costmodel::StepProfile* profile) {
  if (profile == nullptr || !profile->origin) return std::nullopt;
  if (profile->origin->kind == "nemo") return Stack::megatron;  // NeMo trains with Megatron-LM
  return costmodel::enum_of<Stack>(profile->origin->kind);
}

/// Sets the framework whose memory the GPUs have, and says so if nobody has stated it: fomoe-train for the
/// models that it trains, FSDP as torchtitan has it where GPUs shard weights, and otherwise Megatron-LM.
void read_stack(const TableReader& table, const costmodel::ModelShape& model,
                const costmodel::StepProfile* profile, SiteGpus& gpus, std::vector<Provenance>& catalogue) {
  const bool weights_are_sharded = gpus.sharded > 1 && (!table.has("zero_stage") || gpus.zero_stage == 3);
  if (table.has("stack")) {
    gpus.stack = *costmodel::enum_of<Stack>(table.text("stack"));
  } else if (const std::optional<Stack> logged = stack_of(profile)) {
    gpus.stack = *logged;
  } else if (model.architecture == "fomoe" || model.opaque) {
    gpus.stack = Stack::fomoe;
  } else {
    gpus.stack = weights_are_sharded ? Stack::torchtitan : Stack::megatron;
    gpus.stack_assumed = true;
    catalogue.push_back({"memory layout", Origin::assumed,
                         weights_are_sharded
                             ? "torchtitan's, since compute.sharded GPUs share the weights (FSDP); "
                               "compute.stack is not given"
                             : "Megatron-LM's; compute.stack is not given"});
  }
  if (table.has("zero_stage")) return;
  // Megatron-LM's distributed optimiser shards the state of the optimiser alone.
  if (gpus.stack == Stack::megatron) gpus.zero_stage = 1;
  // Without a stage, context-parallel GPUs keep the whole state, as replicas do.
  const bool by_stage = gpus.stack == Stack::megatron || gpus.stack == Stack::deepspeed;
  if (by_stage && gpus.sharded == 1 && gpus.context_parallel > 1) gpus.zero_stage = 0;
}

/// Activation checkpointing of the run whose steps a profile has. The timed steps include what it repeats.
/// Nobody knows of which part a selective one was, so that the memory is that of all layers unless the
/// scenario states the part.
void read_recomputation(const TableReader& table, costmodel::Recomputation timed, SiteGpus& gpus,
                        std::vector<Provenance>& catalogue) {
  using costmodel::Recomputation;
  const bool stated = gpus.selective_checkpointing != costmodel::SelectiveCheckpointing::none;
  if (timed == Recomputation::selective && stated) return;
  if (stated) {
    fail(table.place("selective_checkpointing"), "compute.selective_checkpointing",
         fmt::format("\"{}\", with a profile whose steps include full recomputation",
                     to_string(gpus.selective_checkpointing)),
         "\"none\", or no selective_checkpointing", "selective_checkpointing = \"none\"");
  }
  if (table.has("activation_checkpointing") && !gpus.activation_checkpointing) {
    table.refuse("activation_checkpointing", "false, with a profile whose steps include recomputation",
                 timed == Recomputation::selective
                     ? "true, or the part of each layer in selective_checkpointing"
                     : "true, or no activation_checkpointing");
  }
  gpus.activation_checkpointing = true;
  if (timed == Recomputation::selective) {
    catalogue.push_back(
        {"activation memory", Origin::assumed,
         "as with full activation checkpointing; the timed run checkpointed selectively and kept "
         "more: compute.selective_checkpointing states which part was computed again"});
  }
}

/// The number of GPUs. Expert parallelism multiplied it until version 1.0: a scenario that counts so is read
/// so, with a note. `displaced`: the number in the file, if an override gives the replicas instead.
void read_count(const TableReader& table, const std::string& displaced, SiteGpus& gpus,
                std::vector<Provenance>& catalogue) {
  constexpr double kMostGpus = 1e5;
  double degrees = 1;  // a double, because the product of valid degrees may not fit an int
  for (const int degree : {gpus.sharded, gpus.tensor_parallel, gpus.context_parallel, gpus.pipeline_parallel})
    degrees *= degree;
  const bool given = table.has("gpus_per_site"), replicas = table.has("data_parallel");
  const double experts = gpus.expert_parallel;
  double data = replicas ? table.small_count("data_parallel") : 1.0;
  gpus.data_parallel_given = replicas && data > 1;
  // Without a number of replicas there are as many as the experts need GPUs.
  while (!replicas && !given &&
         std::fmod(data * degrees / gpus.pipeline_parallel, static_cast<double>(gpus.experts_divided())) !=
             0 &&
         data < experts)
    ++data;
  const double product = data * degrees;
  if (product > kMostGpus)
    table.refuse("gpus_per_site", fmt::format("{:.0f} GPUs", product), "at most 100000 GPUs in a site");
  gpus.count = given ? table.small_count("gpus_per_site") : static_cast<int>(product);
  const double before = (replicas ? data : 1.0) * degrees * experts;
  const bool counted_before = given && replicas && experts > 1 && gpus.count == before;
  if (given && replicas && gpus.count != product && !counted_before) {
    table.refuse_for_example(
        "gpus_per_site",
        fmt::format("{}, although the parallel degrees multiply to {:.0f}", gpus.count, product),
        "the product of data_parallel and the other degrees without expert_parallel, or no "
        "data_parallel",
        fmt::format("{:.0f}", product));
  }
  if (!displaced.empty() && displaced != std::to_string(gpus.count))
    catalogue.push_back(
        {"GPUs of a site", Origin::assumed,
         fmt::format("{}, the product of data_parallel and the other degrees, and not {} as in "
                     "the file, because data_parallel was chosen",
                     gpus.count, displaced)});
  if (experts == 1) return;
  const std::string now = "expert_parallel GPUs are among those of the other degrees since version 1.1";
  if (counted_before) {
    catalogue.push_back(
        {"GPUs of a site", Origin::assumed,
         fmt::format("data_parallel = {:.0f} is read as {:.0f}, which it is without expert_parallel; {}",
                     data, data * experts, now)});
  } else if (!given && product != before) {
    catalogue.push_back({"GPUs of a site", Origin::assumed,
                         fmt::format("{}, and not {:.0f} as before; {}", gpus.count, before, now)});
  } else if (gpus.sharded > 1) {
    catalogue.push_back(
        {"sharded experts", Origin::assumed,
         fmt::format("the {} GPUs of sharded also hold different experts; {}", gpus.sharded, now)});
  }
}

}  // namespace

void read_site_gpus(const Document& document, costmodel::Scenario& scenario) {
  const TableReader table(document, scenario_keys(), "compute", find_table(document, "compute"));
  table.set_members(scenario);
  SiteGpus& gpus = scenario.gpus;
  std::vector<Provenance>& catalogue = scenario.catalogue;
  const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute);
  const costmodel::StepProfile* profile = profiled == nullptr ? nullptr : &profiled->profile;
  if (table.has("zero_stage") && gpus.sharded * gpus.context_parallel == 1)
    table.refuse("zero_stage", "zero_stage without sharded", "zero_stage only together with sharded above 1");
  read_stack(table, scenario.model, profile, gpus, catalogue);
  read_count(table, document.displaced("compute.gpus_per_site"), gpus, catalogue);
  table.only_together("checkpoint_every", "activation_checkpointing");

  // The card is the one that the scenario names, or else the one on which the steps were timed.
  const Accelerator* accelerator = read_accelerator(document);
  const Accelerator* timed = profile == nullptr ? nullptr : accelerator_of_device(profile->device_name);
  if (accelerator != nullptr && timed != nullptr && accelerator != timed) {
    catalogue.push_back(
        {costmodel::kOtherDevice, Origin::assumed,
         fmt::format(
             "the steps of the profile were timed on {}, and the peak rate and the memory are those of "
             "compute.accelerator = \"{}\": an MFU, and what fits, are those of neither",
             profile->device_name, accelerator->name)});
  }
  if (accelerator == nullptr) accelerator = timed;
  if (!table.has("gpu_memory") && accelerator != nullptr) {
    gpus.gpu_memory_bytes = accelerator->usable_memory_bytes.value_or(accelerator->memory_bytes);
    Provenance memory =
        from_catalogue("GPU memory", fmt::format("{:g} GiB", gpus.gpu_memory_bytes / 0x1p30), *accelerator);
    if (accelerator->usable_memory_bytes)
      memory.detail += fmt::format("; of its {:g} GiB, programs can use these ({})",
                                   accelerator->memory_bytes / 0x1p30, accelerator->usable_source);
    catalogue.push_back(memory);
  }
  if (!table.has("memory_bandwidth") && accelerator != nullptr) {
    gpus.memory_bytes_per_s = accelerator->memory_bytes_per_s;
    catalogue.push_back(from_catalogue(
        "GPU memory bandwidth", fmt::format("{:g} GB/s", gpus.memory_bytes_per_s / 1e9), *accelerator));
  }
  if (profile != nullptr && costmodel::recomputes(*profile)) {
    read_recomputation(table, profile->origin->recomputation, gpus, catalogue);
  }
}

}  // namespace fomoe::scenario
