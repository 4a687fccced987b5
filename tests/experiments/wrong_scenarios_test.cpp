// Every mistake a user can make in a scenario: exit status 2, the exact message, and no file left behind.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

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
    "one of method, local_steps, expert_overlap, placement, reshuffle_rounds, skip_token, overlap_steps, "
    "collective, "
    "ring_order, bucket_bytes, payload_dtype";
const std::string kTables =
    "one of [model] [workload] [strategy] [compute] [platform] [network_model]; for example [model]";
const std::string kOneCompute = "exactly one of profile, step_time, or peak_flops with mfu";

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
    {"local_steps = 4", "overlap_steps = 2", "",
     ":9: strategy.overlap_steps: got 2; expected 0, the only value that is available; for example "
     "overlap_steps = 0"},
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
    // Names of things
    {"\"small\"", "\"smal\"", "",
     ":3: model.preset: got \"smal\"; expected one of \"small\", \"medium\", \"large\", \"xl\", \"xxl\"; for "
     "example preset = \"medium\"; did you mean \"small\"?"},
    {"local_steps = 4", "placement = \"affinity\"", "",
     ":9: strategy.placement: got \"affinity\" (not available); expected one of \"fixed\", \"random\"; for "
     "example placement = \"fixed\""},
    {"local_steps = 4", "collective = \"rign\"", "",
     ":9: strategy.collective: got \"rign\"; expected one of \"ring\", \"direct\"; for example collective = "
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
    // What is missing
    {"method = \"fomoe\"\n", "", "",
     ":7: strategy.method: got nothing; expected one of \"ddp\", \"diloco\", \"local_adamw\", \"fomoe\"; for "
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
     ":13: compute.mfu: got it beside step_time; expected it only beside peak_flops; for example mfu = 0.4"},
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
     "alone; for example latency = \"25ms\""},
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
     "--set strategy.method=fomo: strategy.method: got \"fomo\"; expected one of \"ddp\", \"diloco\", "
     "\"local_adamw\", \"fomoe\"; "
     "for example --set strategy.method=fomoe; did you mean \"fomoe\"?"},
    {"", "", "--set strategy={method=ddp}",
     "--set strategy={method=ddp}: strategy: got {method=ddp}; expected a TOML value or a bare word; for "
     "example --set strategy.local_steps=64"},
    {"", "", "--set strategy={local_steps=2}",
     "--set strategy={local_steps=2}: strategy: got a table; expected one key at a time; for example --set "
     "strategy.local_steps=64"},
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
       "fomoe: simulat: unknown command; expected one of cost, simulate, compare, list; for example "
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
       "fomoe: fomoe list: got \"metods\"; expected one of methods, models, keys, platforms; for example "
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
