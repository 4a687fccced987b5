#include "trainer/whole/checkpointed_model.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "platforms/support/input_error.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/io/safetensors.hpp"

namespace fomoe::trainer {
namespace {

namespace fs = std::filesystem;

std::string node_file(const std::string& folder, std::size_t node) {
  return folder + "/node-" + std::to_string(node) + ".safetensors";
}

/// The nodes of the run whose checkpoint this is, sites and servers; empty if not all of their files are
/// there.
std::vector<std::size_t> complete_nodes(const std::string& folder) {
  for (std::size_t node = 0; node < 2; ++node) {
    if (!fs::exists(node_file(folder, node))) continue;
    const std::string path = node_file(folder, node);
    const CheckpointHeader header = checkpoint_header(read_safetensors_metadata(path), path);
    std::vector<std::size_t> nodes;
    for (costmodel::NodeId other = 0; other < header.nodes; ++other) {
      if (std::find(header.absent.begin(), header.absent.end(), other) != header.absent.end()) continue;
      if (!fs::exists(node_file(folder, static_cast<std::size_t>(other)))) return {};
      nodes.push_back(static_cast<std::size_t>(other));
    }
    return nodes;
  }
  return {};
}

using ExpertCounts = std::vector<std::vector<ExpertSteps>>;

/// Puts the parts of the nodes together. The reported model is that of the sites: a server keeps more digits
/// than it sends to them, and moments of its own that are zeros. From a server comes only what no site has,
/// such as the state of the outer optimiser.
class Parts {
 public:
  void add(const CheckpointHeader& header, const SafetensorsFile& file, bool server) {
    if (!assembly_) assembly_.emplace(header.model, header.experts.skip_token);
    NamedTensors added;
    for (const auto& [name, tensor] : file.tensors) {
      if (server && of_sites_.contains(name)) continue;
      if (!server) of_sites_.insert(name);
      added.emplace_back(name, tensor);
    }
    assembly_->add(header.experts, added, server ? ExpertCounts() : header.expert_steps);
  }
  WholeModel finish() { return assembly_->finish(); }

 private:
  std::optional<Assembly> assembly_;
  std::set<std::string> of_sites_;  // names of tensors
};

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
  const auto header_of = [&](std::size_t node) {
    const std::string path = node_file(folder, node);
    return checkpoint_header(read_safetensors_metadata(path), path);
  };
  std::int64_t steps = 0;
  for (const std::size_t node : nodes) steps = std::max(steps, header_of(node).steps);
  // A server makes no steps. In files of earlier versions it has those of the last resume, which are fewer.
  const auto servers = std::stable_partition(
      nodes.begin(), nodes.end(), [&](std::size_t node) { return header_of(node).steps == steps; });
  Parts parts;
  CheckpointHeader last;
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    const std::string path = node_file(folder, *node);
    const SafetensorsFile file = read_safetensors(path);
    last = checkpoint_header(file.metadata, path);
    try {
      parts.add(last, file, node >= servers);
    } catch (const std::exception& error) {
      throw UnusableFile(path + ": got tensors that do not fit to the header of their checkpoint (" +
                         error.what() +
                         "); expected a checkpoint that `fomoe-train run --checkpoints` wrote");
    }
  }
  WholeModel whole = parts.finish();
  whole.constants = last.constants;
  whole.rounds = last.rounds;
  whole.steps = steps;
  for (const auto& [name, value] : last.digest) {
    if (std::count(std::begin(kDataOfTraining), std::end(kDataOfTraining), name) > 0)
      whole.trained_on.emplace_back(name, value);
  }
  return whole;
}

}  // namespace fomoe::trainer
