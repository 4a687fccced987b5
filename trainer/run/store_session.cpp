#include "trainer/run/store_session.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "platforms/support/input_error.hpp"
#include "trainer/execution/node_name.hpp"
#include "trainer/io/hash.hpp"

namespace fomoe::trainer {

namespace {

namespace fs = std::filesystem;

// A network file system may remember for some seconds that a folder was not there.
constexpr std::chrono::seconds kSeenWithin(30);

[[noreturn]] void refuse(const std::string& folder, const std::string& why) {
  throw UsageError(
      "--store: got \"" + folder + "\", " + why +
      "; expected a folder that the processes of all sites can read and write under this name; for "
      "example --store /mnt/exchange");
}

std::string make_session(const std::string& folder, const Digest& digest) {
  const std::string text = to_json(digest);
  Hash run;
  run.add(text.data(), text.size());
  const std::string prefix = "fomoe-" + run.text() + '-';
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(folder, "which cannot be made (" + error.message() + ')');
  std::vector<std::string> earlier;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(prefix)) earlier.push_back(entry.path().string());
  }
  for (const std::string& session : earlier) SharedFolder::remove_session(session);
  std::random_device random;
  const std::string name = prefix + std::to_string(random());
  fs::create_directory(folder + '/' + name, error);
  if (error) refuse(folder, "which cannot be written (" + error.message() + ')');
  return name;
}

void wait_until_seen(const std::string& folder, const std::string& session) {
  const auto end = std::chrono::steady_clock::now() + kSeenWithin;
  while (!fs::is_directory(folder + '/' + session)) {
    if (std::chrono::steady_clock::now() >= end)
      refuse(folder, "in which the folder " + session + " of the first site does not appear");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (::access((folder + '/' + session).c_str(), W_OK | X_OK) != 0) refuse(folder, "which cannot be written");
}

}  // namespace

bool has_store(const costmodel::Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(),
                     [](const costmodel::Node& node) { return node.kind == costmodel::NodeKind::store; });
}

std::vector<std::int64_t> sent_by_store(const costmodel::Plan& plan, const Transport& transport) {
  if (!has_store(plan)) return {};
  return transport.traffic(static_cast<costmodel::NodeId>(plan.nodes.size()) - 1).sent_to;
}

void check_store(const RunRequest& request) {
  const bool needed = request.scenario.strategy.collective == costmodel::Collective::store;
  if (needed == !request.store.empty()) return;
  if (needed)
    throw UsageError(
        "--store: got nothing, and strategy.collective = \"store\"; expected a folder that the processes of "
        "all "
        "sites can read and write under this name; for example --store /mnt/exchange");
  throw UsageError("--store: got \"" + request.store +
                   "\", and a scenario whose sites do not exchange through a store; expected one with "
                   "strategy.collective = \"store\" and a table [platform.store]; for example --set "
                   "strategy.collective=store");
}

std::shared_ptr<SharedFolder> join_store(const RunRequest& request, const costmodel::Plan& plan,
                                         const Digest& digest, Rendezvous& rendezvous) {
  const bool first = request.launch->rank == 0;
  const std::string made = first ? make_session(request.store, digest) : "-";
  const std::string session = rendezvous.gather("store", made).front();
  wait_until_seen(request.store, session);
  std::vector<std::string> names;
  for (costmodel::NodeId node = 0; node < static_cast<costmodel::NodeId>(plan.nodes.size()); ++node)
    names.push_back(node_name(plan, request.scenario.platform, node));
  return std::make_shared<SharedFolder>(request.store + '/' + session, names, request.settings.timeout_s,
                                        first);
}

}  // namespace fomoe::trainer
