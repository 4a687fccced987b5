// Test of the example values that the program proposes.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;

TEST_CASE("the reader accepts every example value in the table of keys") {
  // The keys are tried in the order of the table; alternatives are tried separately.
  const std::string keys = run_in(source_dir(), "fomoe list keys").out;
  std::istringstream lines(keys.substr(0, keys.find("Platform file")));
  std::string table;
  int tried = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) table = line.substr(1, line.size() - 2) + '.';
    const std::size_t equals = line.find(" = ");
    if (line.starts_with(" ") || equals == std::string::npos) continue;
    std::string key = table + line.substr(0, equals);
    if (key == "[path].from" || key == "[path].to") continue;  // in the name of the path's other keys
    if (key.starts_with("[path].")) key = "path.site-0.site-1." + key.substr(std::string("[path].").size());
    if (key == "compute.profile" || key == "compute.micro_batch_sequences" || key == "compute.mfu" ||
        key == "compute.zero_stage" || key == "compute.peak_flops" || key == "platform.file" ||
        key == "strategy.routing_counts" || key.starts_with("strategy.compression.") ||
        key == "compute.draw_samples" || key == "compute.dtype" || key == "model.dense_parameters" ||
        key == "model.expert_parameters" || key == "model.safetensors" || key == "model.shape" ||
        key.starts_with("[site]")) {
      continue;  // these keys need other keys or a file
    }
    const std::string partners =
        key == "traffic.data_bytes_per_token" ? " --set traffic.data_site=site-0"
        : key == "traffic.checkpoint_rounds"  ? " --set traffic.checkpoint_site=site-0"
        : key == "traffic.rejoin_rounds"      ? " --set traffic.rejoin_site=site-0"
        : key == "prices.pricing"             ? " --set prices.file=../data/prices-example.toml"
        : key == "platform.store.million_requests" || key == "platform.store.egress_per_gb"
            ? " --set prices.gpu_hour=2.50USD"
        : key.starts_with("prices.") && key != "prices.file" ? " --set prices.gpu_hour=2.50USD"
        : key == "failures.timeout" || key == "failures.policy"
            ? " --set failures.policy=drop --set failures.checkpoint_cost=20s --set strategy.expert_overlap=2"
        : key.starts_with("failures.") && key != "failures.checkpoint_cost" &&
                key != "failures.storage_bandwidth"
            ? " --set failures.checkpoint_cost=20s"
        : key == "strategy.straggler_timeout" ? " --set strategy.quorum=1"
        : key == "model.d_ffn"                ? " --set model.experts=0 --set strategy.method=diloco"
        : key == "quality.interpolate"        ? " --set quality.model=paper-table"
        : key == "quality.mixtures"           ? " --set quality.model=published"
        : key == "compute.checkpoint_every"   ? " --set compute.activation_checkpointing=true"
        : key == "compute.virtual_stages"     ? " --set compute.pipeline_parallel=2"
        : key == "compute.logits" || key == "compute.selective_checkpointing"
            ? " --set compute.stack=megatron"
        : key == "workload.batch"               ? " --set compute.accelerator=H100-SXM --set compute.mfu=0.4"
        : key == "compute.kernel_efficiency"    ? " --set compute.accelerator=H100-SXM"
        : key.starts_with("compute.straggler")  ? " --set compute.straggler_share=0.01"
        : key == "platform.use_sites"           ? " --set platform.file=../../platforms/eight-regions.toml"
        : key == "model.multi_token_prediction" ? " --set model.hf_config=../models/deepseek-v3.json"
        : key == "platform.generate" || key == "platform.rate_spread"
            ? " --set platform.file=../../platforms/eight-regions.toml --set platform.generate=true"
        : key == "platform.trace_period" || key == "platform.trace_start"
            ? " --set platform.trace=../data/link-trace-example.csv"
        : key.starts_with("energy.") ? " --set energy.gpu_power=700W --set energy.idle_share=0.2"
                                     : "";
    CAPTURE(line);
    const Ran ran = run_in(source_dir(), "fomoe cost experiments/scenarios/two-sites.toml" + partners +
                                             " --set '" + key + "=" + line.substr(equals + 3) + "'");
    CHECK_MESSAGE(ran.exit_status == 0, ran.err);
    ++tried;
  }
  CHECK(tried > 20);
}
