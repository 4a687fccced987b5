// Every mistake a user can make in a scenario: exit status 2, the exact message, and no file left behind.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "costmodel/methods/method.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;

// Line numbers in the expectations below count from the first line of this text.
const std::string kGood = R"(seed = 1
[model]
preset = "small"
[workload]
tokens = 1e6
global_batch_sequences = 16
[strategy]
method = "fomoe"
local_steps = 4
expert_overlap = 2
[compute]
step_time = "420ms"
[platform]
sites = 4
bandwidth = "1Gbps"
latency = "25ms"
)";

struct Wrong {
  std::string from, to;  // the change to the good file; an empty `from` appends
  std::string options;   // added to the command line
  std::string message;   // what follows the file's name, or the whole line where it starts with --set
};

const std::string kRate =
    "a data rate above zero in quotes, with a unit (bits as bps kbps Mbps Gbps Tbps, bytes as Bps kBps MBps "
    "GBps or "
    "KiBps MiBps GiBps); for example bandwidth = \"1Gbps\"";
const std::string kLatency =
    "a time of zero or more in quotes, with a unit (ns us ms s min h d); for example latency = \"25ms\"";
const std::string kStepTime =
    "a time above zero in quotes, with a unit (ns us ms s min h d); for example step_time = \"420ms\"";
const std::string kSize =
    "a size above zero in quotes, with a unit (B kB MB GB TB or KiB MiB GiB TiB); for example ";
const std::string kStrategyKeys =
    "one of method, local_steps, expert_overlap, placement, routing_counts, reshuffle_rounds, skip_token, "
    "overlap_steps, fragments, outer_optimizer, outer_state_on_migration, moment1_period, moment2_period, "
    "staleness, gossip_peers, "
    "collective, "
    "ring_order, bucket_bytes, "
    "granularity, payload_dtype, compression, regions, secure_aggregation, router, capacity_factor, "
    "max_sites_per_token, micro_batches, module_levels, module_choices";
// A new method needs no change here.
const std::string kMethods = [] {
  std::string text = "one of ";
  for (const fomoe::costmodel::Method& method : fomoe::costmodel::methods())
    text += (text == "one of " ? "\"" : ", \"") + std::string(method.name) + '"';
  return text;
}();
const std::string kMoney =
    "a price of zero or more in quotes, with a currency of three capital letters; for example ";
const std::string kTables =
    "one of [model] [workload] [strategy] [compute] [platform] [network_model] [traffic] [prices] [energy] "
    "[quality] [failures] [trainer]; for example [model]";
const std::string kOneCompute = "exactly one of profile, step_time, or mfu with peak_flops or accelerator";

const std::vector<Wrong> kWrong = {
    // Names
    {"local_steps = 4", "local_stpes = 4", "",
     ":9: strategy.local_stpes: got an unknown key; expected " + kStrategyKeys +
         "; for example local_steps = 32; did you mean local_steps?"},
    {"local_steps = 4", "colour = 4", "",
     ":9: strategy.colour: got an unknown key; expected " + kStrategyKeys +
         "; for example method = \"fomoe\""},
    {"[strategy]", "[strateggy]", "",
     ":7: strateggy: got an unknown table; expected " + kTables + "; did you mean [strategy]?"},
    {"", "[weather]\nsun = true\n", "", ":17: weather: got an unknown table; expected " + kTables},
    {"seed = 1", "sed = 1", "",
     ":1: sed: got an unknown key; expected one of name, description, seed; for example seed = 7; did you "
     "mean seed?"},
    {"[model]\npreset = \"small\"", "model = 3", "",
     ":2: model: got 3; expected a table; for example [model]"},
    {"[compute]\n", "[[compute]]\n", "",
     ":11: compute: got an array; expected a table; for example [compute]"},
    // The file itself
    {"local_steps = 4", "local_steps = 4\nlocal_steps = 5", "",
     ":10: strategy.local_steps: got the same name a second time; expected every key and table once; for "
     "example delete one of the two"},
    {"", "[model]\n", "",
     ":17: model: got the same name a second time; expected every key and table once; for example delete one "
     "of the two"},
    // Values of the wrong kind
    {"local_steps = 4", "local_steps = \"4\"", "",
     ":9: strategy.local_steps: got \"4\"; expected a whole number of at least 1; for example local_steps = "
     "32"},
    {"local_steps = 4", "local_steps = 0", "",
     ":9: strategy.local_steps: got 0; expected a whole number of at least 1; for example local_steps = 32"},
    {"local_steps = 4", "local_steps = -4", "",
     ":9: strategy.local_steps: got -4; expected a whole number of at least 1; for example local_steps = 32"},
    {"local_steps = 4", "local_steps = 4.5", "",
     ":9: strategy.local_steps: got 4.5; expected a whole number of at least 1; for example local_steps = "
     "32"},
    {"tokens = 1e6", "tokens = nan", "",
     ":5: workload.tokens: got nan; expected a whole number of at least 1; for example tokens = 1.34e9"},
    {"tokens = 1e6", "tokens = inf", "",
     ":5: workload.tokens: got inf; expected a whole number of at least 1; for example tokens = 1.34e9"},
    {"tokens = 1e6", "tokens = 2024-01-01", "",
     ":5: workload.tokens: got a date or time; expected a whole number of at least 1; for example tokens = "
     "1.34e9"},
    {"seed = 1", "seed = -1", "",
     ":1: seed: got -1; expected a whole number of at least 0; for example seed = 7"},
    {"local_steps = 4", "skip_token = 1", "",
     ":9: strategy.skip_token: got 1; expected true or false; for example skip_token = true"},
    {"local_steps = 4", "overlap_steps = -1", "",
     ":9: strategy.overlap_steps: got -1; expected a whole number of at least 0; for example overlap_steps = "
     "4"},
    {"local_steps = 4", "fragments = 0", "",
     ":9: strategy.fragments: got 0; expected a whole number from 1 to 100000; for example fragments = 4"},
    {"local_steps = 4", "moment1_period = 1001", "",
     ":9: strategy.moment1_period: got 1001; expected a whole number from 1 to 1000; for example "
     "moment1_period = 3"},
    {"local_steps = 4", "moment2_period = 0", "",
     ":9: strategy.moment2_period: got 0; expected a whole number from 1 to 1000; for example moment2_period "
     "= "
     "6"},
    {"local_steps = 4", "gossip_peers = 0", "",
     ":9: strategy.gossip_peers: got 0; expected a whole number from 1 to 1024; for example gossip_peers = "
     "1"},
    {"local_steps = 4", "compression = \"top_k\"", "",
     ":9: strategy.compression: got \"top_k\"; expected a table; for example [strategy.compression]"},
    {"local_steps = 4", "compression = { kind = \"top_p\", kept_share = 0.1 }", "",
     ":9: strategy.compression.kind: got \"top_p\"; expected one of \"top_k\"; for example kind = \"top_k\"; "
     "did you mean \"top_k\"?"},
    {"local_steps = 4", "compression = { kind = \"top_k\", kept_share = 2 }", "",
     ":9: strategy.compression.kept_share: got 2; expected a number above 0 and up to 1; for example "
     "kept_share "
     "= 0.015625"},
    {"local_steps = 4", "compression = { kind = \"top_k\", kept_share = 0.1, index_bits = 65 }", "",
     ":9: strategy.compression.index_bits: got 65; expected a whole number from 0 to 64; for example "
     "index_bits "
     "= 12"},
    {"", "[network_model]\nbandwidth_efficiency = 1.5\n", "",
     ":18: network_model.bandwidth_efficiency: got 1.5; expected a number above 0 and up to 1; for example "
     "bandwidth_efficiency = 0.956"},
    {"", "[network_model]\nbackground_share = 1\n", "",
     ":18: network_model.background_share: got 1; expected a number above 0 and up to 0.99; for example "
     "background_share = 0.2"},
    {"", "[network_model]\nlatency_factor = 0\n", "",
     ":18: network_model.latency_factor: got 0; expected a number above 0 and up to 1000; for example "
     "latency_factor = 1.1"},
    {"", "[network_model]\njitter = 5\n", "",
     ":18: network_model.jitter: got 5 (no unit); expected a time of zero or more in quotes, with a unit (ns "
     "us "
     "ms s min h d); for example jitter = \"5ms\""},
    {"", "[network_model]\ncall_overhead = \"-1ms\"\n", "",
     ":18: network_model.call_overhead: got \"-1ms\" (negative); expected a time of zero or more in quotes, "
     "with "
     "a unit (ns us ms s min h d); for example call_overhead = \"1ms\""},
    {"", "[network_model]\nstreams = 0\n", "",
     ":18: network_model.streams: got 0; expected a whole number from 1 to 65536; for example streams = 16"},
    {"", "[network_model]\ntcp_window = \"0B\"\n", "",
     ":18: network_model.tcp_window: got \"0B\" (zero); expected " + kSize + "tcp_window = \"16MiB\""},
    {"", "[network_model]\ncongestion_control = \"bbr\"\nloss_rate = 0.2\n", "",
     ":19: network_model.loss_rate: got 0.2; expected at most 0.15 with congestion_control = \"bbr\"; for "
     "example loss_rate = 0.0001"},
    {"", "[network_model]\nloss_rate = 2\n", "",
     ":18: network_model.loss_rate: got 2; expected a number above 0 and up to 1; for example loss_rate = "
     "0.0001"},
    {"", "[network_model]\nsegment_size = \"1s\"\n", "",
     ":18: network_model.segment_size: got \"1s\" (a time); expected " + kSize + "segment_size = \"1460B\""},
    {"", "[network_model]\ninitial_window = 10\n", "",
     ":18: network_model.initial_window: got 10 (no unit); expected " + kSize +
         "initial_window = \"14600B\""},
    {"", "[network_model]\nidle_restart = 1\n", "",
     ":18: network_model.idle_restart: got 1; expected true or false; for example idle_restart = true"},
    {"", "", "--set strategy.outer_state_on_migration=send",
     "--set strategy.outer_state_on_migration=send: strategy.outer_state_on_migration: got \"send\"; "
     "expected "
     "one of \"reset_all_owners\", \"transfer\"; for example --set "
     "strategy.outer_state_on_migration=transfer"},
    {"", "", "--set strategy.ring_order=besst",
     "--set strategy.ring_order=besst: strategy.ring_order: got \"besst\"; expected one of \"given\", "
     "\"best\"; for example --set strategy.ring_order=given; did you mean \"best\"?"},
    {"", "", "--set strategy.bucket_bytes=0MB",
     "--set strategy.bucket_bytes=0MB: strategy.bucket_bytes: got \"0MB\" (zero); expected " + kSize +
         "--set strategy.bucket_bytes=25MiB"},
    {"", "[network_model]\nring_model = \"fluids\"\n", "",
     ":18: network_model.ring_model: got \"fluids\"; expected one of \"stepwise\", \"fluid\"; for example "
     "ring_model = \"fluid\"; did you mean \"fluid\"?"},
    {"", "[network_model]\nbandwidth_efficiency = 0\n", "",
     ":18: network_model.bandwidth_efficiency: got 0; expected a number above 0 and up to 1; for example "
     "bandwidth_efficiency = 0.956"},
    {"local_steps = 4", "router = \"hsah\"", "",
     ":9: strategy.router: got \"hsah\"; expected one of \"uniform\", \"hash\", \"expert_choice\"; for "
     "example router = "
     "\"uniform\"; did you mean \"hash\"?"},
    {"local_steps = 4", "capacity_factor = 0", "",
     ":9: strategy.capacity_factor: got 0; expected a number above 0 and up to 1000; for example "
     "capacity_factor = 1.25"},
    {"local_steps = 4", "max_sites_per_token = 0", "",
     ":9: strategy.max_sites_per_token: got 0; expected a whole number from 1 to 1024; for example "
     "max_sites_per_token = 4"},
    {"local_steps = 4", "micro_batches = 0", "",
     ":9: strategy.micro_batches: got 0; expected a whole number from 1 to 4096; for example micro_batches = "
     "16"},
    {"local_steps = 4", "module_levels = 0", "",
     ":9: strategy.module_levels: got 0; expected a whole number from 1 to 1000; for example module_levels = "
     "2"},
    {"local_steps = 4", "module_choices = 1.5", "",
     ":9: strategy.module_choices: got 1.5; expected a whole number from 1 to 1024; for example "
     "module_choices = 4"},
    {"local_steps = 4", "secure_aggregation = 1", "",
     ":9: strategy.secure_aggregation: got 1; expected true or false; for example secure_aggregation = true"},
    {"local_steps = 4", "regions = 0", "",
     ":9: strategy.regions: got 0; expected a whole number from 1 to 1024; for example regions = 2"},
    {"local_steps = 4", "collective = \"hierarchical\"\nregions = 3", "",
     ":10: strategy.regions: got 3; expected 2 regions or more, which cut the 4 sites into equal groups, "
     "with collective = "
     "\"hierarchical\"; for example 2"},
    {"local_steps = 4", "secure_aggregation = true\npayload_dtype = \"bf16\"", "",
     ":10: strategy.payload_dtype: got it beside secure_aggregation; expected no payload_dtype there: masked "
     "payloads "
     "are 32-bit integers; for example payload_dtype = \"bf16\""},
    // What a method asks of the rest
    {"method = \"fomoe\"\nlocal_steps = 4", "method = \"fsdp\"\nsecure_aggregation = true", "",
     ":9: strategy.secure_aggregation: got true; expected false with fsdp: masks hide what is summed among "
     "sites, once in "
     "a round; for example false"},
    {"method = \"fomoe\"\nlocal_steps = 4", "method = \"di_paco\"\nmodule_choices = 3", "",
     ":9: strategy.module_choices: got 3; expected a divisor of the 4 sites, so that equally many share each "
     "module; "
     "for example 2"},
    {"method = \"fomoe\"\nlocal_steps = 4", "method = \"pipeline_wan\"\nmicro_batches = 17", "",
     ":9: strategy.micro_batches: got 17; expected at most one for each of the 16 sequences of a step; for "
     "example 16"},
    {"sites = 4", "sites = 3", "--set strategy.method=expert_parallel_wan --set strategy.expert_overlap=3",
     ":14: platform.sites: got 3; expected a number of sites that divides the 8 experts of a layer, since "
     "each site "
     "holds as many; for example 2"},
    // Names of things
    {"\"small\"", "\"smal\"", "",
     ":3: model.preset: got \"smal\"; expected one of \"small\", \"medium\", \"large\", \"xl\", \"xxl\"; for "
     "example preset = \"medium\"; did you mean \"small\"?"},
    {"local_steps = 4", "placement = \"affinity\"", "",
     ":9: strategy.placement: got \"affinity\" without routing_counts; expected routing_counts, a CSV with "
     "the "
     "columns layer,expert,site,count; for example routing_counts = \"routing.csv\""},
    {"local_steps = 4", "placement = \"affine\"", "",
     ":9: strategy.placement: got \"affine\"; expected one of \"fixed\", \"random\", \"affinity\"; for "
     "example "
     "placement = \"fixed\""},
    {"local_steps = 4", "outer_optimizer = \"adams\"", "",
     ":9: strategy.outer_optimizer: got \"adams\"; expected one of \"nesterov\", \"adam\", \"yogi\", "
     "\"average\", \"local_adamw\"; for example outer_optimizer = \"nesterov\"; did you mean \"adam\"?"},
    {"local_steps = 4", "collective = \"rign\"", "",
     ":9: strategy.collective: got \"rign\"; expected one of \"ring\", \"direct\", \"hierarchical\", "
     "\"recursive\"; for "
     "example collective = "
     "\"ring\"; did you mean \"ring\"?"},
    {"local_steps = 4", "payload_dtype = \"int3\"", "",
     ":9: strategy.payload_dtype: got \"int3\"; expected one of \"fp32\", \"bf16\", "
     "\"fp16\", \"fp8\", \"int8\", \"int4\", \"int2\"; for example payload_dtype = \"bf16\"; did you mean "
     "\"int8\"?"},
    // Quantities
    {"\"1Gbps\"", "1000000000", "", ":15: platform.bandwidth: got 1000000000 (no unit); expected " + kRate},
    {"\"1Gbps\"", "\"1000000000\"", "",
     ":15: platform.bandwidth: got \"1000000000\" (no unit); expected " + kRate},
    {"\"1Gbps\"", "\"50ms\"", "", ":15: platform.bandwidth: got \"50ms\" (a time); expected " + kRate},
    {"\"1Gbps\"", "\"2GiB\"", "", ":15: platform.bandwidth: got \"2GiB\" (a size); expected " + kRate},
    {"\"1Gbps\"", "\"-1Gbps\"", "", ":15: platform.bandwidth: got \"-1Gbps\" (negative); expected " + kRate},
    {"\"1Gbps\"", "\"0Gbps\"", "", ":15: platform.bandwidth: got \"0Gbps\" (zero); expected " + kRate},
    {"\"1Gbps\"", "\"nanGbps\"", "",
     ":15: platform.bandwidth: got \"nanGbps\" (not a finite number); expected " + kRate},
    {"\"1Gbps\"", "\"infGbps\"", "",
     ":15: platform.bandwidth: got \"infGbps\" (not a finite number); expected " + kRate},
    {"\"1Gbps\"", "\"1gbps\"", "",
     ":15: platform.bandwidth: got \"1gbps\" (unknown unit gbps); expected " + kRate +
         "; did you mean \"1Gbps\" or \"1GBps\"?"},
    {"\"1Gbps\"", "\"fast\"", "", ":15: platform.bandwidth: got \"fast\" (no number); expected " + kRate},
    {"\"1Gbps\"", "\"\"", "", ":15: platform.bandwidth: got \"\" (no number); expected " + kRate},
    {"\"25ms\"", "\"1Gbps\"", "", ":16: platform.latency: got \"1Gbps\" (a data rate); expected " + kLatency},
    {"\"25ms\"", "25", "", ":16: platform.latency: got 25 (no unit); expected " + kLatency},
    {"\"25ms\"", "\"-25ms\"", "", ":16: platform.latency: got \"-25ms\" (negative); expected " + kLatency},
    {"\"420ms\"", "\"0s\"", "", ":12: compute.step_time: got \"0s\" (zero); expected " + kStepTime},
    // The GPUs of a site
    {"step_time = \"420ms\"", "step_time = \"420ms\"\ngpus_per_site = 0", "",
     ":13: compute.gpus_per_site: got 0; expected a whole number from 1 to 100000; for example gpus_per_site "
     "= "
     "8"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\ndata_parallel = 2\ngpus_per_site = 8", "",
     ":14: compute.gpus_per_site: got 8 with degrees of 2 GPUs; expected the product of data_parallel and "
     "the "
     "other degrees, or no data_parallel; for example gpus_per_site = 8"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nsharded = 3\ngpus_per_site = 8", "",
     ":14: compute.gpus_per_site: got 8; expected a multiple of the product of the parallel degrees, 3; for "
     "example gpus_per_site = 3"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nzero_stage = 4\nsharded = 2", "",
     ":13: compute.zero_stage: got 4; expected a whole number from 1 to 3; for example zero_stage = 2"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nzero_stage = 2", "",
     ":13: compute.zero_stage: got it without sharded; expected sharded above 1 beside it; for example "
     "zero_stage = 2"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\ntensor_parallel = 3", "",
     ":13: compute.tensor_parallel: got 3; expected a divisor of the model's 4 heads; for example "
     "tensor_parallel = 1"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\npipeline_parallel = 5", "",
     ":13: compute.pipeline_parallel: got 5; expected at most the model's 4 layers; for example "
     "pipeline_parallel = 1"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nexpert_parallel = 3", "",
     ":13: compute.expert_parallel: got 3; expected a divisor of the 4 experts that a site holds in each "
     "layer; for example expert_parallel = 1"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nintra_site_bandwidth = \"450GB\"", "",
     ":13: compute.intra_site_bandwidth: got \"450GB\" (a size); expected " +
         kRate.substr(0, kRate.find("bandwidth =")) + "intra_site_bandwidth = \"450GBps\""},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\ngpu_memory = 80", "",
     ":13: compute.gpu_memory: got 80 (no unit); expected a size above zero in quotes, with a unit (B kB MB "
     "GB "
     "TB or KiB MiB GiB TiB); for example gpu_memory = \"80GiB\""},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nactivation_checkpointing = \"selective\"", "",
     ":13: compute.activation_checkpointing: got \"selective\"; expected true or false; for example "
     "activation_checkpointing = true"},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nouter_state_on = \"disk\"", "",
     ":13: compute.outer_state_on: got \"disk\"; expected one of \"device\", \"host\"; for example "
     "outer_state_on = \"host\""},
    // What is missing
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
     ":13: platform.sites: got nothing; expected a whole number from 1 to 1024; for example sites = 4"},
    {"[workload]\ntokens = 1e6\nglobal_batch_sequences = 16\n", "", "",
     ":1: workload.tokens: got nothing; expected a whole number of at least 1; for example tokens = 1.34e9"},
    {"preset = \"small\"\n", "", "",
     ":2: model.preset: got neither a preset nor shape keys; expected a preset, or all of d_model, layers, "
     "heads, experts, "
     "active_experts, d_expert, vocabulary, or hf_config, or dense_parameters; for example preset = "
     "\"medium\""},
    {"preset = \"small\"", "hf_config = \"absent.json\"", "",
     ":3: model.hf_config: got \"absent.json\" (no such file: absent.json); expected a model's config.json, "
     "relative to the scenario file; for example hf_config = \"../models/mixtral-8x7b.json\""},
    {"preset = \"small\"", "preset = \"small\"\nhf_config = \"absent.json\"", "",
     ":3: model.preset: got it beside hf_config; expected one description of the model; for example preset = "
     "\"medium\""},
    {"preset = \"small\"", "dense_parameters = 0", "",
     ":3: model.dense_parameters: got 0; expected a whole number of at least 1; for example dense_parameters "
     "= "
     "124e6"},
    {"preset = \"small\"", "dense_parameters = 1e6\nexpert_parameters = 7\nexperts = 8", "",
     ":4: model.expert_parameters: got fewer parameters than the 8 experts; expected the parameters of all "
     "experts of all layers together; for example expert_parameters = 1.6e9"},
    {"preset = \"small\"", "dense_parameters = 1e6\nexperts = 8", "",
     ":4: model.experts: got it without expert_parameters; expected expert_parameters beside it; for example "
     "experts = 16"},
    {"preset = \"small\"", "dense_parameters = 1e6\nd_model = 8", "",
     ":4: model.d_model: got it beside dense_parameters; expected it without dense_parameters; for example "
     "d_model = 512"},
    {"preset = \"small\"", "preset = \"small\"\nexpert_parameters = 8", "",
     ":4: model.expert_parameters: got it without dense_parameters; expected dense_parameters beside it; for "
     "example expert_parameters = 1.6e9"},
    {"preset = \"small\"", "dense_parameters = 1e6", "",
     ":8: strategy.method: got \"fomoe\" for a model without experts; expected a method that keeps full "
     "replicas, or a model with experts; for example method = \"diloco\""},
    {"global_batch_sequences = 16", "global_batch_sequences = 16\nglobal_batch_tokens = 2048", "",
     ":7: workload.global_batch_tokens: got it beside global_batch_sequences; expected one of the two; for "
     "example global_batch_tokens = 2097152"},
    {"global_batch_sequences = 16", "global_batch_tokens = 5000", "",
     ":6: workload.global_batch_tokens: got 5000; expected a multiple of the sequence length 2048, such as "
     "4096; for example global_batch_tokens = 2097152"},
    {"preset = \"small\"", "d_model = 64", "",
     ":2: model.layers: got nothing; expected a whole number from 1 to 100000; for example layers = 16"},
    // Alternatives
    {"step_time = \"420ms\"\n", "", "",
     ":11: compute.step_time: got nothing; expected " + kOneCompute + "; for example step_time = \"420ms\""},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nprofile = \"p.json\"", "",
     ":12: compute.step_time: got it beside profile; expected " + kOneCompute +
         "; for example step_time = \"420ms\""},
    {"step_time = \"420ms\"", "step_time = \"420ms\"\nmfu = 0.4", "",
     ":13: compute.mfu: got it beside step_time; expected it only beside peak_flops or accelerator; for "
     "example mfu = 0.4"},
    {"step_time = \"420ms\"", "peak_flops = \"989TFLOPS\"", "",
     ":11: compute.mfu: got nothing; expected a number above 0 and up to 1; for example mfu = 0.4"},
    {"step_time = \"420ms\"", "profile = \"p.json\"", "",
     ":12: compute.profile: got \"p.json\" (no such file: p.json); expected a step profile, relative to the "
     "scenario file; "
     "`fomoe-train profile` writes one, and --set compute.step_time=420ms does without; for example profile "
     "= \"../profiles/this-machine.json\""},
    {"bandwidth = \"1Gbps\"", "bandwidth = \"1Gbps\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"", "",
     ":15: platform.bandwidth: got it beside uplink and downlink; expected bandwidth, or uplink and "
     "downlink; for example bandwidth = \"1Gbps\""},
    {"bandwidth = \"1Gbps\"", "file = \"x.toml\"", "",
     ":16: platform.latency: got it beside file; expected link rates and latencies in the platform file "
     "alone, with rate_factor on all its rates; for example latency = \"25ms\""},
    // Combinations
    {"preset = \"small\"", "preset = \"small\"\nheads = 3", "",
     ":4: model.heads: got heads = 3 with d_model = 256; expected d_model divisible by heads, with an even "
     "quotient (rotary "
     "embeddings turn pairs); for example heads = 8"},
    {"preset = \"small\"", "preset = \"small\"\nheads = 256", "",
     ":4: model.heads: got heads = 256 with d_model = 256; expected d_model divisible by heads, with an even "
     "quotient (rotary "
     "embeddings turn pairs); for example heads = 8"},
    {"preset = \"small\"", "preset = \"small\"\nactive_experts = 9", "",
     ":4: model.active_experts: got active_experts = 9 with experts = 8; expected active_experts of at most "
     "experts; for example active_experts = 4"},
    {"expert_overlap = 2", "expert_overlap = 5", "",
     ":10: strategy.expert_overlap: got 5; expected 1 to 4 sites such that expert_overlap · 8 experts ÷ 4 "
     "sites is a whole "
     "number; the nearest is 4; for example 4"},
    {"global_batch_sequences = 16", "global_batch_sequences = 3", "",
     ":6: workload.global_batch_sequences: got 3; expected at least one sequence for each of the 4 sites; "
     "for example 4"},
    {"", "", "--set strategy.method=streaming_diloco --set strategy.fragments=5",
     "--set strategy.fragments=5: strategy.fragments: got 5; expected at most one for each of the 4 layers "
     "and each "
     "of the 4 local steps; for example 4"},
    {"", "", "--set strategy.method=streaming_diloco --set strategy.overlap_steps=5",
     "--set strategy.overlap_steps=5: strategy.overlap_steps: got 5; expected at most the 4 local steps "
     "after which "
     "the same fragment is sent again; for example 4"},
    {"", "", "--set strategy.method=gossip --set strategy.gossip_peers=4",
     "--set strategy.gossip_peers=4: strategy.gossip_peers: got 4; expected at most all other sites, 3; for "
     "example "
     "1"},
    // The command line
    {"", "", "--set strategy.local_stpes=4",
     "--set strategy.local_stpes=4: strategy.local_stpes: got an unknown key; expected " + kStrategyKeys +
         "; for example --set strategy.local_steps=32; did you mean local_steps?"},
    {"", "", "--set strategy.local_steps=many",
     "--set strategy.local_steps=many: strategy.local_steps: got \"many\"; expected a whole number of at "
     "least 1; for example "
     "--set strategy.local_steps=32"},
    {"", "", "--set strategy.expert_overlap=7",
     "--set strategy.expert_overlap=7: strategy.expert_overlap: got 7; expected 1 to 4 sites such that "
     "expert_overlap · 8 "
     "experts ÷ 4 sites is a whole number; the nearest is 4; for example 4"},
    {"", "", "--set nonsense",
     "--set nonsense: nonsense: got no key=value; expected one key=value; for example --set "
     "strategy.local_steps=64"},
    {"", "", "--set a.b.c=1",
     "--set a.b.c=1: a.b.c: got a key of another form; expected table.key; for example --set "
     "strategy.local_steps=64"},
    {"", "", "--set strategy.method=",
     "--set strategy.method=: strategy.method: got no value after =; expected key=value; for example --set "
     "strategy.local_steps=64"},
    {"", "", "--set strateggy.method=ddp",
     "--set strateggy.method=ddp: strateggy: got an unknown table; expected " + kTables +
         "; did you mean [strategy]?"},
    {"", "", "--set strategy.method=fomo",
     "--set strategy.method=fomo: strategy.method: got \"fomo\"; expected " + kMethods +
         "; "
         "for example --set strategy.method=fomoe; did you mean \"fomoe\"?"},
    {"", "", "--set strategy={method=ddp}",
     "--set strategy={method=ddp}: strategy: got {method=ddp}; expected a TOML value or a bare word; for "
     "example --set strategy.local_steps=64"},
    {"", "", "--set strategy={local_steps=2}",
     "--set strategy={local_steps=2}: strategy: got a table; expected one key at a time; for example --set "
     "strategy.local_steps=64"},
    // Money, energy, traffic and quality
    {"", "[prices]\ngpu_hour = 2.5\n", "",
     ":18: prices.gpu_hour: got 2.5 (no currency); expected " + kMoney + "gpu_hour = \"2.50USD\""},
    {"", "[prices]\ngpu_hour = \"2.5\"\n", "",
     ":18: prices.gpu_hour: got \"2.5\" (no currency); expected " + kMoney + "gpu_hour = \"2.50USD\""},
    {"", "[prices]\ngpu_hour = \"-2USD\"\n", "",
     ":18: prices.gpu_hour: got \"-2USD\" (negative); expected " + kMoney + "gpu_hour = \"2.50USD\""},
    {"", "[prices]\ngpu_hour = \"2dollars\"\n", "",
     ":18: prices.gpu_hour: got \"2dollars\" (unknown currency dollars); expected " + kMoney +
         "gpu_hour = \"2.50USD\""},
    {"", "[prices]\ngpu_hour = \"2USD\"\negress_per_gb = \"1EUR\"\n", "",
     ":19: prices.egress_per_gb: got EUR; expected USD, the currency of gpu_hour; for example egress_per_gb "
     "= "
     "\"0.08USD\""},
    {"", "[prices]\nport_month = \"2USD\"\n", "",
     ":17: prices.gpu_hour: got nothing; expected a price file, or gpu_hour; for example gpu_hour = "
     "\"2.50USD\""},
    {"", "[prices]\ngpu_hour = \"2USD\"\npricing = \"spot\"\n", "",
     ":19: prices.pricing: got it without file; expected it beside file, or gpu_hour alone; for example "
     "pricing = "
     "\"spot\""},
    {"", "[prices]\nfile = \"p.toml\"\nkwh = \"2USD\"\n", "",
     ":19: prices.kwh: got it beside file; expected prices in the price file alone; for example kwh = "
     "\"0.12USD\""},
    {"", "[prices]\npricing = \"lease\"\nfile = \"p.toml\"\n", "",
     ":18: prices.pricing: got \"lease\"; expected one of \"on_demand\", \"spot\", \"owned\"; for example "
     "pricing = "
     "\"spot\""},
    {"", "[energy]\ngpu_power = \"700\"\nidle_share = 0.2\n", "",
     ":18: energy.gpu_power: got \"700\" (no unit); expected a power above zero in quotes, with a unit (W kW "
     "MW); for "
     "example gpu_power = \"700W\""},
    {"", "[energy]\ngpu_power = \"700W\"\n", "",
     ":17: energy.idle_share: got nothing; expected a number above 0 and up to 1; for example idle_share = "
     "0.2"},
    {"", "[energy]\ngpu_power = \"700W\"\nidle_share = 0.2\npue = 0.9\n", "",
     ":20: energy.pue: got 0.9; expected a number of at least 1; for example pue = 1.2"},
    {"", "[traffic]\ndata_site = \"site-9\"\n", "",
     ":18: traffic.data_site: got \"site-9\"; expected the name of a site: \"site-0\", \"site-1\", "
     "\"site-2\", "
     "\"site-3\"; for example data_site = \"site-0\"; did you mean \"site-0\"?"},
    {"", "[traffic]\ncheckpoint_rounds = 3\n", "",
     ":18: traffic.checkpoint_rounds: got it without checkpoint_site; expected it only beside "
     "checkpoint_site; for "
     "example checkpoint_rounds = 100"},
    {"", "[quality]\nmodel = \"oracle\"\n", "",
     ":18: quality.model: got \"oracle\"; expected one of \"paper-table\", \"diloco-scaling-law\"; for "
     "example model = "
     "\"paper-table\""},
    {"", "[quality]\nmodel = \"paper-table\"\nfile = \"t.csv\"\n", "",
     ":19: quality.file: got it beside model; expected one of model and file; for example file = "
     "\"../data/paper_exp1.csv\""},
    {"", "[failures]\nsite_mtbf = \"7d\"\n", "",
     ":17: failures.checkpoint_cost: got nothing; expected checkpoint_cost or storage_bandwidth; for example "
     "checkpoint_cost = \"20s\""},
    {"", "[failures]\nsite_mtbf = \"0s\"\ncheckpoint_cost = \"20s\"\n", "",
     ":18: failures.site_mtbf: got \"0s\" (zero); expected a time above zero in quotes, with a unit (ns us "
     "ms s "
     "min h d); for example site_mtbf = \"7d\""},
    {"", "[failures]\ncheckpoint_cost = \"20s\"\nstorage_bandwidth = \"1GBps\"\n", "",
     ":18: failures.checkpoint_cost: got it beside storage_bandwidth; expected one of checkpoint_cost and "
     "storage_bandwidth; for example checkpoint_cost = \"20s\""},
    {"", "[failures]\ncheckpoint_cost = \"20s\"\ntimeout = \"1min\"\n", "",
     ":19: failures.timeout: got it with policy = \"wait\"; expected it only with policy = \"drop\"; for "
     "example timeout = \"2min\""},
    {"", "[failures]\ncheckpoint_cost = \"20s\"\npolicy = \"hope\"\n", "",
     ":19: failures.policy: got \"hope\"; expected one of \"wait\", \"drop\"; for example policy = \"drop\""},
    {"", "[failures]\ncheckpoint_cost = \"20s\"\npreemptions_per_day = -1\n", "",
     ":19: failures.preemptions_per_day: got -1; expected a number above 0 and up to 10000; for example "
     "preemptions_per_day = 0.5"},
    {"", "", "--seed x",
     "--set seed=x: seed: got \"x\"; expected a whole number of at least 0; for example --set seed=7"},
};

std::string changed(const Wrong& wrong) {
  std::string text = kGood;
  if (wrong.from.empty()) return text + wrong.to;
  const std::size_t at = text.find(wrong.from);
  REQUIRE_MESSAGE(at != std::string::npos, wrong.from);
  return text.replace(at, wrong.from.size(), wrong.to);
}

}  // namespace

TEST_CASE("the good scenario, unchanged, is read") {
  const Folder folder;
  write_all(folder / "s.toml", kGood);
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output answer.json");
  CHECK(ran.exit_status == 0);
  CHECK(std::filesystem::exists(folder / "answer.json"));
}

TEST_CASE("wrong scenarios: exit status 2, file:line: key: got; expected; for example, and no file left") {
  for (const Wrong& wrong : kWrong) {
    CAPTURE(wrong.to);
    CAPTURE(wrong.options);
    const Folder folder;
    write_all(folder / "s.toml", changed(wrong));
    const Ran ran = run_in(folder.path(),
                           "fomoe simulate s.toml --output answer.json --trace trace.json " + wrong.options);
    const bool by_option = wrong.message.starts_with("--set");
    CHECK(ran.exit_status == 2);
    CHECK(ran.err == (by_option ? "" : "s.toml") + wrong.message + "\n");
    CHECK(ran.out.empty());
    const std::regex shape(R"((s\.toml:\d+|--set \S+): \S+: got .+; expected .+; for example .+\n)");
    CHECK(std::regex_match(ran.err, shape));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      files += entry.exists() ? 1 : 0;
    CHECK(files == 1);  // the scenario alone
  }
}

TEST_CASE("what is no TOML is refused with its line") {
  const Folder folder;
  write_all(folder / "s.toml", "seed = 1\n[model\npreset = \"small\"\n");
  const Ran ran = run_in(folder.path(), "fomoe cost s.toml");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.starts_with("s.toml:2: TOML: got "));
  CHECK(ran.err.ends_with("; expected a file in TOML; for example local_steps = 32\n"));
}

TEST_CASE("mistakes on the command line: exit status 2 and what to type instead") {
  struct Line {
    std::string command, message;
  };
  const std::vector<Line> lines = {
      {"fomoe", "fomoe: expected a command; see fomoe --help"},
      {"fomoe simulat s.toml",
       "fomoe: simulat: unknown command; expected one of cost, simulate, compare, plan, solve, explain, "
       "report, sweep, reproduce, probe, calibrate, validate, profile, list; "
       "for example "
       "fomoe list methods; did you mean simulate?"},
      {"fomoe simulate",
       "fomoe: expected one scenario, got 0; for example fomoe simulate "
       "experiments/scenarios/two-sites.toml"},
      {"fomoe simulate s.toml t.toml",
       "fomoe: expected one scenario, got 2; for example fomoe simulate "
       "experiments/scenarios/two-sites.toml"},
      {"fomoe simulate absent.toml",
       "absent.toml:1: scenario: got no file that can be read; expected a file in TOML; for example "
       "experiments/scenarios/two-sites.toml"},
      {"fomoe simulate s.toml --outptu -",
       "fomoe: --outptu: unknown option; did you mean --output?; see fomoe simulate --help"},
      {"fomoe simulate s.toml --output a.txt",
       "fomoe: --output: got \"a.txt\"; expected - or a file that ends in .json or .csv; for example "
       "--output result.json"},
      {"fomoe simulate s.toml --output no/a.json",
       "fomoe: --output: got \"no/a.json\", in a folder that does not exist; expected an existing folder; "
       "for example mkdir -p no"},
      {"fomoe simulate s.toml --engine simulatd",
       "fomoe: --engine: got \"simulatd\"; expected one of simulated, closed-form; for example --engine "
       "simulated; did you mean simulated?"},
      {"fomoe simulate s.toml --rounds 0",
       "fomoe: --rounds: got \"0\"; expected a whole number of at least 1, or all; for example --rounds 8"},
      {"fomoe simulate s.toml --engine closed-form --trace t.json",
       "fomoe: --trace: got it with --engine closed-form, which has no timeline; expected --engine "
       "simulated; for example --engine simulated --trace t.json"},
      {"fomoe cost s.toml --accounting papr",
       "fomoe: --accounting: got \"papr\"; expected one of mechanism, paper; for example --accounting "
       "mechanism; did you mean paper?"},
      {"fomoe compare s.toml",
       "fomoe: --case: got none; expected at least one; for example --case strategy.method=ddp"},
      {"fomoe list metods",
       "fomoe: fomoe list: got \"metods\"; expected one of methods, models, keys, platforms, accelerators; "
       "for example "
       "fomoe list methods; did you mean methods?"},
  };
  const Folder folder;
  write_all(folder / "s.toml", kGood);
  for (const Line& line : lines) {
    const Ran ran = run_in(folder.path(), line.command);
    CHECK(ran.exit_status == 2);
    CHECK(ran.err == line.message + "\n");
    CHECK(ran.out.empty());
  }
}
