// Tests of [compute] as the GPUs of a site: their number, and the framework whose memory they have.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"
#include "tests/memory_of.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::Stack;

namespace {

const std::string kRest =
    "[workload]\ntokens = 1e9\nglobal_batch_sequences = 64\n[strategy]\nmethod = \"diloco\"\n"
    "[platform]\nsites = 2\nbandwidth = \"1Gbps\"\nlatency = \"25ms\"\n[compute]\nstep_time = \"1s\"\n";
const std::string kOurs = "[model]\npreset = \"small\"\n" + kRest;
const std::string kOther = "[model]\nhf_config = \"config.json\"\nsequence_length = 128\n" + kRest;
const std::string kConfig =
    R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
        "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 96, "vocab_size": 500, "num_local_experts": 8,
        "num_experts_per_tok": 2, "tie_word_embeddings": false})";

costmodel::Scenario read_tables(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Folder folder;
  write_all(folder / "config.json", kConfig);
  write_all(folder / "s.toml", text);
  scenario::ReadOptions options;
  options.overrides = overrides;
  return scenario::read_scenario(folder / "s.toml", options);
}

std::string refusal(const std::string& text) {
  try {
    (void)read_tables(text);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return what.substr(what.find("compute."));
  }
  return "accepted";
}

std::string said_of(const costmodel::Scenario& scenario, const std::string& what) {
  for (const Provenance& entry : scenario.catalogue)
    if (entry.what == what) return entry.detail;
  return "";
}

}  // namespace

TEST_CASE("replicas that an override gives replace the file's number of GPUs, and the answer says so") {
  const std::string file = kOurs + "gpus_per_site = 8\n";
  CHECK(said_of(read_tables(file, {"compute.data_parallel=8", "compute.sharded=8"}), "GPUs of a site") ==
        "64, the product of data_parallel and the other degrees, and not 8 as in the file, because "
        "data_parallel was chosen");
  CHECK(said_of(read_tables(file, {"compute.data_parallel=8"}), "GPUs of a site").empty());
  CHECK(said_of(read_tables(kOurs, {"compute.data_parallel=8"}), "GPUs of a site").empty());
}

TEST_CASE("expert parallelism multiplies no GPUs; what counted it otherwise is read as before, with a note") {
  const std::string now = "; expert_parallel GPUs are among those of the other degrees since version 1.1";
  costmodel::Scenario s = read_tables(kOurs + "gpus_per_site = 8\nsharded = 8\nexpert_parallel = 4\n");
  CHECK(s.gpus.count == 8);
  CHECK(s.gpus.data_parallel() == 1);
  CHECK(said_of(s, "sharded experts") == "the 8 GPUs of sharded also hold different experts" + now);
  s = read_tables(kOurs + "sharded = 8\nexpert_parallel = 4\n");
  CHECK(s.gpus.count == 8);
  CHECK(said_of(s, "GPUs of a site") == "8, and not 32 as before" + now);
  s = read_tables(kOurs + "gpus_per_site = 16\ndata_parallel = 2\nsharded = 2\nexpert_parallel = 4\n");
  CHECK(s.gpus.count == 16);
  CHECK(s.gpus.data_parallel() == 8);
  CHECK(said_of(s, "GPUs of a site") ==
        "data_parallel = 2 is read as 8, which it is without expert_parallel" + now);
  // Nothing to say where both ways count alike.
  s = read_tables(kOurs + "expert_parallel = 4\n");
  CHECK(s.gpus.count == 4);
  CHECK(said_of(s, "GPUs of a site").empty());
  s = read_tables(kOurs + "gpus_per_site = 8\nexpert_parallel = 4\n");
  CHECK(said_of(s, "GPUs of a site").empty());
  CHECK(refusal(kOurs + "gpus_per_site = 12\ndata_parallel = 2\nsharded = 2\nexpert_parallel = 4\n") ==
        "compute.gpus_per_site: got 12, although the parallel degrees multiply to 4; expected the product of "
        "data_parallel and the other degrees without expert_parallel, or no data_parallel; for example "
        "gpus_per_site = 4");
}

TEST_CASE("16 GPUs that share matrices, experts and the state of the optimiser") {
  const costmodel::Scenario s =
      read_tables(kOther +
                  "gpus_per_site = 16\nsharded = 8\ntensor_parallel = 2\nexpert_parallel = 8\n"
                  "stack = \"megatron\"\n");
  CHECK(s.gpus.experts_divided() == 16);
  CHECK(s.gpus.zero_stage == 1);  // Megatron-LM's distributed optimiser
}

TEST_CASE(
    "the framework: given, or fomoe-train for its models, FSDP where weights are sharded, Megatron-LM") {
  CHECK(read_tables(kOurs).gpus.stack == Stack::fomoe);
  CHECK(said_of(read_tables(kOurs), "memory layout").empty());
  CHECK(read_tables(kOther).gpus.stack == Stack::megatron);
  CHECK(said_of(read_tables(kOther), "memory layout") == "Megatron-LM's; compute.stack is not given");
  const costmodel::Scenario sharded = read_tables(kOther + "gpus_per_site = 8\nsharded = 8\n");
  CHECK(sharded.gpus.stack == Stack::torchtitan);
  CHECK(sharded.gpus.zero_stage == 3);
  CHECK(read_tables(kOther + "gpus_per_site = 8\nsharded = 8\nzero_stage = 1\n").gpus.stack ==
        Stack::megatron);
  CHECK(read_tables(kOther + "stack = \"deepspeed\"\n").gpus.stack == Stack::deepspeed);
  CHECK(said_of(read_tables(kOther + "stack = \"deepspeed\"\n"), "memory layout").empty());
}

TEST_CASE("context-parallel GPUs shard the state as Megatron-LM's distributed optimiser and torchtitan do") {
  const auto moments = [](const std::string& keys) {
    const costmodel::Scenario s = read_tables(kOther + keys);
    return costmodel::memory_per_gpu(s).moments;
  };
  for (const std::string stack : {"megatron", "deepspeed"}) {
    CAPTURE(stack);
    const std::string of = "stack = \"" + stack + "\"\n";
    const double whole = moments(of);
    // Eight replicas keep all of it, whether they split the batch or the sequences.
    CHECK(moments(of + "data_parallel = 8\n") == whole);
    CHECK(moments(of + "context_parallel = 8\n") == whole);
    CHECK(moments(of + "context_parallel = 8\nzero_stage = 1\n") == whole / 8);
    CHECK(moments(of + "sharded = 8\nzero_stage = 1\n") == whole / 8);
    CHECK(moments(of + "context_parallel = 4\nsharded = 2\n") == whole / 8);
  }
  const double whole = moments("stack = \"torchtitan\"\n");
  CHECK(moments("stack = \"torchtitan\"\ndata_parallel = 8\n") == whole);
  CHECK(moments("stack = \"torchtitan\"\ncontext_parallel = 8\n") == whole / 8);
}

TEST_CASE("settings that a framework does not have are refused, with one that it has") {
  CHECK(refusal(kOther + "logits = \"compiled\"\n") ==
        "compute.logits: got compiled with stack = \"megatron\"; expected one of \"fp32_whole\", "
        "\"fp32_fused\", \"bf16_fused\"; for example logits = \"fp32_whole\"");
  CHECK(refusal(kOther + "selective_checkpointing = \"operators\"\n") ==
        "compute.selective_checkpointing: got operators with stack = \"megatron\"; expected stack = "
        "\"torchtitan\", which has it; for example selective_checkpointing = \"none\"");
  CHECK(refusal(kOther + "selective_checkpointing = \"attention\"\nactivation_checkpointing = true\n") ==
        "compute.selective_checkpointing: got activation_checkpointing as well; expected only one of them; "
        "for example activation_checkpointing = false");
  CHECK(refusal(kOther + "checkpoint_every = 2\n") ==
        "compute.checkpoint_every: got checkpoint_every without activation_checkpointing; expected "
        "checkpoint_every only together with activation_checkpointing; for example activation_checkpointing "
        "= true");
  CHECK(refusal(kOther + "virtual_stages = 2\n") ==
        "compute.virtual_stages: got 2; expected 1, or with pipeline_parallel above 1 at most as many as a "
        "stage has layers; for example virtual_stages = 1");
}
