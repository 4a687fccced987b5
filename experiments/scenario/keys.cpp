#include "experiments/scenario/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/methods/method.hpp"
#include "costmodel/model_shape.hpp"
#include "experiments/scenario/suggest.hpp"
#include "experiments/scenario/units.hpp"

namespace fomoe::scenario {
namespace {

// Bounds that keep every product of shape keys inside 64 bits (the reader also checks the total).
constexpr double kMaxWidth = 1e6, kMaxLayers = 1e5, kMaxExperts = 1e6, kMaxVocabulary = 1e8, kMaxSites = 1024,
                 kMaxGpus = 1e5;

constexpr Key kScenarioKeys[] = {
    {"", "name", Kind::text, "", "no name", "a title, for people", "\"four sites at 1 Gb/s\""},
    {"", "description", Kind::text, "", "no description", "what the scenario is for",
     "\"my three data centres\""},
    {"", "seed", Kind::count, "42", "", "seed of everything random: placements", "7", 9e15, 0},

    {"model", "preset", Kind::choice, "", "the shape keys describe the model", "a model of the FoMoE paper",
     "\"medium\""},
    {"model", "hf_config", Kind::text, "", "no such file",
     "a model's Hugging Face config.json, relative to this file", "\"../models/mixtral-8x7b.json\""},
    {"model", "dense_parameters", Kind::count, "", "counted from the shape",
     "of a model of which only counts are known: parameters that are in no expert", "124e6", 1e16},
    {"model", "expert_parameters", Kind::count, "", "a dense model",
     "with dense_parameters: parameters of all experts of all layers together", "1.6e9", 1e16},
    {"model", "d_model", Kind::count, "", "from the preset", "width of the residual stream", "512",
     kMaxWidth},
    {"model", "layers", Kind::count, "", "from the preset", "transformer blocks", "16", kMaxLayers},
    {"model", "heads", Kind::count, "", "from the preset", "attention heads; d_model ÷ heads must be even",
     "8", kMaxWidth},
    {"model", "experts", Kind::count, "", "from the preset", "experts of each layer, N_e", "16", kMaxExperts},
    {"model", "active_experts", Kind::count, "", "from the preset", "experts that one token uses, k", "4",
     kMaxExperts},
    {"model", "d_expert", Kind::count, "", "from the preset", "hidden width of one expert", "128", kMaxWidth},
    {"model", "vocabulary", Kind::count, "", "from the preset", "distinct tokens", "32000", kMaxVocabulary},
    {"model", "sequence_length", Kind::count, "2048", "", "tokens of one sequence", "2048", 1e8},

    {"workload", "tokens", Kind::count, "", "", "tokens to train on, over all sites", "1.34e9"},
    {"workload", "global_batch_sequences", Kind::count, "", "",
     "sequences of one optimiser step, over all sites together", "1024", 1e12},
    {"workload", "global_batch_tokens", Kind::count, "", "global_batch_sequences says it",
     "the same in tokens", "2097152"},

    {"strategy", "method", Kind::choice, "", "", "the training method (`fomoe list methods`)", "\"fomoe\""},
    {"strategy", "local_steps", Kind::count, "1", "",
     "optimiser steps between two synchronisations, K; ddp ignores it", "32", 1e12},
    {"strategy", "expert_overlap", Kind::count, "", "the number of sites: every site holds every expert",
     "sites that hold each expert, O_e", "2", kMaxSites},
    {"strategy", "placement", Kind::choice, "\"fixed\"", "", "which sites hold which experts", "\"fixed\""},
    {"strategy", "routing_counts", Kind::text, "", "no counts; placement = \"affinity\" needs them",
     "CSV with the columns layer,expert,site,count (layers and experts from 0, tokens of the site that chose "
     "the "
     "expert), relative to this file",
     "\"routing.csv\""},
    {"strategy", "reshuffle_rounds", Kind::count, "1", "",
     "a random placement is drawn anew at the end of every T-th round", "4", 1e12},
    {"strategy", "skip_token", Kind::yes_no, "false", "",
     "drop what a token would send to experts of other sites", "true"},
    {"strategy", "overlap_steps", Kind::count, "0", "",
     "local steps that a synchronisation may hide behind, with streaming_diloco", "4", 1e12, 0},
    {"strategy", "fragments", Kind::count, "1", "",
     "parts of the model that are synchronised in turn, with streaming_diloco", "4", kMaxLayers},
    {"strategy", "outer_optimizer", Kind::choice, "\"nesterov\"", "",
     "what is made of the sites' differences; average and local_adamw send parameters", "\"nesterov\""},
    {"strategy", "moment1_period", Kind::count, "3", "",
     "rounds from one synchronisation of the first moment to the next, with des_loc", "3", 1000},
    {"strategy", "moment2_period", Kind::count, "6", "",
     "rounds from one synchronisation of the second moment to the next, with des_loc", "6", 1000},
    {"strategy", "gossip_peers", Kind::count, "1", "",
     "sites that each site exchanges with in a round, with gossip", "1", kMaxSites},
    {"strategy", "collective", Kind::choice, "\"ring\"", "", "how a synchronisation is sent", "\"ring\""},
    {"strategy", "ring_order", Kind::choice, "\"best\"", "",
     "sites in a ring as given, or so that the slowest hop (latency + chunk / rate) is fastest", "\"given\""},
    {"strategy", "bucket_bytes", Kind::size, "", "one call for everything",
     "most that one call of a collective sends; calls of a synchronisation follow each other", "\"25MiB\""},
    {"strategy", "granularity", Kind::choice, "\"flat\"", "",
     "what one call of a collective sends: everything, or one tensor after another", "\"tensor\""},
    {"strategy", "payload_dtype", Kind::choice, "",
     "the method's: int4 for diloco_x, int2 for sparse_loco, else bf16",
     "number format on the wire; int8, int4 and int2 with an fp32 scale for 256 values", "\"bf16\""},
    {"strategy.compression", "kind", Kind::choice, "", "", "what is left out of a payload", "\"top_k\""},
    {"strategy.compression", "kept_share", Kind::share, "", "", "share of the values that is sent",
     "0.015625"},
    {"strategy.compression", "index_bits", Kind::count, "12", "", "for the position of a value that is sent",
     "12", 64, 0},
    {"strategy", "regions", Kind::count, "1", "",
     "equal groups of consecutive sites, with collective = \"hierarchical\"", "2", kMaxSites},
    {"strategy", "secure_aggregation", Kind::yes_no, "false", "",
     "sum masked 32-bit integers, so that no site's own payload can be read", "true"},
    {"strategy", "router", Kind::choice, "\"uniform\"", "",
     "how tokens spread over experts, with experts on other sites", "\"uniform\""},
    {"strategy", "capacity_factor", Kind::multiple, "", "as much as arrives",
     "rows that an expert's buffer holds, in mean loads, with expert_parallel_wan", "1.25", 1000},
    {"strategy", "max_sites_per_token", Kind::count, "", "as many as its experts are on",
     "sites that the experts of one token are on, with expert_parallel_wan", "4", kMaxSites},
    {"strategy", "micro_batches", Kind::count, "8", "", "parts of the global batch, with pipeline_wan", "16",
     4096},
    {"strategy", "module_levels", Kind::count, "1", "",
     "modules that follow each other in a path, with di_paco", "2", 1000},
    {"strategy", "module_choices", Kind::count, "1", "", "modules that each level offers, with di_paco", "4",
     kMaxSites},

    {"compute", "profile", Kind::text, "", "not measured",
     "step profile written by `fomoe-train profile`, relative to this file",
     "\"../profiles/this-machine.json\""},
    {"compute", "micro_batch_sequences", Kind::count, "",
     "the largest micro-batch in the profile; without one, memory has no activations",
     "sequences of one forward and backward of one replica", "8", 1e9},
    {"compute", "step_time", Kind::duration, "", "not given",
     "one optimiser step of one site, whatever the batch", "\"420ms\""},
    {"compute", "peak_flops", Kind::flop_rate, "", "not assumed", "of one GPU, with mfu", "\"989TFLOPS\""},
    {"compute", "mfu", Kind::share, "", "not assumed", "share of peak_flops that training reaches", "0.4"},
    {"compute", "gpus_per_site", Kind::count, "", "the product of the five degrees below",
     "GPUs of a site; a profile and peak_flops are of one GPU, step_time is of the site", "8", kMaxGpus},
    {"compute", "data_parallel", Kind::count, "", "gpus_per_site ÷ the other four degrees",
     "replicas of the model in a site, each with its part of the batch", "2", kMaxGpus},
    {"compute", "sharded", Kind::count, "1", "",
     "GPUs of a site that divide optimiser state, gradients and weights (ZeRO, FSDP), and the batch", "8",
     kMaxGpus},
    {"compute", "zero_stage", Kind::count, "3", "",
     "what is sharded: 1 optimiser state, 2 gradients too, 3 weights too", "2", 3},
    {"compute", "tensor_parallel", Kind::count, "1", "", "GPUs that divide every matrix", "4", kMaxGpus},
    {"compute", "expert_parallel", Kind::count, "1", "",
     "GPUs of a site that divide its experts, and the batch", "2", kMaxGpus},
    {"compute", "pipeline_parallel", Kind::count, "1", "", "GPUs that divide the layers", "2", kMaxGpus},
    {"compute", "intra_site_bandwidth", Kind::rate, "", "communication inside a site takes no time",
     "of one GPU of a site, each way", "\"450GBps\""},
    {"compute", "gpu_memory", Kind::size, "", "memory is not checked", "of one GPU", "\"80GiB\""},
    {"compute", "activation_checkpointing", Kind::yes_no, "false", "",
     "keep only the input of each layer, and compute the layer again in the backward pass", "true"},
    {"compute", "outer_state_on", Kind::choice, "\"device\"", "",
     "where the outer optimiser's anchor and momentum are kept", "\"host\""},

    {"compute", "step_variation", Kind::share, "", "every step takes its mean",
     "coefficient of variation of a step's time, log-normal", "0.1"},
    {"compute", "straggler_share", Kind::share, "", "no stragglers", "share of the steps that take longer",
     "0.01"},
    {"compute", "straggler_factor", Kind::factor, "5", "", "how many times as long such a step takes", "5"},
    {"compute", "draw_samples", Kind::yes_no, "false", "",
     "draw every step from the profile's samples, instead of their median", "true"},

    {"platform", "file", Kind::text, "", "equal sites",
     "platform file with named sites and paths, relative to this file",
     "\"../../platforms/eight-regions.toml\""},
    {"platform", "preset", Kind::choice, "", "file, or equal sites",
     "consumer: 100 Mb/s down, 20 Mb/s up, 15 ms; two-continents: 10 Gb/s, 5 ms, and 10 Gb/s, 40 ms between",
     "\"two-continents\""},
    {"platform", "sites", Kind::count, "", "all sites of the file",
     "number of sites; with file: its first ones, or as many drawn like them with generate", "4", kMaxSites},
    {"platform", "generate", Kind::yes_no, "false", "",
     "draw the sites at random, each like one of the file's, by the scenario's seed", "true"},
    {"platform", "rate_spread", Kind::share, "0.2", "",
     "with generate: standard deviation of the logarithm of each drawn rate", "0.2"},
    {"platform", "gateways", Kind::count, "1", "",
     "machines that carry a site's traffic, each with the rates of the file", "4", 4096},
    {"platform", "trace", Kind::text, "", "rates and latencies stay as they are",
     "CSV of rates and latencies over time, relative to this file", "\"../data/link-trace-example.csv\""},
    {"platform", "trace_period", Kind::duration, "", "the trace happens once",
     "time after which the trace starts again", "\"24h\""},
    {"platform", "bandwidth", Kind::rate, "", "uplink and downlink are given", "of each site, up and down",
     "\"1Gbps\""},
    {"platform", "uplink", Kind::rate, "", "bandwidth", "of each site, where up and down differ",
     "\"500Mbps\""},
    {"platform", "downlink", Kind::rate, "", "bandwidth", "of each site, where up and down differ",
     "\"1Gbps\""},
    {"platform", "latency", Kind::latency, "", "from the file", "one way, between two sites", "\"25ms\""},

    {"network_model", "bandwidth_efficiency", Kind::share, "1.0", "",
     "share of every link rate that payload gets", "0.956"},
    {"network_model", "background_share", Kind::share, "", "no other traffic",
     "share of every link that other traffic takes, all the time", "0.2", 0.99},
    {"network_model", "latency_factor", Kind::multiple, "1.0", "", "on every latency", "1.1", 1e3},
    {"network_model", "jitter", Kind::latency, "\"0ms\"", "",
     "every flow's latency grows by a uniform draw between 0 and this", "\"5ms\""},
    {"network_model", "call_overhead", Kind::latency, "\"0ms\"", "",
     "at each site before each call of a collective", "\"1ms\""},
    {"network_model", "streams", Kind::count, "1", "", "TCP connections that one flow uses", "16", 65536},
    {"network_model", "tcp_window", Kind::size, "", "windows do not limit",
     "largest window of one connection: a flow gets at most streams x window / round trip", "\"16MiB\""},
    {"network_model", "loss_rate", Kind::share, "", "no loss",
     "share of segments lost: a flow gets at most streams x segment / round trip x sqrt(3 / 2p)", "0.0001"},
    {"network_model", "segment_size", Kind::size, "\"1460B\"", "", "of TCP, with loss_rate", "\"1460B\""},
    {"network_model", "initial_window", Kind::size, "", "no slow start",
     "window that a connection starts with, doubled every round trip", "\"14600B\""},
    {"network_model", "idle_restart", Kind::yes_no, "false", "",
     "a connection that was silent for a retransmission time-out starts slowly again", "true"},
    {"network_model", "ring_model", Kind::choice, "\"stepwise\"", "",
     "a ring's chunks as flows one after another, or all bytes of a hop as one fluid flow", "\"fluid\""},

    {"traffic", "data_site", Kind::text, "", "every site has its own data",
     "the site that holds the data set; the others read it while they train", "\"site-0\""},
    {"traffic", "data_bytes_per_token", Kind::count, "4", "", "bytes read for one token, with data_site", "4",
     1e6},
    {"traffic", "checkpoint_site", Kind::text, "", "no checkpoint leaves its site",
     "the site to which all others upload their training state", "\"site-0\""},
    {"traffic", "checkpoint_rounds", Kind::count, "1", "", "rounds from one checkpoint to the next", "100",
     1e12},
    {"traffic", "rejoin_site", Kind::text, "", "no site is lost",
     "a site that comes back without its training state and fetches it", "\"site-1\""},
    {"traffic", "rejoin_rounds", Kind::count, "1", "", "rounds from one such return to the next", "1000",
     1e12},

    {"prices", "file", Kind::text, "", "prices given here, or none", "price file, relative to this file",
     "\"../data/prices-example.toml\""},
    {"prices", "pricing", Kind::choice, "\"on_demand\"", "", "which of the file's GPU prices to pay",
     "\"spot\""},
    {"prices", "gpu_hour", Kind::money, "", "from the file", "one GPU for one hour", "\"2.50USD\""},
    {"prices", "egress_per_gb", Kind::money, "", "from the file, or nothing",
     "10⁹ bytes that a site sends to another", "\"0.08USD\""},
    {"prices", "port_month", Kind::money, "", "from the file, or nothing",
     "a site's dedicated links for one month, every month begun", "\"1600USD\""},
    {"prices", "kwh", Kind::money, "", "from the file, or in the GPU's price", "electricity, with [energy]",
     "\"0.12USD\""},
    {"prices", "as_of", Kind::text, "", "from the file, or not stated", "the day of the prices",
     "\"2026-01-15\""},

    {"energy", "gpu_power", Kind::power, "", "energy is not computed", "what the board of one busy GPU draws",
     "\"700W\""},
    {"energy", "idle_share", Kind::share, "", "", "share of gpu_power that a waiting GPU draws", "0.2"},
    {"energy", "pue", Kind::factor, "1.0", "",
     "power usage effectiveness: what the building draws ÷ what the GPUs draw", "1.2"},

    {"quality", "model", Kind::choice, "", "no quality in the answer, unless file",
     "what predicts perplexity", "\"paper-table\""},
    {"quality", "file", Kind::text, "", "model, or no quality in the answer",
     "your own table of measured perplexities, relative to this file", "\"../data/paper_exp1.csv\""},

    {"failures", "site_mtbf", Kind::duration, "", "sites do not fail",
     "mean time between failures of one site, with all of its nodes", "\"7d\""},
    {"failures", "link_mtbf", Kind::duration, "", "links do not fail",
     "mean time between failures of one site's link", "\"30d\""},
    {"failures", "preemptions_per_day", Kind::multiple, "", "no site is taken away",
     "of one site that is rented as spot; each costs what a failure costs", "0.5", 1e4},
    {"failures", "detection_time", Kind::latency, "\"30s\"", "", "until a failure is noticed", "\"30s\""},
    {"failures", "restart_time", Kind::latency, "\"10min\"", "",
     "of a site, until it can take part again but for its state", "\"10min\""},
    {"failures", "link_repair", Kind::latency, "\"10min\"", "", "of a link that failed", "\"1h\""},
    {"failures", "links_stay_dead", Kind::yes_no, "false", "", "a link that fails is never repaired", "true"},
    {"failures", "checkpoint_rounds", Kind::count, "", "Daly's interval",
     "rounds from one checkpoint to the next", "10", 1e12},
    {"failures", "checkpoint_time", Kind::duration, "", "Daly's interval",
     "work from one checkpoint to the next, to the nearest round", "\"1h\""},
    {"failures", "checkpoint_cost", Kind::latency, "", "from storage_bandwidth",
     "that all sites stop for a checkpoint", "\"20s\""},
    {"failures", "storage_bandwidth", Kind::rate, "", "checkpoint_cost is given",
     "of each site, to which it writes its training state", "\"2GBps\""},
    {"failures", "policy", Kind::choice, "\"wait\"", "",
     "wait for a failed site and start again from the checkpoint, or drop it until it is back", "\"drop\""},
    {"failures", "timeout", Kind::latency, "", "the recommended one",
     "that others wait for a site, with policy = \"drop\"", "\"2min\""},
    {"failures", "samples", Kind::count, "1000", "", "runs drawn at random", "1000", 1e6},

    {"trainer", "learning_rate", Kind::multiple, "0.01", "",
     "of the inner AdamW, at the base width and depth (CompleteP scales it)", "0.01", 10},
    {"trainer", "warmup_steps", Kind::count, "0", "",
     "optimiser steps until the learning rate is reached; constant after them", "160", 1e9, 0},
    {"trainer", "weight_decay", Kind::multiple, "", "none", "of the inner AdamW", "0.1", 10},
    {"trainer", "clip_norm", Kind::multiple, "", "no clipping",
     "largest norm of a site's gradients, before each optimiser step", "1.0", 1e9},
    {"trainer", "balance_weight", Kind::multiple, "", "no load-balancing loss",
     "of the load-balancing loss, added to the cross-entropy", "0.01", 1e3},
    {"trainer", "restart_warmup_steps", Kind::count, "", "local_steps",
     "steps in which the rate of an expert that came from another site rises again", "32", 1e9, 0},
    {"trainer", "outer_learning_rate", Kind::multiple, "", "0.7 for nesterov, 0.1 for adam and yogi",
     "of the outer optimiser", "0.7", 10},
    {"trainer", "outer_momentum", Kind::share, "0.9", "", "of the outer Nesterov step", "0.9", 0.9999},
    {"trainer", "kept_share", Kind::share, "0.5", "",
     "what a site keeps of its own progress in a fragment that arrives while it trains", "0.5", 0.9999},
    {"trainer", "data", Kind::text, "", "a synthetic Markov chain",
     "token ids in .bin (uint16, or uint32 beyond 65,536 tokens) or .npy, relative to this file",
     "\"corpus.bin\""},
    {"trainer", "validation_sequences", Kind::count, "32", "",
     "sequences at the end of the data that are kept for validation", "256", 1e9, 0},
    {"trainer", "validation_rounds", Kind::count, "", "after the last round only",
     "rounds from one validation to the next", "10", 1e12},
    {"trainer", "checkpoint_rounds", Kind::count, "1", "",
     "rounds from one checkpoint to the next, with --checkpoints", "10", 1e12},
    {"trainer", "device", Kind::choice, "\"auto\"", "", "cuda where there is a GPU, else cpu", "\"cpu\""},
    {"trainer", "dtype", Kind::choice, "", "bf16 with fp32 masters on a GPU, fp32 on a CPU",
     "of weights and activations in forward and backward", "\"fp32\""},
    {"trainer", "timeout", Kind::duration, "\"5min\"", "",
     "how long a site waits for another before it gives it up for lost", "\"30s\""},
};

constexpr Key kPlatformFileKeys[] = {
    {"", "name", Kind::text, "", "", "of the platform", "\"eight-regions\""},
    {"", "source", Kind::text, "", "", "where the numbers come from, in one sentence",
     "\"iperf3 between our sites, 2025-03-01\""},
    {"", "paths_csv", Kind::text, "", "no measurements", "measured paths, relative to this file",
     "\"eight-regions.csv\""},

    {"site", "name", Kind::text, "", "", "of the site, as in the paths", "\"paris\""},
    {"site", "uplink", Kind::rate, "", "the largest measured rate out of the site", "all that the site sends",
     "\"10Gbps\""},
    {"site", "downlink", Kind::rate, "", "the largest measured rate into the site",
     "all that the site receives", "\"10Gbps\""},

    {"site", "region", Kind::text, "", "no backbone is shared", "whose backbones the site shares",
     "\"europe\""},
    {"site", "compute_factor", Kind::multiple, "1.0", "",
     "a step takes so many times as long here as on the scenario's GPU", "1.5", 1000},

    {"backbone", "from", Kind::text, "", "", "a region", "\"europe\""},
    {"backbone", "to", Kind::text, "", "", "another region", "\"america\""},
    {"backbone", "bandwidth", Kind::rate, "", "",
     "shared by all paths from the one region to the other, and as much back", "\"10Gbps\""},

    {"path", "from", Kind::text, "", "", "the sending site", "\"paris\""},
    {"path", "to", Kind::text, "", "", "the receiving site", "\"tokyo\""},
    {"path", "latency", Kind::latency, "", "", "one way", "\"110ms\""},
    {"path", "bandwidth", Kind::rate, "", "the measured rate, else only the sites' links count",
     "of this path alone", "\"5Gbps\""},

    {"default_path", "latency", Kind::latency, "", "", "one way, of every path that nothing else describes",
     "\"25ms\""},
    {"default_path", "bandwidth", Kind::rate, "", "only the sites' links count", "of every such path alone",
     "\"1Gbps\""},
};

constexpr Key kPriceFileKeys[] = {
    {"", "name", Kind::text, "", "", "of the list", "\"our contract\""},
    {"", "as_of", Kind::text, "", "", "the day of the prices", "\"2026-01-15\""},
    {"", "source", Kind::text, "", "", "where the prices come from, in one sentence",
     "\"contract of our site\""},

    {"gpu", "sites", Kind::text, "", "every site that no other [[gpu]] names",
     "how the names of its sites begin", "\"aws:\""},
    {"gpu", "on_demand", Kind::money, "", "not on offer", "one GPU for one hour, rented at will",
     "\"4.00USD\""},
    {"gpu", "spot", Kind::money, "", "not on offer", "one GPU for one hour that may be taken away",
     "\"1.60USD\""},
    {"gpu", "owned", Kind::money, "", "not on offer",
     "one GPU of one's own for one hour, depreciation and housing", "\"1.20USD\""},

    {"egress", "sites", Kind::text, "", "every site that no other [[egress]] names",
     "how the names of its sites begin", "\"aws:\""},
    {"egress", "up_to", Kind::size, "", "all beyond the tier before",
     "end of the tier, in bytes of one month", "\"10TB\""},
    {"egress", "per_gb", Kind::money, "", "", "10⁹ bytes that a site sends to another", "\"0.09USD\""},

    {"port", "sites", Kind::text, "", "every site that no other [[port]] names",
     "how the names of its sites begin", "\"aws:\""},
    {"port", "month", Kind::money, "", "", "dedicated links of one site for one month", "\"1600USD\""},

    {"electricity", "sites", Kind::text, "", "every site that no other [[electricity]] names",
     "how the names of its sites begin", "\"paris\""},
    {"electricity", "kwh", Kind::money, "", "", "one kWh, where GPUs are owned", "\"0.12USD\""},
};

}  // namespace

std::span<const Key> scenario_keys() { return kScenarioKeys; }
std::span<const Key> platform_file_keys() { return kPlatformFileKeys; }
std::span<const Key> price_file_keys() { return kPriceFileKeys; }

bool is_table(std::span<const Key> keys, std::string_view name) {
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) { return key.table == name; });
}

std::vector<std::string> choices(const Key& key) {
  std::vector<std::string> names;
  if (key.name == "preset" && key.table == "model") {
    for (const auto& shape : costmodel::presets()) names.push_back(shape.name);
  } else if (key.name == "method") {
    for (const auto& method : costmodel::methods()) names.emplace_back(method.name);
  } else if (key.name == "pricing") {
    names = {"on_demand", "spot", "owned"};
  } else if (key.table == "quality") {
    names = {"paper-table", "diloco-scaling-law"};
  } else if (key.name == "placement") {
    names = {"fixed", "random", "affinity"};
  } else if (key.name == "collective") {
    names = {"ring", "direct", "hierarchical", "recursive"};
  } else if (key.name == "router") {
    names = {"uniform", "hash", "expert_choice"};
  } else if (key.name == "outer_state_on") {
    names = {"device", "host"};
  } else if (key.name == "outer_optimizer") {
    names = {"nesterov", "adam", "yogi", "average", "local_adamw"};
  } else if (key.table == "trainer" && key.name == "device") {
    names = {"auto", "cpu", "cuda"};
  } else if (key.table == "trainer" && key.name == "dtype") {
    names = {"fp32", "bf16"};
  } else if (key.name == "kind") {
    names = {"top_k"};
  } else if (key.name == "ring_model") {
    names = {"stepwise", "fluid"};
  } else if (key.name == "policy") {
    names = {"wait", "drop"};
  } else if (key.name == "preset" && key.table == "platform") {
    names = {"consumer", "two-continents"};
  } else if (key.name == "granularity") {
    names = {"flat", "tensor"};
  } else if (key.name == "ring_order") {
    names = {"given", "best"};
  } else if (key.name == "payload_dtype") {
    names = {"fp32", "bf16", "fp16", "fp8", "int8", "int4", "int2"};
  }
  return names;
}

std::string expected_value(const Key& key) {
  const auto positive = [](const char* what, Quantity quantity) {
    return fmt::format("{} above zero in quotes, with a unit ({})", what, known_units(quantity));
  };
  switch (key.kind) {
    case Kind::text:
      return "a text in quotes";
    case Kind::choice:
      return "one of \"" + joined(choices(key), "\", \"") + '"';
    case Kind::count:
      if (key.max == 0) return "0, the only value that is available";
      return key.max >= 1e12 ? fmt::format("a whole number of at least {:.0f}", key.min)
                             : fmt::format("a whole number from {:.0f} to {:.0f}", key.min, key.max);
    case Kind::yes_no:
      return "true or false";
    case Kind::rate:
      return positive("a data rate", Quantity::rate);
    case Kind::latency:
      return fmt::format("a time of zero or more in quotes, with a unit ({})",
                         known_units(Quantity::duration));
    case Kind::duration:
      return positive("a time", Quantity::duration);
    case Kind::size:
      return positive("a size", Quantity::size);
    case Kind::flop_rate:
      return positive("a FLOP rate", Quantity::flop_rate);
    case Kind::share:
      return key.max < 1 ? fmt::format("a number above 0 and up to {}", key.max)
                         : "a number above 0 and up to 1";
    case Kind::power:
      return positive("a power", Quantity::power);
    case Kind::money:
      return "a price of zero or more in quotes, with a currency of three capital letters";
    case Kind::factor:
      return "a number of at least 1";
    case Kind::multiple:
      return fmt::format("a number above 0 and up to {:.0f}", key.max);
  }
  return "";
}

std::string dotted(std::string_view table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

std::string example_line(const Key& key) { return fmt::format("{} = {}", key.name, key.example); }

}  // namespace fomoe::scenario
