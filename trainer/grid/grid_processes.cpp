#include "trainer/grid/grid_processes.hpp"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "costmodel/compose/make_plan.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/grid/grid_tables.hpp"

namespace fomoe::trainer {
namespace {

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    throw std::runtime_error(path + ": cannot be created: " + std::strerror(errno));
}

}  // namespace

GridFolder::GridFolder(std::string path) : path_(std::move(path)) {
  make_folder(path_);
  make_folder(path_ + "/runs");
}

// Not std::filesystem::remove_all: it crashes in programs that link LibTorch, which brings its own.
void GridFolder::remove_checkpoints(const GridRun& run) const {
  const std::string folder = of_run(run, ".checkpoints");
  const auto remove_one = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
  ::nftw(folder.c_str(), remove_one, /*open descriptors=*/16, FTW_DEPTH | FTW_PHYS);
}

GridLock::GridLock(const GridFolder& folder) {
  const std::string path = folder.file("runs/tables.lock");
  file_ = Descriptor(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (file_.get() < 0) throw std::runtime_error(path + ": cannot be written: " + std::strerror(errno));
  while (::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) continue;
}

GridProcesses::GridProcesses(const Grid& grid, GridFolder folder, int threads)
    : grid_(grid), folder_(std::move(folder)), threads_(threads) {}

GridProcesses::~GridProcesses() {
  for (const auto& [process, run] : running_) ::kill(process, SIGKILL);
  for (const auto& [process, run] : running_) ::waitpid(process, nullptr, 0);
}

bool GridProcesses::start(std::size_t index) {
  const GridRun& run = grid_.runs[index];
  const std::string lock_path = folder_.of_run(run, ".lock");
  // The process of the run inherits the descriptor, so that the lock lasts as long as the process, even if
  // this one is killed.
  Descriptor lock(::open(lock_path.c_str(), O_CREAT | O_RDWR, 0666));
  if (lock.get() < 0) throw std::runtime_error(lock_path + ": cannot be written: " + std::strerror(errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // Another process may have finished the run since this one looked.
  if (read_result(folder_.of_run(run, ".json"))) return false;
  std::vector<std::string> command = {"fomoe-train",
                                      "run",
                                      grid_.scenario_path,
                                      "--in-turn",
                                      "--threads=" + std::to_string(threads_),
                                      "--output=" + folder_.of_run(run, ".json"),
                                      "--checkpoints=" + folder_.of_run(run, ".checkpoints"),
                                      "--resume"};
  for (const std::string& assignment : run.overrides) command.push_back("--set=" + assignment);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = folder_.of_run(run, ".log");

  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends a stopped process too, which no other signal does
    if (::getppid() != parent) ::_exit(1);
    const int messages = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
    if (messages >= 0) ::dup2(messages, STDERR_FILENO);
    for (auto& [other, of_other] : locks_) of_other.reset();
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  running_[child] = index;
  locks_[index] = std::move(lock);
  return true;
}

EndedRun GridProcesses::wait() {
  int status = 0;
  const pid_t ended = ::waitpid(-1, &status, 0);
  if (ended < 0 || !running_.contains(ended)) return {grid_.runs.size(), 0};
  const std::size_t run = running_.at(ended);
  running_.erase(ended);
  locks_.erase(run);
  return {run, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

}  // namespace fomoe::trainer
