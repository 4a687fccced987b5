#include "trainer/whole/checkpointed_model.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "platforms/support/input_error.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/io/safetensors.hpp"

namespace fomoe::trainer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string node_file(const std::string& folder, std::size_t node) {
  return folder + "/node-" + std::to_string(node) + ".safetensors";
}

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

/// Checkpoints of earlier versions have no constants.
ModelConstants constants_from(const Metadata& metadata) {
  const auto number = [&](const char* key, double fallback) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? fallback : std::stod(found->second);
  };
  const ModelConstants usual;
  return {number("rope_theta", usual.rope_theta), number("router_temperature", usual.router_temperature)};
}

/// The nodes that trained in the run whose checkpoint this is; empty if not all of their files are there.
std::vector<std::size_t> complete_nodes(const std::string& folder) {
  for (std::size_t node = 0; node < 2; ++node) {
    if (!fs::exists(node_file(folder, node))) continue;
    const Metadata metadata = read_safetensors_metadata(node_file(folder, node));
    const auto found = metadata.find("nodes"), without = metadata.find("absent");
    if (found == metadata.end()) return {};
    std::set<std::size_t> absent;
    if (without != metadata.end()) absent = json::parse(without->second).get<std::set<std::size_t>>();
    std::vector<std::size_t> nodes;
    for (std::size_t other = 0; other < std::stoul(found->second); ++other) {
      if (absent.contains(other)) continue;
      if (!fs::exists(node_file(folder, other))) return {};
      nodes.push_back(other);
    }
    return nodes;
  }
  return {};
}

}  // namespace

WholeModel read_checkpointed(const std::string& directory, std::optional<std::int64_t> rounds) {
  std::vector<std::int64_t> candidates = checkpointed_rounds(directory);
  if (rounds) std::erase_if(candidates, [&](std::int64_t one) { return one != *rounds; });
  std::string folder;
  std::vector<std::size_t> nodes;
  for (auto round = candidates.rbegin(); round != candidates.rend() && nodes.empty(); ++round) {
    folder = checkpoint_folder(directory, *round);
    nodes = complete_nodes(folder);
  }
  if (nodes.empty())
    throw FileError(
        directory + ": got no checkpoint" +
        (rounds ? " after round " + std::to_string(*rounds) : std::string()) +
        " with the files of all nodes; expected the directory of --checkpoints, with the files of "
        "all sites in one place; for example one that `fomoe-train run --checkpoints` wrote");
  std::optional<Assembly> assembly;
  std::int64_t done = 0, steps = 0;
  ModelConstants constants;
  for (const std::size_t node : nodes) {
    const std::string path = node_file(folder, node);
    const SafetensorsFile file = read_safetensors(path);
    try {
      const Metadata& metadata = file.metadata;
      if (metadata.at("format") != kCheckpointFormat) throw std::runtime_error("another format");
      const bool skip_token = metadata.at("skip_token") == "yes";
      if (!assembly) assembly.emplace(shape_from(json::parse(metadata.at("model"))), skip_token);
      const ExpertChoice held{json::parse(metadata.at("experts")), skip_token};
      assembly->add(held, {file.tensors.begin(), file.tensors.end()}, expert_steps_in(metadata));
      constants = constants_from(metadata);
      done = std::stoll(metadata.at("rounds"));
      steps = std::max<std::int64_t>(steps, std::stoll(metadata.at("steps")));
    } catch (const std::exception& error) {
      throw FileError(path + ": got a file that is no checkpoint of this version (" + error.what() +
                      "); expected one that `fomoe-train run --checkpoints` wrote");
    }
  }
  WholeModel whole = assembly->finish();
  whole.constants = constants;
  whole.rounds = done;
  whole.steps = steps;
  return whole;
}

}  // namespace fomoe::trainer
