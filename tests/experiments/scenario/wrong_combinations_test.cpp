// Tests of mistakes in combinations of keys: keys that a method requires, missing keys, and keys that exclude
// each other.
#include <doctest/doctest.h>

#include "tests/experiments/scenario/wrong_scenarios.hpp"

using namespace fomoe::tests;

TEST_CASE("combinations of keys that a scenario cannot have") {
  check_refused({
      // Keys that a method requires or forbids
      {"method = \"fomoe\"\nlocal_steps = 4", "method = \"fsdp\"\nsecure_aggregation = true", "",
       ":9: strategy.secure_aggregation: got true; expected false with fsdp, because secure aggregation "
       "masks all-reduces that start together, once per round; for example false"},
      {"method = \"fomoe\"\nlocal_steps = 4", "method = \"di_paco\"\nmodule_choices = 3", "",
       ":9: strategy.module_choices: got 3; expected a divisor of the 4 sites, so that the same number of "
       "sites shares each module; for example 2"},
      {"method = \"fomoe\"\nlocal_steps = 4", "method = \"pipeline_wan\"\nmicro_batches = 17", "",
       ":9: strategy.micro_batches: got 17; expected at most one micro-batch for each of the 16 sequences of "
       "a pipeline in a step; for example 16"},
      {"sites = 4", "sites = 3", "--set strategy.method=expert_parallel_wan --set strategy.expert_overlap=3",
       ":14: platform.sites: got 3; expected a number of sites that divides the 8 experts of a layer, "
       "because all sites hold the same number of experts; for example 2"},
      // The GPUs of a site
      {"step_time = \"420ms\"", "step_time = \"420ms\"\ngpus_per_site = 0", "",
       ":13: compute.gpus_per_site: got 0; expected a whole number from 1 to 100000; for example "
       "gpus_per_site "
       "= "
       "8"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\ndata_parallel = 2\ngpus_per_site = 8", "",
       ":14: compute.gpus_per_site: got 8, although the parallel degrees multiply to 2; expected the product "
       "of data_parallel and the other degrees without expert_parallel, or no data_parallel; for example "
       "gpus_per_site = 2"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nsharded = 3\ngpus_per_site = 8", "",
       ":14: compute.gpus_per_site: got 8; expected a multiple of 3, the product of sharded, "
       "tensor_parallel, context_parallel and pipeline_parallel; for example gpus_per_site = 3"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nzero_stage = 4\nsharded = 2", "",
       ":13: compute.zero_stage: got 4; expected a whole number from 1 to 3; for example zero_stage = 2"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nzero_stage = 2", "",
       ":13: compute.zero_stage: got zero_stage without sharded; expected zero_stage only together with "
       "sharded above 1; for example zero_stage = 2"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\ntensor_parallel = 3", "",
       ":13: compute.tensor_parallel: got 3; expected a divisor of 4, the number of attention heads; for "
       "example tensor_parallel = 1"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\npipeline_parallel = 5", "",
       ":13: compute.pipeline_parallel: got 5; expected at most the model's 4 layers; for example "
       "pipeline_parallel = 1"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nexpert_parallel = 3", "",
       ":13: compute.expert_parallel: got 3; expected a divisor of 4, the number of experts that a site "
       "holds in each layer; for example expert_parallel = 1"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nintra_site_bandwidth = \"450GB\"", "",
       ":13: compute.intra_site_bandwidth: got \"450GB\" (a size); expected " +
           kRate.substr(0, kRate.find("bandwidth =")) + "intra_site_bandwidth = \"450GBps\""},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\ngpu_memory = 80", "",
       ":13: compute.gpu_memory: got 80 (no unit); expected a size above zero in quotes, with a unit (B kB "
       "MB "
       "GB "
       "TB or KiB MiB GiB TiB); for example gpu_memory = \"80GiB\""},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nactivation_checkpointing = \"selective\"", "",
       ":13: compute.activation_checkpointing: got \"selective\"; expected true or false; for example "
       "activation_checkpointing = true"},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nouter_state_on = \"disk\"", "",
       ":13: compute.outer_state_on: got \"disk\"; expected one of \"device\", \"host\"; for example "
       "outer_state_on = \"host\""},
      // Missing keys
      {"method = \"fomoe\"\n", "", "",
       ":7: strategy.method: got nothing; expected " + kMethods +
           "; for "
           "example method = \"fomoe\""},
      {"latency = \"25ms\"\n", "", "", ":13: platform.latency: got nothing; expected " + kLatency},
      {"bandwidth = \"1Gbps\"\n", "", "", ":13: platform.bandwidth: got nothing; expected " + kRate},
      {"bandwidth = \"1Gbps\"", "uplink = \"1Gbps\"", "",
       ":13: platform.downlink: got nothing; expected " + kRate.substr(0, kRate.find("bandwidth =")) +
           "downlink = \"1Gbps\""},
      {"sites = 4\n", "", "",
       ":13: platform.sites: got nothing; expected a whole number from 1 to 16384; for example sites = 4"},
      {"[workload]\ntokens = 1e6\nglobal_batch_sequences = 16\n", "", "",
       ":1: workload.tokens: got nothing; expected a whole number of at least 1; for example tokens = "
       "1.34e9"},
      {"preset = \"small\"\n", "", "",
       ":2: model.preset: got neither a preset nor shape keys; expected a preset, or all of d_model, layers, "
       "heads, experts, "
       "active_experts, d_expert, vocabulary, or hf_config, safetensors, shape or dense_parameters; for "
       "example preset = "
       "\"medium\""},
      {"preset = \"small\"", "hf_config = \"absent.json\"", "",
       ":3: model.hf_config: got \"absent.json\" (no such file: absent.json); expected a model's "
       "config.json, "
       "relative to the scenario file; for example hf_config = \"../models/mixtral-8x7b.json\""},
      {"preset = \"small\"", "preset = \"small\"\nhf_config = \"absent.json\"", "",
       ":3: model.preset: got both preset and hf_config; expected only one description of the model; for "
       "example preset = \"medium\""},
      {"preset = \"small\"", "dense_parameters = 0", "",
       ":3: model.dense_parameters: got 0; expected a whole number of at least 1; for example "
       "dense_parameters "
       "= "
       "124e6"},
      {"preset = \"small\"", "dense_parameters = 1e6\nexpert_parameters = 7\nexperts = 8", "",
       ":4: model.expert_parameters: got fewer parameters than the 8 experts; expected the parameters of all "
       "experts of all layers together; for example expert_parameters = 1.6e9"},
      {"preset = \"small\"", "dense_parameters = 1e6\nexperts = 8", "",
       ":4: model.experts: got experts without expert_parameters; expected experts only together with "
       "expert_parameters; for example expert_parameters = 1.6e9"},
      {"preset = \"small\"", "dense_parameters = 1e6\nd_model = 8", "",
       ":4: model.d_model: got d_model together with dense_parameters; expected d_model only without "
       "dense_parameters; for example d_model = 512"},
      {"preset = \"small\"", "preset = \"small\"\nexpert_parameters = 8", "",
       ":4: model.expert_parameters: got expert_parameters without dense_parameters; expected "
       "expert_parameters only together with dense_parameters; for example dense_parameters = 124e6"},
      {"preset = \"small\"", "dense_parameters = 1e6", "",
       ":8: strategy.method: got \"fomoe\" for a model without experts; expected a method that keeps full "
       "replicas, or a model with experts; for example method = \"diloco\""},
      {"global_batch_sequences = 16", "global_batch_sequences = 16\nglobal_batch_tokens = 2048", "",
       ":7: workload.global_batch_tokens: got both global_batch_tokens and global_batch_sequences; expected "
       "only one of them; for example global_batch_tokens = 2097152"},
      {"global_batch_sequences = 16", "global_batch_tokens = 5000", "",
       ":6: workload.global_batch_tokens: got 5000; expected a multiple of the sequence length 2048, such as "
       "4096; for example global_batch_tokens = 2097152"},
      {"preset = \"small\"", "d_model = 64", "",
       ":2: model.layers: got nothing; expected a whole number from 1 to 100000; for example layers = 16"},
  });
}

TEST_CASE("alternatives and combinations in a scenario") {
  check_refused({
      // Alternatives
      {"step_time = \"420ms\"\n", "", "",
       ":11: compute.step_time: got nothing; expected " + kOneCompute +
           "; for example step_time = \"420ms\""},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nprofile = \"p.json\"", "",
       ":12: compute.step_time: got both step_time and profile; expected " + kOneCompute +
           "; for example step_time = \"420ms\""},
      {"step_time = \"420ms\"", "step_time = \"420ms\"\nmfu = 0.4", "",
       ":13: compute.mfu: got mfu together with step_time; expected mfu without step_time, because it "
       "determines the step time; for example mfu = 0.4"},
      {"step_time = \"420ms\"", "peak_flops = \"989TFLOPS\"", "",
       ":11: compute.mfu: got nothing; expected mfu or kernel_efficiency together with the peak, or profile, "
       "or step_time; for example mfu = 0.4"},
      {"step_time = \"420ms\"", "profile = \"p.json\"", "",
       ":12: compute.profile: got \"p.json\" (no such file: p.json); expected a step profile, relative to "
       "the scenario file; `fomoe-train profile` writes one, and --set compute.step_time=420ms replaces it; "
       "for example profile = \"../profiles/this-machine.json\""},
      {"bandwidth = \"1Gbps\"", "bandwidth = \"1Gbps\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"", "",
       ":15: platform.bandwidth: got bandwidth together with uplink and downlink; expected either bandwidth, "
       "or uplink and downlink; for example bandwidth = \"1Gbps\""},
      {"bandwidth = \"1Gbps\"", "file = \"x.toml\"", "",
       ":16: platform.latency: got latency together with file; expected link rates and latencies only in the "
       "platform file (rate_factor scales all its rates); for example latency = \"25ms\""},
      // Combinations
      {"preset = \"small\"", "preset = \"small\"\nheads = 3", "",
       ":4: model.heads: got heads = 3 with d_model = 256; expected d_model divisible by heads, with an even "
       "quotient (rotary embeddings rotate pairs of values); for example heads = 8"},
      {"preset = \"small\"", "preset = \"small\"\nheads = 256", "",
       ":4: model.heads: got heads = 256 with d_model = 256; expected d_model divisible by heads, with an "
       "even quotient (rotary embeddings rotate pairs of values); for example heads = 8"},
      {"preset = \"small\"", "preset = \"small\"\nactive_experts = 9", "",
       ":4: model.active_experts: got active_experts = 9 with experts = 8; expected active_experts of at "
       "most "
       "experts; for example active_experts = 4"},
      {"expert_overlap = 2", "expert_overlap = 5", "",
       ":10: strategy.expert_overlap: got 5; expected 1 to 4 sites; for example 4"},
      {"global_batch_sequences = 16", "global_batch_sequences = 3", "",
       ":6: workload.global_batch_sequences: got 3; expected at least one sequence for each of the 4 sites; "
       "for example 4"},
      {"", "", "--set strategy.method=streaming_diloco --set strategy.fragments=5",
       "--set strategy.fragments=5: strategy.fragments: got 5; expected at most one fragment for each of the "
       "4 layers and at most one for each of the 4 local steps; for example 4"},
      {"", "", "--set strategy.method=streaming_diloco --set strategy.overlap_steps=5",
       "--set strategy.overlap_steps=5: strategy.overlap_steps: got 5; expected at most 4, the number of "
       "local steps between two transfers of the same fragment; for example 4"},
      {"", "",
       "--set strategy.method=fomoe --set strategy.outer_optimizer=local_adamw --set "
       "strategy.overlap_steps=1",
       "--set strategy.overlap_steps=1: strategy.overlap_steps: got 1 with outer_optimizer \"local_adamw\"; "
       "expected 0, because averaged parameters replace those of a site, with the steps that it has made "
       "meanwhile; or an outer optimiser (nesterov, adam, yogi); for example 0"},
      {"", "", "--set strategy.method=gossip --set strategy.gossip_peers=4",
       "--set strategy.gossip_peers=4: strategy.gossip_peers: got 4; expected at most 3, the number of other "
       "sites; for example 1"},
  });
}
