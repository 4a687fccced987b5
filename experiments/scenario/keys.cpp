#include "experiments/scenario/keys.hpp"

#include <fmt/format.h>

#include "costmodel/methods/method.hpp"
#include "costmodel/model_shape.hpp"
#include "experiments/scenario/suggest.hpp"
#include "experiments/scenario/units.hpp"

namespace fomoe::scenario {
namespace {

// Bounds that keep every product of shape keys inside 64 bits (the reader also checks the total).
constexpr double kMaxWidth = 1e6, kMaxLayers = 1e5, kMaxExperts = 1e6, kMaxVocabulary = 1e8, kMaxSites = 1024;

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
    {"strategy", "reshuffle_rounds", Kind::count, "1", "",
     "a random placement is drawn anew at the end of every T-th round", "4", 1e12},
    {"strategy", "skip_token", Kind::yes_no, "false", "",
     "drop what a token would send to experts of other sites", "true"},
    {"strategy", "overlap_steps", Kind::count, "0", "",
     "steps that a synchronisation may hide behind; only 0 is available", "0", 0, 0},
    {"strategy", "collective", Kind::choice, "\"ring\"", "", "how a synchronisation is sent", "\"ring\""},
    {"strategy", "ring_order", Kind::choice, "\"best\"", "",
     "sites in a ring as given, or so that the slowest hop (latency + chunk / rate) is fastest", "\"given\""},
    {"strategy", "bucket_bytes", Kind::size, "", "one call for everything",
     "most that one call of a collective sends; calls of a synchronisation follow each other", "\"25MiB\""},
    {"strategy", "payload_dtype", Kind::choice, "\"bf16\"", "", "number format on the wire", "\"bf16\""},

    {"compute", "profile", Kind::text, "", "not measured",
     "step profile written by `fomoe-train profile`, relative to this file",
     "\"../profiles/this-machine.json\""},
    {"compute", "micro_batch_sequences", Kind::count, "", "the largest micro-batch in the profile",
     "sequences of one forward and backward, with profile", "8", 1e9},
    {"compute", "step_time", Kind::duration, "", "not given",
     "one optimiser step of one site, whatever the batch", "\"420ms\""},
    {"compute", "peak_flops", Kind::flop_rate, "", "not assumed", "of one GPU, with mfu", "\"989TFLOPS\""},
    {"compute", "mfu", Kind::share, "", "not assumed", "share of peak_flops that training reaches", "0.4"},
    {"compute", "gpus_per_site", Kind::count, "1", "", "GPUs of a site, with peak_flops", "8", 1e6},

    {"platform", "file", Kind::text, "", "equal sites",
     "platform file with named sites and paths, relative to this file",
     "\"../../platforms/eight-regions.toml\""},
    {"platform", "sites", Kind::count, "", "all sites of the file",
     "number of sites; with file: its first ones", "4", kMaxSites},
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
    {"network_model", "latency_factor", Kind::factor, "1.0", "", "on every latency", "1.1", 1e3},
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

}  // namespace

std::span<const Key> scenario_keys() { return kScenarioKeys; }
std::span<const Key> platform_file_keys() { return kPlatformFileKeys; }

std::vector<std::string> choices(const Key& key) {
  std::vector<std::string> names;
  if (key.name == "preset") {
    for (const auto& shape : costmodel::presets()) names.push_back(shape.name);
  } else if (key.name == "method") {
    for (const auto& method : costmodel::methods()) names.emplace_back(method.name);
  } else if (key.name == "placement") {
    names = {"fixed", "random"};
  } else if (key.name == "collective") {
    names = {"ring", "direct"};
  } else if (key.name == "ring_model") {
    names = {"stepwise", "fluid"};
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
    case Kind::flop_rate:
      return positive("a FLOP rate", Quantity::flop_rate);
    case Kind::share:
      return key.max < 1 ? fmt::format("a number above 0 and up to {}", key.max)
                         : "a number above 0 and up to 1";
    case Kind::size:
      return positive("a size", Quantity::size);
    case Kind::factor:
      return fmt::format("a number above 0 and up to {:.0f}", key.max);
  }
  return "";
}

std::string dotted(std::string_view table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

std::string example_line(const Key& key) { return fmt::format("{} = {}", key.name, key.example); }

}  // namespace fomoe::scenario
