#include "trainer/run/rejoining.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "platforms/support/input_error.hpp"
#include "trainer/io/safetensors.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {
namespace {

namespace fs = std::filesystem;
using costmodel::NodeId;
using costmodel::NodeKind;
using nlohmann::json;

constexpr int kChannel = kChannels;  // transfers of a plan use the channels below

at::Tensor bytes_of_file(const std::string& path) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(fs::file_size(path))}, at::kByte);
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(bytes.mutable_data_ptr()), bytes.numel());
  if (!file) throw std::runtime_error("cannot read " + path);
  return bytes;
}

/// A checkpoint file that another site sent. It lies in a temporary file while it is read.
SafetensorsFile received_file(const at::Tensor& bytes, const std::string& directory, NodeId from, NodeId to) {
  fs::create_directories(directory);
  const std::string path =
      directory + "/received-from-" + std::to_string(from) + "-by-" + std::to_string(to) + ".tmp";
  {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(static_cast<const char*>(bytes.const_data_ptr()), bytes.numel());
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }
  SafetensorsFile content = read_safetensors(path);
  fs::remove(path);
  return content;
}

/// What was lost while errors were fed back belongs to payloads that nobody received.
NamedTensors without_residuals(const SafetensorsFile& file) {
  NamedTensors out;
  for (const auto& [name, tensor] : file.tensors) {
    if (!name.ends_with(".residual")) out.emplace_back(name, tensor);
  }
  return out;
}

/// The node's own last checkpoint, or its initial state. Returns a description of it.
std::string fill_from_own(Assembly& assembly, Worker& worker, const Checkpoints& checkpoints, NodeId node,
                          std::vector<std::pair<int, int>>& filled) {
  std::vector<std::int64_t> own = checkpoints.complete({node});
  for (auto round = own.rbegin(); round != own.rend(); ++round) {
    try {
      const std::string path = checkpoints.file(*round, node);
      const SafetensorsFile file = read_safetensors(path);
      const CheckpointHeader header = checkpoint_header(file.metadata, path);
      filled = assembly.fill(header.experts, without_residuals(file), header.expert_steps);
      return "the site's own checkpoint after round " + std::to_string(*round);
    } catch (const UnusableFile&) {  // it was being written when the site was lost
    }
  }
  filled = assembly.fill(worker.model().options().experts, worker.state(), worker.inner().experts());
  return "their initial weights";
}

std::string list_of(const std::vector<std::pair<int, int>>& experts) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, experts.size()); ++i) {
    text += (i == 0 ? "expert " : ", expert ") + std::to_string(experts[i].second) + " of layer " +
            std::to_string(experts[i].first);
  }
  if (experts.size() > kNamed) text += " and " + std::to_string(experts.size() - kNamed) + " more";
  return text;
}

}  // namespace

std::vector<NodeId> donors_of(const costmodel::Plan& plan, std::int64_t rounds, NodeId node,
                              const std::vector<bool>& has_state) {
  const auto gives = [&](NodeId other) {
    const auto n = static_cast<std::size_t>(other);
    return has_state[n] && plan.nodes[n].kind == NodeKind::worker;
  };
  std::vector<NodeId> donors;
  for (NodeId other = 0; other < static_cast<NodeId>(plan.nodes.size()) && donors.empty(); ++other) {
    if (gives(other)) donors.push_back(other);
  }
  if (!plan.placement) return donors;
  const costmodel::Placement placement = plan.placement(rounds);
  for (int layer = 0; layer < placement.layers(); ++layer) {
    for (const int expert : placement.local_experts(layer, node)) {
      const auto owners = placement.owners(layer, expert);
      const bool known = std::any_of(owners.begin(), owners.end(), [&](NodeId owner) {
        return std::find(donors.begin(), donors.end(), owner) != donors.end();
      });
      const auto owner = std::find_if(owners.begin(), owners.end(), gives);
      if (!known && owner != owners.end()) donors.push_back(*owner);
    }
  }
  return donors;
}

std::vector<std::string> bring_state(Executor& executor, Transport& transport,
                                     std::optional<Rendezvous>& rendezvous, const costmodel::Plan& plan,
                                     const Checkpoints& checkpoints, const CommonState& state,
                                     const std::vector<bool>& absent) {
  if (std::find(state.lacking.begin(), state.lacking.end(), true) == state.lacking.end()) return {};
  const std::int64_t rounds = state.rounds;
  std::vector<bool> lacking;  // by node
  for (const costmodel::Node& node : plan.nodes)
    lacking.push_back(state.lacking[static_cast<std::size_t>(node.site)]);
  const auto nodes = static_cast<NodeId>(plan.nodes.size());
  std::vector<bool> has_state(plan.nodes.size());
  json own_sizes = json::object();
  for (NodeId node = 0; node < nodes; ++node) {
    const auto n = static_cast<std::size_t>(node);
    has_state[n] = !lacking[n] && !absent[n];
    if (lacking[n] && plan.nodes[n].kind != NodeKind::worker)
      throw FileError(
          checkpoints.directory() + ": got no checkpoint of node " + std::to_string(node) +
          ", a server; expected one, since no other site has its state; for example a copy of its file");
    if (has_state[n] && transport.hosts(node))
      own_sizes[std::to_string(node)] = fs::file_size(checkpoints.file(rounds, node));
  }
  std::map<NodeId, std::int64_t> sizes;
  for (const std::string& text : rendezvous->gather("sizes of states", own_sizes.dump())) {
    if (text.empty()) continue;
    const json of_process = json::parse(text);
    for (const auto& [node, bytes] : of_process.items()) sizes[std::stoi(node)] = bytes;
  }

  std::vector<Message> messages;
  for (NodeId to = 0; to < nodes; ++to) {
    if (!lacking[static_cast<std::size_t>(to)]) continue;
    for (const NodeId from : donors_of(plan, rounds, to, has_state)) {
      if (!transport.hosts(from) && !transport.hosts(to)) continue;
      Message message;
      message.from = from;
      message.to = to;
      message.counted = false;  // they belong to no plan
      message.bytes_of[0] = sizes.at(from);
      if (transport.hosts(from)) message.sent = bytes_of_file(checkpoints.file(rounds, from));
      messages.push_back(std::move(message));
    }
  }
  transport.exchange(messages, kChannel);

  std::vector<std::string> said;
  for (NodeId to = 0; to < nodes; ++to) {
    if (!lacking[static_cast<std::size_t>(to)] || !transport.hosts(to)) continue;
    Worker& worker = executor.worker(to);
    Assembly assembly(worker.model().shape(), worker.model().options().experts.skip_token);
    std::int64_t bytes = 0, steps = 0;
    for (const Message& message : messages) {
      if (message.to != to) continue;
      const SafetensorsFile file = received_file(message.received, checkpoints.directory(), message.from, to);
      const CheckpointHeader header =
          checkpoint_header(file.metadata, "the checkpoint of node " + std::to_string(message.from));
      assembly.add(header.experts, without_residuals(file), header.expert_steps);
      if (bytes == 0) executor.moment_ages().state().copy_(file.tensors.at("moment_ages"));
      bytes += message.bytes();
      steps = std::max(steps, header.steps);
    }
    executor.resume_at(rounds, steps);
    std::vector<std::pair<int, int>> filled;
    const std::string own = fill_from_own(assembly, worker, checkpoints, to, filled);
    take_part(assembly.finish_part(), worker);
    const auto& name = plan.nodes[static_cast<std::size_t>(to)].site;
    said.push_back(
        "site " + std::to_string(name) + " got the state after round " + std::to_string(rounds) +
        " from the other sites (" + std::to_string(bytes) + " bytes)" +
        (filled.empty() ? "" : "; no other site has " + list_of(filled) + ", which come from " + own));
  }
  return said;
}

}  // namespace fomoe::trainer
