// Tests paced runs of models that fomoe-train cannot train.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("a paced run of a model from Hugging Face sends the bytes that the simulator predicts") {
  const Folder folder;
  std::ofstream(folder / "config.json")
      << R"({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "vocab_size": 512, "hidden_size": 64,
             "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 128, "hidden_act": "silu",
             "tie_word_embeddings": false})";
  std::ofstream(folder / "mixtral.toml") << R"(
[model]
hf_config = "config.json"
sequence_length = 64
[workload]
tokens = 65536
global_batch_sequences = 64
[strategy]
method = "fomoe"
local_steps = 4
expert_overlap = 1
placement = "random"
payload_dtype = "bf16"
[compute]
step_time = "5ms"
[platform]
sites = 2
bandwidth = "1Gbps"
latency = "1ms"
)";
  const std::string scenario = folder / "mixtral.toml";
  const Ended paced = run({kTrain, "run", scenario, "--local", "--paced", "--output", folder / "run.json"});
  CAPTURE(paced.said);
  REQUIRE(paced.status == 0);
  REQUIRE(
      run({kPlan, "simulate", scenario, "--rounds", "all", "--output", folder / "simulated.json"}).status ==
      0);
  const json measured = json::parse(content(folder / "run.json")),
             simulated = json::parse(content(folder / "simulated.json"));
  for (std::size_t site = 0; site < 2; ++site) {
    CHECK(measured["sites"][site]["bytes_sent"].get<double>() > 0);
    CHECK(measured["sites"][site]["bytes_sent"] == simulated["sites"][site]["bytes_sent"]);
  }
  const Ended trained = run({kTrain, "run", scenario, "--in-turn"});
  CHECK(trained.status == 2);
  CHECK(trained.said.find("model: got a model of architecture mixtral") != std::string::npos);
  CHECK(trained.said.find("or --paced") != std::string::npos);
}

TEST_CASE("a paced run that no memory holds ends with one sentence") {
  const Folder folder;
  const std::filesystem::path models = std::filesystem::path(FOMOE_SOURCE_DIR) / "experiments/models";
  std::ofstream(folder / "huge.toml")
      << "[model]\nhf_config = \"" << (models / "kimi-k2.json").string() << R"("
sequence_length = 64
[workload]
tokens = 4096
global_batch_sequences = 64
[strategy]
method = "local_sgd"
local_steps = 1
[compute]
step_time = "5ms"
[platform]
sites = 2
bandwidth = "1Gbps"
latency = "1ms"
)";
  const Ended ended = run({kTrain, "run", folder / "huge.toml", "--local", "--paced"});
  CAPTURE(ended.said);
  CHECK(ended.status == 1);
  CHECK(ended.said.find("not enough memory on this machine for a tensor of ") != std::string::npos);
  CHECK(ended.said.find("frame #") == std::string::npos);
}
