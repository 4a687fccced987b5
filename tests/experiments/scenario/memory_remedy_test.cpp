// The settings that are proposed where a model does not fit, given to the scenario as a user would give them.
#include "costmodel/compose/memory_remedy.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "costmodel/math/random.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::MemoryRemedy;
using costmodel::Scenario;

namespace {

using Overrides = std::vector<std::string>;

Scenario with_settings(const Overrides& settings) {
  scenario::ReadOptions options;
  options.overrides = settings;
  return scenario::read_scenario(source_dir() + "/experiments/scenarios/four-regions.toml", options);
}

/// Applies the proposal. The memory of a GPU must then be what was promised.
void check_proposal(const Overrides& settings) {
  const Scenario before = with_settings(settings);
  const MemoryRemedy remedy = costmodel::memory_remedy(before);
  if (remedy.settings.empty()) return;
  Overrides applied = settings;
  applied.insert(applied.end(), remedy.settings.begin(), remedy.settings.end());
  CAPTURE(fmt::format("{}", fmt::join(settings, " ")));
  CAPTURE(costmodel::remedy_text(remedy));
  const Scenario after = with_settings(applied);
  CHECK(costmodel::counts_of(after).sites.front().need_of_gpu.needed ==
        doctest::Approx(remedy.gpu_bytes).epsilon(1e-12));
  CHECK(costmodel::memory_problem(after).empty() == remedy.fits);
}

}  // namespace

TEST_CASE("a proposal names the stage of ZeRO that it needs, where the scenario states another one") {
  const Overrides grown = {"compute.zero_stage=1", "compute.gpu_memory=40GiB"};
  const MemoryRemedy more = costmodel::memory_remedy(with_settings(grown));
  CHECK(more.fits);
  CHECK(costmodel::remedy_text(more).find("compute.zero_stage=3") != std::string::npos);
  check_proposal(grown);
  Overrides inside = {"model.hf_config=../models/llama-3.1-8b.json",
                      "model.sequence_length=32768",
                      "compute.gpus_per_site=16",
                      "compute.sharded=1",
                      "compute.context_parallel=4",
                      "compute.zero_stage=1",
                      "compute.gpu_memory=40GiB"};
  check_proposal(inside);
  inside.push_back("compute.stack=megatron");
  check_proposal(inside);
}

TEST_CASE("a model fits with each proposal, and needs the promised memory, in drawn scenarios") {
  costmodel::RandomEngine engine = costmodel::seeded_engine(1, 0);
  const auto one_of = [&](const Overrides& values) {
    return values[costmodel::below(engine, values.size())];
  };
  int proposals = 0;
  for (int i = 0; i < 300; ++i) {
    Overrides settings = {
        "model.hf_config=../models/" +
            one_of({"llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "mixtral-8x7b", "olmoe-1b-7b"}) + ".json",
        "compute.gpus_per_site=" + one_of({"8", "16", "32"}),
        "compute.sharded=" + one_of({"1", "1", "2", "4", "8"}),
        "compute.context_parallel=" + one_of({"1", "1", "2", "4"}),
        "compute.tensor_parallel=" + one_of({"1", "1", "2"}),
        "compute.pipeline_parallel=" + one_of({"1", "1", "2"}),
        "compute.micro_batch_sequences=" + one_of({"1", "4"}),
        "compute.activation_checkpointing=" + one_of({"true", "false"}),
        "compute.outer_state_on=" + one_of({"host", "device"}),
        "compute.gpu_memory=" + one_of({"40GiB", "80GiB"}),
        "strategy.method=" + one_of({"ddp", "diloco", "streaming_diloco", "fsdp"})};
    for (const Overrides& optional :
         {Overrides{"", "", "compute.stack=megatron", "compute.stack=torchtitan", "compute.stack=deepspeed"},
          Overrides{"", "compute.zero_stage=1", "compute.zero_stage=2"}}) {
      if (const std::string chosen = one_of(optional); !chosen.empty()) settings.push_back(chosen);
    }
    try {
      if (costmodel::memory_problem(with_settings(settings)).empty()) continue;
    } catch (const InputError&) {
      continue;  // degrees that do not divide the GPUs
    } catch (const FileError&) {
      continue;
    }
    ++proposals;
    check_proposal(settings);
  }
  CHECK(proposals > 50);
}
