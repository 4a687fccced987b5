// Runs the built programs: to their end, or as processes that a test can kill.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace fomoe::tests {

namespace fs = std::filesystem;

inline const std::string kTrain = FOMOE_BINARY_DIR "/fomoe-train";
inline const std::string kPlan = FOMOE_BINARY_DIR "/fomoe";
inline const std::string kScenario = FOMOE_SOURCE_DIR "/experiments/scenarios/tiny-training.toml";

inline std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A temporary folder for one test, which the destructor removes.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "fomoe-live-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// A running program. Its stderr goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& command, const std::string& stderr_path,
          const std::map<std::string, std::string>& environment = {}) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    id_ = ::fork();
    if (id_ != 0) return;
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    const int out = ::open("/dev/null", O_WRONLY);
    const int error = ::open(stderr_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(error, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Process(Process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process& operator=(Process&&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  void kill() const { ::kill(id_, SIGKILL); }
  /// Returns the exit status; 128 + signal if a signal ended it; −1 if it has not ended within the limit.
  int wait(double limit_s = 120) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    while (std::chrono::steady_clock::now() < deadline) {
      int status = 0;
      if (::waitpid(id_, &status, WNOHANG) == id_) {
        id_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
  }
  /// Processes that this process has started.
  [[nodiscard]] std::vector<pid_t> children() const {
    std::ifstream file("/proc/" + std::to_string(id_) + "/task/" + std::to_string(id_) + "/children");
    return {std::istream_iterator<pid_t>(file), {}};
  }

 private:
  pid_t id_ = -1;
};

struct Ended {
  int status = 0;
  std::string said;  // text on stderr
};

inline Ended run(const std::vector<std::string>& command) {
  const Folder folder;
  Process process(command, folder / "stderr");
  const int status = process.wait();
  return {status, content(folder / "stderr")};
}

inline std::vector<std::string> with_settings(std::vector<std::string> command,
                                              const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    command.emplace_back("--set");
    command.push_back(setting);
  }
  return command;
}

// 64 steps of 32 sequences of 64 tokens each.
inline const std::vector<std::string> kShort = {"workload.tokens=131072",
                                                "workload.global_batch_sequences=32"};

inline std::vector<std::string> train(const std::vector<std::string>& settings,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> command = with_settings({kTrain, "run", kScenario, "--threads", "1"}, settings);
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

inline bool wait_for_file(const std::string& path, double limit_s = 60) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (!fs::exists(path)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// The state of every node after `round`, byte for byte.
inline std::string state_after(const std::string& checkpoints, int round, int nodes) {
  std::string all;
  for (int node = 0; node < nodes; ++node) {
    char path[64];
    std::snprintf(path, sizeof path, "/round-%08d/node-%d.safetensors", round, node);
    if (!fs::exists(checkpoints + path)) throw std::runtime_error("no " + checkpoints + path);
    all += content(checkpoints + path);
  }
  return all;
}

}  // namespace fomoe::tests
