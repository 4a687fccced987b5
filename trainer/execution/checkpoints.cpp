#include "trainer/execution/checkpoints.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "platforms/support/descriptor.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::trainer {

namespace fs = std::filesystem;
using costmodel::NodeId;

namespace {

constexpr std::size_t kKept = 3;  // another site may be a round and an unfinished write behind

/// Flushes the directory's entries to disk, so that a crash of the machine does not undo the renaming.
void sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

}  // namespace

Checkpoints::Checkpoints(std::string directory, Digest digest, std::vector<NodeId> absent)
    : directory_(std::move(directory)), digest_(std::move(digest)), absent_(std::move(absent)) {
  std::error_code failed;  // before anything is trained
  fs::create_directories(directory_, failed);
  if (failed || ::access(directory_.c_str(), W_OK) != 0)
    throw FileError(directory_ + ": got a directory that cannot be written" +
                    (failed ? " (" + failed.message() + ")" : "") +
                    "; expected one for the checkpoints; for example --checkpoints checkpoints");
}

Checkpoints::~Checkpoints() {
  if (writer_.joinable()) writer_.join();
}

std::string checkpoint_folder(const std::string& directory, std::int64_t rounds) {
  char name[32];
  std::snprintf(name, sizeof name, "round-%08lld", static_cast<long long>(rounds));
  return directory + "/" + name;
}

std::vector<std::int64_t> checkpointed_rounds(const std::string& directory) {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kBefore = "round-";
    if (!name.starts_with(kBefore)) continue;
    if (const auto rounds = parse_number<std::int64_t>(std::string_view(name).substr(kBefore.size())))
      found.push_back(*rounds);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string Checkpoints::file(std::int64_t rounds, NodeId node) const {
  return folder(rounds) + "/node-" + std::to_string(node) + ".safetensors";
}

void Checkpoints::wait() {
  if (writer_.joinable()) writer_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Checkpoints::save(Executor& executor, std::int64_t rounds) {
  wait();
  if (executor.hosted().empty()) return;  // this process trains no site
  struct Snapshot {
    std::string path;
    NamedTensors tensors;
    Metadata metadata;
  };
  std::vector<Snapshot> snapshots;
  for (const NodeId node : executor.hosted()) {
    Snapshot snapshot{file(rounds, node), {}, {}};
    // What is in flight comes first: its encodings may have lost something, which the state then has.
    NamedTensors in_flight = executor.in_flight(node);
    for (const auto& [name, tensor] : executor.worker(node).state())
      snapshot.tensors.emplace_back(name, tensor.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    for (auto& arrived : in_flight) snapshot.tensors.push_back(std::move(arrived));
    for (const auto& [name, tensor] : snapshot.tensors) {
      // A sum is not finite if a value is not.
      if (!std::isfinite(tensor.sum().item<double>()))
        executor.diverged(node, "tensor " + name + " of its state");
    }
    snapshot.tensors.emplace_back("moment_ages", executor.moment_ages().state().clone());
    const Model& model = executor.worker(node).model();
    CheckpointHeader header;
    header.digest = digest_;
    header.node = node;
    header.nodes = static_cast<NodeId>(executor.nodes());
    header.absent = absent_;
    header.rounds = rounds;
    header.steps = executor.steps(node);
    header.model = model.shape();
    header.constants = model.options().constants;
    header.experts = model.options().experts;
    header.expert_steps = executor.worker(node).inner().experts();
    snapshot.metadata = to_metadata(header);
    snapshots.push_back(std::move(snapshot));
  }
  writer_ = std::thread([this, rounds, nodes = executor.hosted(), snapshots = std::move(snapshots)] {
    try {
      fs::create_directories(folder(rounds));
      for (const Snapshot& snapshot : snapshots)
        write_safetensors(snapshot.path, snapshot.tensors, snapshot.metadata);
      sync_folder(folder(rounds));
      sync_folder(directory_);
      remove_older(nodes);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void Checkpoints::remove_older(const std::vector<NodeId>& nodes) const {
  const std::vector<std::int64_t> rounds = complete(nodes);
  for (std::size_t i = 0; i + kKept < rounds.size(); ++i) {
    std::error_code ignored;
    std::vector<fs::path> mine;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder(rounds[i]), ignored)) {
      // The prefix also matches temporary files that a killed process left behind.
      const std::string name = entry.path().filename().string();
      for (const NodeId node : nodes) {
        if (name.starts_with("node-" + std::to_string(node) + ".")) mine.push_back(entry.path());
      }
    }
    for (const fs::path& path : mine) fs::remove(path, ignored);
    fs::remove(folder(rounds[i]), ignored);  // fails silently if the folder still has files of other sites
  }
}

std::vector<std::int64_t> Checkpoints::complete(const std::vector<NodeId>& nodes) const {
  std::vector<std::int64_t> found = checkpointed_rounds(directory_);
  std::erase_if(found, [&](std::int64_t rounds) {
    return !std::all_of(nodes.begin(), nodes.end(),
                        [&](NodeId node) { return fs::exists(file(rounds, node)); });
  });
  return found;
}

void Checkpoints::refuse_other_run() const {
  const std::vector<std::int64_t> rounds = checkpointed_rounds(directory_);
  if (rounds.empty()) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(rounds.back()))) {
    const std::string name = entry.path().filename().string();
    int node = -1;
    if (std::sscanf(name.c_str(), "node-%d.safetensors", &node) != 1 ||
        entry.path() != file(rounds.back(), node))
      continue;
    try {
      (void)header(checked_safetensors_metadata(entry.path().string()), rounds.back(), node);
    } catch (const UnusableFile&) {  // it may be this run's
    }
  }
}

std::vector<std::int64_t> Checkpoints::usable(const std::vector<NodeId>& nodes, const ExpectedState& expected,
                                              std::vector<std::string>& reasons) const {
  // The newest first, since it is what the user will want to go on from.
  std::vector<std::int64_t> found = complete(nodes);
  if (found.empty()) refuse_other_run();
  std::reverse(found.begin(), found.end());
  std::erase_if(found, [&](std::int64_t rounds) {
    for (const NodeId node : nodes) {
      try {
        const CheckpointHeader found_in =
            header(checked_safetensors_metadata(file(rounds, node)), rounds, node);
        const std::optional<std::int64_t> steps = expected.steps(rounds, node);
        if (!steps) continue;
        if (found_in.steps > expected.last_steps) {
          reasons.push_back(file(rounds, node) + ": got a checkpoint after " +
                            std::to_string(found_in.steps) +
                            " steps; expected a run with at least as many, which " + "this one of " +
                            std::to_string(expected.last_steps) + " is not");
        } else if (found_in.steps != *steps) {
          reasons.push_back(file(rounds, node) + ": got a checkpoint after " +
                            std::to_string(found_in.steps) + " steps; expected one after " +
                            std::to_string(*steps) + ", the steps of " + std::to_string(rounds) + " rounds");
        } else if (!found_in.experts.local.empty() &&
                   found_in.experts.local != expected.local_experts(rounds, node)) {
          reasons.push_back(file(rounds, node) + ": got a checkpoint with the experts of round " +
                            std::to_string(rounds) +
                            ", after which a run with fewer tokens ended; expected "
                            "the experts of round " +
                            std::to_string(rounds + 1));
        } else {
          continue;
        }
      } catch (const UnusableFile& error) {
        reasons.emplace_back(error.what());
      }
      return true;
    }
    return false;
  });
  std::reverse(found.begin(), found.end());
  return found;
}

CheckpointHeader Checkpoints::header(const Metadata& metadata, std::int64_t rounds, NodeId node) const {
  const std::string path = file(rounds, node);
  CheckpointHeader header = checkpoint_header(metadata, path);
  const auto refuse = [&](const std::string& got, const std::string& expected) {
    throw FileError(path + ": got " + got + "; expected " + expected +
                    "; for example another directory with --checkpoints");
  };
  Digest own = digest_;
  const auto has_work = [](const auto& entry) { return entry.first == kWork; };
  if (std::none_of(header.digest.begin(), header.digest.end(), has_work)) std::erase_if(own, has_work);
  if (const auto difference = first_difference(own, header.digest)) {
    const bool other_model = difference->starts_with("model.");
    throw FileError(folder(rounds) + ": got the checkpoint of another run, which differs in " + *difference +
                    "; expected that a resumed run has the same weights (trainer/SITES.md, Checkpoints); for "
                    "example another directory with --checkpoints" +
                    (other_model ? ""
                                 : ", and --start-from " + directory_ +
                                       " to begin a new run with the state of this one"));
  }
  if (header.node != node || header.rounds != rounds)
    refuse("the checkpoint of another node or round",
           "the checkpoint of the node and round in the file's path");
  return header;
}

std::vector<NodeId> Checkpoints::absent_in(std::int64_t rounds, NodeId node) const {
  return header(read_safetensors_metadata(file(rounds, node)), rounds, node).absent;
}

void Checkpoints::load(Executor& executor, std::int64_t rounds) const {
  struct Read {
    CheckpointHeader header;
    std::map<std::string, at::Tensor> tensors;
  };
  std::map<NodeId, Read> files;
  for (const NodeId node : executor.hosted()) {
    SafetensorsFile content = read_safetensors(file(rounds, node));
    files.emplace(node, Read{header(content.metadata, rounds, node), std::move(content.tensors)});
  }
  std::int64_t steps = 0;  // those of a worker: a server may have fewer
  for (const auto& [node, content] : files) steps = std::max(steps, content.header.steps);
  if (!files.empty()) executor.resume_at(rounds, steps);
  std::map<NodeId, std::int64_t> used;  // tensors in flight, by node
  executor.restore_in_flight(rounds - 1, [&](NodeId node, const std::string& name, std::int64_t elements) {
    const std::map<std::string, at::Tensor>& tensors = files.at(node).tensors;
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.numel() != elements)
      throw FileError(file(rounds, node) + ": got a checkpoint in which tensor " + name +
                      " is missing or has another shape; expected what the transfers that continue into "
                      "the next round have brought");
    ++used[node];
    return found->second.clone();  // the file's own tensor ends with it
  });
  for (auto& [node, content] : files) {
    const auto in_flight =
        std::count_if(content.tensors.begin(), content.tensors.end(),
                      [](const auto& entry) { return entry.first.starts_with(kInFlight); });
    if (in_flight != used[node])
      throw FileError(file(rounds, node) +
                      ": got a checkpoint with transfers under way that end within their round in this run, "
                      "such as that of the last round of a run with fewer tokens; expected the checkpoint of "
                      "an earlier round; for example another directory with --checkpoints");
    Worker& worker = executor.worker(node);
    const auto copy = [&](const std::string& name, at::Tensor into) {
      const auto found = content.tensors.find(name);
      if (found == content.tensors.end() || found->second.sizes() != into.sizes())
        throw FileError(file(rounds, node) + ": got a checkpoint in which tensor " + name +
                        " is missing or has another shape; expected a complete checkpoint");
      const at::NoGradGuard no_grad;
      into.copy_(found->second);
    };
    worker.open_shards();  // each process of a site takes its rows from the whole state
    for (const auto& [name, tensor] : worker.state()) copy(name, tensor);
    worker.close_shards();
    copy("moment_ages", executor.moment_ages().state());
    std::vector<std::vector<ExpertSteps>>& layers = content.header.expert_steps;
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      worker.inner().set_experts(static_cast<std::int64_t>(layer), std::move(layers[layer]));
    worker.model().refresh_compute_weights();
  }
}

}  // namespace fomoe::trainer
