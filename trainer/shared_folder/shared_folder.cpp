#include "trainer/shared_folder/shared_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "platforms/support/atomic_file.hpp"
#include "trainer/comm/staging.hpp"

namespace fomoe::trainer {

namespace {

// How often a process looks for a file that is not there yet: at once at first, then less and less often, so
// that long waits cost a network file system few requests.
constexpr std::chrono::milliseconds kFirstPause(1), kLongestPause(50);

/// Opens the file as soon as it is there. A closed stream: it was not, within the time.
std::ifstream opened(const std::string& path, double timeout_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    std::ifstream file(path, std::ios::binary);
    if (file.is_open()) return file;
    if (errno != ENOENT)
      throw std::runtime_error("--store: cannot read " + path + ": " + std::strerror(errno));
    if (std::chrono::steady_clock::now() >= end) return file;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

SharedFolder::SharedFolder(std::string folder, std::vector<std::string> names, double timeout_s, bool owner)
    : folder_(std::move(folder)), names_(std::move(names)), timeout_s_(timeout_s), owner_(owner) {}

SharedFolder::~SharedFolder() {
  if (owner_) remove_session(folder_);
}

void SharedFolder::remove_session(const std::string& folder) {
  // Not std::filesystem::remove_all(): LibTorch exports an unusable function of that name, which is called
  // then.
  std::error_code ignored;  // what is left is in the way of nobody
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    files.push_back(entry.path());
  for (const auto& file : files) std::filesystem::remove(file, ignored);
  std::filesystem::remove(folder, ignored);
}

void SharedFolder::put(const std::string& name, const at::Tensor& bytes) {
  const at::Tensor there = on_host(bytes.contiguous());
  const std::string path = path_of(name);
  try {
    AtomicFile file(path);
    file.write({reinterpret_cast<const char*>(there.const_data_ptr<std::uint8_t>()),
                static_cast<std::size_t>(there.numel())});
    file.commit();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string("--store: ") + error.what());
  }
  const std::lock_guard lock(mutex_);
  put_.emplace_back(round_, path);
}

at::Tensor SharedFolder::get(const std::string& name, std::int64_t bytes, costmodel::NodeId origin) {
  const std::string path = path_of(name);
  std::ifstream file = opened(path, timeout_s_);
  const std::string& site = names_[static_cast<std::size_t>(origin)];
  if (!file.is_open())
    throw SiteLost(site + " is lost: its file " + path + " has not appeared within " +
                   std::to_string(static_cast<std::int64_t>(timeout_s_)) + " s");
  at::Tensor read = at::empty({bytes}, at::kByte);
  file.read(reinterpret_cast<char*>(read.data_ptr<std::uint8_t>()), static_cast<std::streamsize>(bytes));
  if (file.bad() || file.gcount() != bytes || file.peek() != std::ifstream::traits_type::eof())
    throw std::runtime_error("--store: " + path + " of " + site + " cannot be read, or has not the " +
                             std::to_string(bytes) + " bytes that are expected");
  return read;
}

void SharedFolder::begin_round(std::int64_t index) {
  const std::lock_guard lock(mutex_);
  round_ = index;
  std::erase_if(put_, [&](const auto& file) {
    if (file.first >= index - 1) return false;
    std::error_code ignored;
    std::filesystem::remove(file.second, ignored);
    return true;
  });
}

}  // namespace fomoe::trainer
