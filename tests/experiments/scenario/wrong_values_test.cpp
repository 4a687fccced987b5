// Tests of mistakes in the names and values of single keys.
#include <doctest/doctest.h>

#include "tests/experiments/scenario/wrong_scenarios.hpp"

using namespace fomoe::tests;

TEST_CASE("wrong names in a scenario") {
  check_refused({
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
       ":10: strategy.local_steps: got a duplicate name; expected each key and table once; for example "
       "delete one of the two"},
      {"", "[model]\n", "",
       ":17: model: got a duplicate name; expected each key and table once; for example delete one of the "
       "two"},
      // Names of models, methods and other things
      {"\"small\"", "\"smal\"", "",
       ":3: model.preset: got \"smal\"; expected one of \"small\", \"medium\", \"large\", \"xl\", \"xxl\"; "
       "for "
       "example preset = \"medium\"; did you mean \"small\"?"},
      {"local_steps = 4", "placement = \"affinity\"", "",
       ":9: strategy.placement: got \"affinity\" without routing_counts; expected the key routing_counts, "
       "which names a CSV file with the columns layer,expert,site,count; for example routing_counts = "
       "\"routing.csv\""},
      {"local_steps = 4", "placement = \"affine\"", "",
       ":9: strategy.placement: got \"affine\"; expected one of \"fixed\", \"random\", \"affinity\", "
       "\"rotated\"; for example placement = \"fixed\""},
      {"local_steps = 4", "outer_optimizer = \"adams\"", "",
       ":9: strategy.outer_optimizer: got \"adams\"; expected one of \"nesterov\", \"adam\", \"yogi\", "
       "\"average\", \"local_adamw\"; for example outer_optimizer = \"nesterov\"; did you mean \"adam\"?"},
      {"local_steps = 4", "collective = \"rign\"", "",
       ":9: strategy.collective: got \"rign\"; expected one of \"ring\", \"direct\", \"hierarchical\", "
       "\"recursive\", \"store\", \"chain\"; for example collective = \"ring\"; did you mean \"ring\"?"},
      {"local_steps = 4", "payload_dtype = \"int3\"", "",
       ":9: strategy.payload_dtype: got \"int3\"; expected one of \"fp32\", \"bf16\", "
       "\"fp16\", \"fp8\", \"int8\", \"int4\", \"int2\"; for example payload_dtype = \"bf16\"; did you mean "
       "\"int8\"?"},
  });
}

TEST_CASE("wrong values in a scenario") {
  check_refused({
      // Values of the wrong kind
      {"local_steps = 4", "local_steps = \"4\"", "",
       ":9: strategy.local_steps: got \"4\"; expected a whole number of at least 1; for example local_steps "
       "= "
       "32"},
      {"local_steps = 4", "local_steps = 0", "",
       ":9: strategy.local_steps: got 0; expected a whole number of at least 1; for example local_steps = "
       "32"},
      {"local_steps = 4", "local_steps = -4", "",
       ":9: strategy.local_steps: got -4; expected a whole number of at least 1; for example local_steps = "
       "32"},
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
       ":9: strategy.overlap_steps: got -1; expected a whole number of at least 0; for example overlap_steps "
       "= "
       "4"},
      {"local_steps = 4", "fragments = 0", "",
       ":9: strategy.fragments: got 0; expected a whole number from 1 to 100000; for example fragments = 4"},
      {"local_steps = 4", "moment1_period = 1001", "",
       ":9: strategy.moment1_period: got 1001; expected a whole number from 1 to 1000; for example "
       "moment1_period = 3"},
      {"local_steps = 4", "moment2_period = 0", "",
       ":9: strategy.moment2_period: got 0; expected a whole number from 1 to 1000; for example "
       "moment2_period "
       "= "
       "6"},
      {"local_steps = 4", "gossip_peers = 0", "",
       ":9: strategy.gossip_peers: got 0; expected a whole number from 1 to 16384; for example gossip_peers "
       "= "
       "1"},
      {"local_steps = 4", "compression = \"top_k\"", "",
       ":9: strategy.compression: got \"top_k\"; expected a table; for example [strategy.compression]"},
      {"local_steps = 4", "compression = { kind = \"top_p\", kept_share = 0.1 }", "",
       ":9: strategy.compression.kind: got \"top_p\"; expected one of \"top_k\"; for example kind = "
       "\"top_k\"; "
       "did you mean \"top_k\"?"},
      {"local_steps = 4", "compression = { kind = \"top_k\", kept_share = 2 }", "",
       ":9: strategy.compression.kept_share: got 2; expected a number above 0 and up to 1, or a percentage; "
       "for example "
       "kept_share "
       "= 0.015625"},
      {"local_steps = 4", "compression = { kind = \"top_k\", kept_share = 0.1, index_bits = 65 }", "",
       ":9: strategy.compression.index_bits: got 65; expected a whole number from 0 to 64; for example "
       "index_bits "
       "= 12"},
      {"", "[network_model]\nbandwidth_efficiency = 1.5\n", "",
       ":18: network_model.bandwidth_efficiency: got 1.5; expected a number above 0 and up to 1, or a "
       "percentage; for example "
       "bandwidth_efficiency = 0.956"},
      {"", "[network_model]\nbackground_share = 1\n", "",
       ":18: network_model.background_share: got 1; expected a number above 0 and up to 0.99, or a "
       "percentage; for example "
       "background_share = 0.2"},
      {"", "[network_model]\nlatency_factor = 0\n", "",
       ":18: network_model.latency_factor: got 0; expected a number above 0 and up to 1000; for example "
       "latency_factor = 1.1"},
      {"", "[network_model]\njitter = 5\n", "",
       ":18: network_model.jitter: got 5 (no unit); expected a time of zero or more in quotes, with a unit "
       "(ns "
       "us "
       "ms s min h d); for example jitter = \"5ms\""},
      {"", "[network_model]\ncall_overhead = \"-1ms\"\n", "",
       ":18: network_model.call_overhead: got \"-1ms\" (negative); expected a time of zero or more in "
       "quotes, "
       "with "
       "a unit (ns us ms s min h d); for example call_overhead = \"1ms\""},
      {"", "[network_model]\nstreams = 0\n", "",
       ":18: network_model.streams: got 0; expected a whole number from 1 to 65536; for example streams = "
       "16"},
      {"", "[network_model]\ntcp_window = \"0B\"\n", "",
       ":18: network_model.tcp_window: got \"0B\" (zero); expected " + kSize + "tcp_window = \"16MiB\""},
      {"", "[network_model]\ncongestion_control = \"bbr\"\nloss_rate = 0.2\n", "",
       ":19: network_model.loss_rate: got 0.2; expected at most 0.15 with congestion_control = \"bbr\"; for "
       "example loss_rate = 0.0001"},
      {"", "[network_model]\nloss_rate = 2\n", "",
       ":18: network_model.loss_rate: got 2; expected a number above 0 and up to 1, or a percentage; for "
       "example loss_rate = "
       "0.0001"},
      {"", "[network_model]\nsegment_size = \"1s\"\n", "",
       ":18: network_model.segment_size: got \"1s\" (a time); expected " + kSize +
           "segment_size = \"1460B\""},
      {"", "[network_model]\ninitial_window = 10\n", "",
       ":18: network_model.initial_window: got 10 (no unit); expected " + kSize +
           "initial_window = \"14600B\""},
      {"", "[network_model]\nreceives_ahead = 0\n", "",
       ":18: network_model.receives_ahead: got 0; expected a whole number from 1 to 1024; for example "
       "receives_ahead = 4"},
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
       ":18: network_model.bandwidth_efficiency: got 0; expected a number above 0 and up to 1, or a "
       "percentage; for example "
       "bandwidth_efficiency = 0.956"},
      {"local_steps = 4", "router = \"hsah\"", "",
       ":9: strategy.router: got \"hsah\"; expected one of \"uniform\", \"hash\", \"expert_choice\"; for "
       "example router = "
       "\"uniform\"; did you mean \"hash\"?"},
      {"local_steps = 4", "capacity_factor = 0", "",
       ":9: strategy.capacity_factor: got 0; expected a number above 0 and up to 1000; for example "
       "capacity_factor = 1.25"},
      {"local_steps = 4", "max_sites_per_token = 0", "",
       ":9: strategy.max_sites_per_token: got 0; expected a whole number from 1 to 16384; for example "
       "max_sites_per_token = 4"},
      {"local_steps = 4", "micro_batches = 0", "",
       ":9: strategy.micro_batches: got 0; expected a whole number from 1 to 4096; for example micro_batches "
       "= "
       "16"},
      {"local_steps = 4", "module_levels = 0", "",
       ":9: strategy.module_levels: got 0; expected a whole number from 1 to 1000; for example module_levels "
       "= "
       "2"},
      {"local_steps = 4", "module_choices = 1.5", "",
       ":9: strategy.module_choices: got 1.5; expected a whole number from 1 to 16384; for example "
       "module_choices = 4"},
      {"local_steps = 4", "secure_aggregation = 1", "",
       ":9: strategy.secure_aggregation: got 1; expected true or false; for example secure_aggregation = "
       "true"},
      {"local_steps = 4", "regions = 0", "",
       ":9: strategy.regions: got 0; expected a whole number from 1 to 16384; for example regions = 2"},
      {"local_steps = 4", "collective = \"hierarchical\"\nregions = 3", "",
       ":10: strategy.regions: got 3; expected at least 2 regions that divide the 4 sites into equal groups, "
       "as collective = \"hierarchical\" requires; for example 2"},
      {"local_steps = 4", "secure_aggregation = true\npayload_dtype = \"bf16\"", "",
       ":10: strategy.payload_dtype: got both payload_dtype and secure_aggregation; expected no "
       "payload_dtype, because masked payloads are 32-bit integers; for example payload_dtype = \"bf16\""},
      // Quantities
      {"\"1Gbps\"", "1000000000", "", ":15: platform.bandwidth: got 1000000000 (no unit); expected " + kRate},
      {"\"1Gbps\"", "\"1000000000\"", "",
       ":15: platform.bandwidth: got \"1000000000\" (no unit); expected " + kRate},
      {"\"1Gbps\"", "\"50ms\"", "", ":15: platform.bandwidth: got \"50ms\" (a time); expected " + kRate},
      {"\"1Gbps\"", "\"2GiB\"", "", ":15: platform.bandwidth: got \"2GiB\" (a size); expected " + kRate},
      {"\"1Gbps\"", "\"-1Gbps\"", "",
       ":15: platform.bandwidth: got \"-1Gbps\" (negative); expected " + kRate},
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
      {"\"25ms\"", "\"1Gbps\"", "",
       ":16: platform.latency: got \"1Gbps\" (a data rate); expected " + kLatency},
      {"\"25ms\"", "25", "", ":16: platform.latency: got 25 (no unit); expected " + kLatency},
      {"\"25ms\"", "\"-25ms\"", "", ":16: platform.latency: got \"-25ms\" (negative); expected " + kLatency},
      {"\"420ms\"", "\"0s\"", "", ":12: compute.step_time: got \"0s\" (zero); expected " + kStepTime},
  });
}

TEST_CASE("common mistakes of new users: other programs' names, missing quotes, percentages") {
  check_refused({
      // Other programs' names, and a key under the wrong heading
      {"global_batch_sequences = 16", "batch_size = 16", "",
       ":6: workload.batch_size: got an unknown key; expected one of tokens, global_batch_sequences, "
       "global_batch_tokens, batch; for example global_batch_sequences = 1024; did you mean "
       "global_batch_sequences?"},
      {"tokens = 1e6", "bandwidth = \"1Gbps\"", "",
       ":5: workload.bandwidth: got an unknown key; expected one of tokens, global_batch_sequences, "
       "global_batch_tokens, batch; for example tokens = 1.34e9; did you mean bandwidth in [platform]?"},
      {"", "", "--set bandwidth=1Gbps",
       "--set bandwidth=1Gbps: bandwidth: got an unknown key; expected one of name, description, seed; for "
       "example --set name='four sites at 1 Gb/s'; did you mean platform.bandwidth?"},
      // Missing quotes
      {"\"1Gbps\"", "1Gbps", "", ":15: platform.bandwidth: got 1Gbps without quotes; expected " + kRate},
      {"\"fomoe\"", "fomoe", "",
       ":8: strategy.method: got fomoe without quotes; expected " + kMethods +
           "; for example method = \"fomoe\""},
      {"1e6", "20B  # of C4", "",
       ":5: workload.tokens: got 20B without quotes; expected a whole number of at least 1; for example "
       "tokens "
       "= 1.34e9"},
      {"", "[network_model]\nbandwidth_efficiency = 95%\n", "",
       ":18: network_model.bandwidth_efficiency: got 95% without quotes; expected a number above 0 and up to "
       "1, "
       "or a percentage; for example bandwidth_efficiency = \"95%\""},
      // Percentages
      {"", "[network_model]\nbandwidth_efficiency = 95\n", "",
       ":18: network_model.bandwidth_efficiency: got 95; expected a number above 0 and up to 1, or a "
       "percentage; for example bandwidth_efficiency = 0.956; did you mean 0.95?"},
      {"", "[network_model]\nbandwidth_efficiency = \"105%\"\n", "",
       ":18: network_model.bandwidth_efficiency: got \"105%\"; expected a number above 0 and up to 1, or a "
       "percentage; for example bandwidth_efficiency = 0.956"},
      {"", "[network_model]\nbandwidth_efficiency = \"0.9\"\n", "",
       ":18: network_model.bandwidth_efficiency: got \"0.9\" (a string, not a number); expected a number "
       "above 0 and up to 1, or a percentage; for example bandwidth_efficiency = 0.956"},
      // Values that a calibration supplies
      {"", "[calibration]\nterms = \"latency_factor\"\n", "",
       ":18: calibration.terms: got \"latency_factor\"; expected a list of strings, in brackets; for example "
       "terms = [\"latency_factor\"]"},
      {"", "[calibration]\nterms = [\"speed\"]\n", "",
       ":18: calibration.terms: got \"speed\"; expected keys of network_model; for example terms = "
       "[\"latency_factor\"]"},
  });
}

TEST_CASE("the valid scenario is read without changes") {
  const Folder folder;
  write_all(folder / "s.toml", kGood);
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output answer.json");
  CHECK(ran.exit_status == 0);
  CHECK(std::filesystem::exists(folder / "answer.json"));
}

TEST_CASE("text that is not TOML is refused with its line") {
  const Folder folder;
  write_all(folder / "s.toml", "seed = 1\n[model\npreset = \"small\"\n");
  const Ran ran = run_in(folder.path(), "fomoe cost s.toml");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.starts_with("s.toml:2: TOML: got "));
  CHECK(ran.err.ends_with("; expected a file in TOML; for example local_steps = 32\n"));
}
