#include "trainer/execution/checkpoint_header.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "experiments/results/json_values.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::trainer {
namespace {

using costmodel::NodeId;
using nlohmann::json;

constexpr const char* kFormat = "fomoe.checkpoint/2";

costmodel::ModelShape shape_from(const json& model) {
  costmodel::ModelShape shape;
  shape.name = model.at("name");
  shape.d_model = model.at("d_model");
  shape.layers = model.at("layers");
  shape.heads = model.at("heads");
  shape.experts = model.at("experts");
  shape.active_experts = model.at("active_experts");
  shape.d_expert = model.at("d_expert");
  shape.vocabulary = model.at("vocabulary");
  shape.sequence_length = model.at("sequence_length");
  if (shape.experts == 0) {
    shape.dense_layers = shape.layers;
    shape.d_ffn = model.at("d_ffn");
  }
  return shape;
}

template <typename Whole>
Whole whole_number(const std::string& text) {
  const auto value = parse_number<Whole>(text);
  if (!value || *value < 0) throw std::runtime_error("got \"" + text + "\"; expected a whole number");
  return *value;
}

std::vector<std::vector<ExpertSteps>> counts_from(const json& layers) {
  std::vector<std::vector<ExpertSteps>> counts;
  for (const json& layer : layers) {
    counts.emplace_back();
    for (const json& expert : layer) counts.back().push_back({expert.at(0), expert.at(1)});
  }
  return counts;
}

void check_experts(const CheckpointHeader& header) {
  const auto layers = static_cast<std::size_t>(header.model.layers);
  if (!header.experts.local.empty() && header.experts.local.size() != layers)
    throw std::runtime_error("the experts of " + std::to_string(header.experts.local.size()) + " layers");
  for (const std::vector<int>& layer : header.experts.local) {
    for (const int expert : layer) {
      if (expert < 0 || expert >= header.model.experts)
        throw std::runtime_error("expert " + std::to_string(expert));
    }
  }
  if (header.expert_steps.size() != layers) throw std::runtime_error("no counts of updates for each layer");
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (header.expert_steps[layer].size() !=
        local_experts(header.model, header.experts, static_cast<std::int64_t>(layer)).size())
      throw std::runtime_error("no counts of updates for each expert");
  }
}

CheckpointHeader header_from(const Metadata& metadata) {
  const auto parsed = [&](const char* key) { return json::parse(metadata.at(key)); };
  CheckpointHeader header;
  header.digest = digest_from_json(metadata.at("digest"));
  // Checkpoints of earlier versions also had what a run may change when it goes on.
  std::erase_if(header.digest, [](const auto& entry) {
    return entry.first == "the order of transfers" || entry.first == "the number of steps";
  });
  header.node = whole_number<NodeId>(metadata.at("node"));
  header.nodes = whole_number<NodeId>(metadata.at("nodes"));
  header.rounds = whole_number<std::int64_t>(metadata.at("rounds"));
  header.steps = whole_number<std::int64_t>(metadata.at("steps"));
  header.model = shape_from(parsed("model"));
  // Checkpoints of earlier versions have neither absent nodes nor constants.
  if (metadata.contains("absent")) header.absent = parsed("absent").get<std::vector<NodeId>>();
  if (metadata.contains("rope_theta")) header.constants.rope_theta = parsed("rope_theta");
  if (metadata.contains("router_temperature"))
    header.constants.router_temperature = parsed("router_temperature");
  header.experts = {parsed("experts").get<std::vector<std::vector<int>>>(),
                    metadata.at("skip_token") == "yes"};
  header.expert_steps = counts_from(parsed("expert_steps"));
  check_experts(header);
  return header;
}

}  // namespace

Metadata to_metadata(const CheckpointHeader& header) {
  json counts = json::array();
  for (const std::vector<ExpertSteps>& layer : header.expert_steps) {
    json row = json::array();
    for (const ExpertSteps& expert : layer) row.push_back({expert.moments, expert.since_restart});
    counts.push_back(std::move(row));
  }
  return {{"format", kFormat},
          {"digest", to_json(header.digest)},
          {"node", std::to_string(header.node)},
          {"nodes", std::to_string(header.nodes)},
          {"absent", json(header.absent).dump()},
          {"rounds", std::to_string(header.rounds)},
          {"steps", std::to_string(header.steps)},
          {"model", scenario::to_json(header.model).dump()},
          {"rope_theta", json(header.constants.rope_theta).dump()},
          {"router_temperature", json(header.constants.router_temperature).dump()},
          {"experts", json(header.experts.local).dump()},
          {"skip_token", header.experts.skip_token ? "yes" : "no"},
          {"expert_steps", counts.dump()}};
}

CheckpointHeader checkpoint_header(const Metadata& metadata, const std::string& path) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat)
    throw FileError(path +
                    ": got a file in another format; expected a checkpoint of this version of "
                    "fomoe-train; for example one that --checkpoints DIR has written");
  try {
    return header_from(metadata);
  } catch (const std::exception& error) {
    throw UnusableFile(path + ": got a checkpoint whose header is wrong (" + error.what() +
                       "); expected a complete checkpoint of fomoe-train; for example one that "
                       "--checkpoints DIR has written");
  }
}

}  // namespace fomoe::trainer
