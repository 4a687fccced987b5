#include "trainer/shared_folder/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "platforms/support/input_error.hpp"
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

void check_store(const std::string& folder, const costmodel::Strategy& strategy) {
  const bool needed = strategy.collective == costmodel::Collective::store;
  if (needed == !folder.empty()) return;
  if (needed)
    throw UsageError(
        "--store: got nothing, and strategy.collective = \"store\"; expected a folder that the processes of "
        "all "
        "sites can read and write under this name; for example --store /mnt/exchange");
  throw UsageError("--store: got \"" + folder +
                   "\", and a scenario whose sites do not exchange through a store; expected one with "
                   "strategy.collective = \"store\" and a table [platform.store]; for example --set "
                   "strategy.collective=store");
}

std::shared_ptr<SharedFolder> join_store(const std::string& folder, const Digest& digest,
                                         Rendezvous& rendezvous, bool first, std::vector<std::string> names,
                                         double timeout_s) {
  const std::string session = rendezvous.gather("store", first ? make_session(folder, digest) : "-").front();
  wait_until_seen(folder, session);
  return std::make_shared<SharedFolder>(folder + '/' + session, std::move(names), timeout_s, first);
}

}  // namespace fomoe::trainer
