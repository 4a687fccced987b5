#include "sim/executor/simulate.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sim/executor/executor.hpp"

namespace fomoe::sim {

namespace {

using costmodel::Timeline;

// The pipe from the child to the parent. The child writes a status byte ('k' or 'e'), and then the vectors of
// the timelines or an error message.
class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) throw std::runtime_error("cannot create a pipe for the simulation");
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_reader() { close_end(ends_[0]); }
  void close_writer() { close_end(ends_[1]); }

  void write_all(const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(ends_[1], at, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) std::_Exit(1);  // the parent is gone
      at += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  bool read_all(void* data, std::size_t size) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::read(ends_[0], at, size);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  int ends_[2] = {-1, -1};
};

template <typename Value>
void put(Pipe& pipe, const std::vector<Value>& values) {
  const std::uint64_t count = values.size();
  pipe.write_all(&count, sizeof count);
  pipe.write_all(values.data(), count * sizeof(Value));
}

template <typename Value>
bool get(Pipe& pipe, std::vector<Value>& values) {
  std::uint64_t count = 0;
  if (!pipe.read_all(&count, sizeof count)) return false;
  values.resize(count);
  return pipe.read_all(values.data(), count * sizeof(Value));
}

// Lists of strings are sent as the number of strings in each list, and all characters, with a zero after each
// string.
void put(Pipe& pipe, const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::uint64_t> counts;
  std::vector<char> characters;
  for (const auto& list : lists) {
    counts.push_back(list.size());
    for (const std::string& text : list)
      characters.insert(characters.end(), text.c_str(), text.c_str() + text.size() + 1);
  }
  put(pipe, counts);
  put(pipe, characters);
}

bool get(Pipe& pipe, std::vector<std::vector<std::string>>& lists) {
  std::vector<std::uint64_t> counts;
  std::vector<char> characters;
  if (!get(pipe, counts) || !get(pipe, characters)) return false;
  const char* at = characters.data();
  for (const std::uint64_t count : counts) {
    auto& list = lists.emplace_back();
    for (std::uint64_t i = 0; i < count; ++i, at += list.back().size() + 1) list.emplace_back(at);
  }
  return true;
}

void put(Pipe& pipe, const Timeline& timeline) {
  put(pipe, timeline.round_end_s);
  put(pipe, timeline.intervals);
  put(pipe, timeline.flows);
  put(pipe, timeline.sent.bytes);
  put(pipe, timeline.flow_records);
  put(pipe, timeline.op_names);
}

bool get(Pipe& pipe, Timeline& timeline) {
  return get(pipe, timeline.round_end_s) && get(pipe, timeline.intervals) && get(pipe, timeline.flows) &&
         get(pipe, timeline.sent.bytes) && get(pipe, timeline.flow_records) && get(pipe, timeline.op_names);
}

void child(Pipe& pipe, const costmodel::Plan& plan, const std::vector<std::vector<std::int64_t>>& sequences,
           const platforms::Platform& platform, const ComputeSeconds& seconds, const Options& options) {
  try {
    // The engine is never destroyed: the process ends here, and SimGrid complains of flows that a failed run
    // leaves behind.
    auto* engine = new Engine(plan.nodes, platform, options.network, options.seed, options.senders);
    std::vector<Timeline> timelines;
    for (const std::vector<std::int64_t>& rounds : sequences) {
      if (!timelines.empty()) engine->restart();
      timelines.push_back(Executor(plan, rounds, *engine, seconds, options).run());
    }
    pipe.write_all("k", 1);
    for (const Timeline& timeline : timelines) put(pipe, timeline);
  } catch (const std::exception& error) {
    const std::string message = error.what();
    pipe.write_all("e", 1);
    put(pipe, std::vector<char>(message.begin(), message.end()));
  }
  std::_Exit(0);  // SimGrid's own tear-down is slow, and nothing here outlives the process
}

}  // namespace

Timeline simulate(const costmodel::Plan& plan, const std::vector<std::int64_t>& rounds,
                  const platforms::Platform& platform, const ComputeSeconds& seconds,
                  const Options& options) {
  return std::move(simulate_each(plan, {rounds}, platform, seconds, options).front());
}

std::vector<Timeline> simulate_each(const costmodel::Plan& plan,
                                    const std::vector<std::vector<std::int64_t>>& sequences,
                                    const platforms::Platform& platform, const ComputeSeconds& seconds,
                                    const Options& options) {
  Pipe pipe;
  std::fflush(nullptr);
  Engine::prepare();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork a process for the simulation");
  if (pid == 0) {
    pipe.close_reader();
    child(pipe, plan, sequences, platform, seconds, options);
  }
  pipe.close_writer();
  char status = 0;
  std::string failure = "the simulation process ended without a result";
  std::vector<Timeline> timelines;
  bool complete = false;
  if (pipe.read_all(&status, 1)) {
    if (status == 'k') {
      complete = true;
      for (const std::vector<std::int64_t>& rounds : sequences) {
        Timeline& timeline = timelines.emplace_back();
        timeline.rounds = rounds;
        timeline.sent = costmodel::PairBytes(static_cast<int>(plan.nodes.size()));
        complete = complete && get(pipe, timeline);
      }
    } else if (std::vector<char> message; get(pipe, message)) {
      failure.assign(message.begin(), message.end());
    }
  }
  int wait_status = 0;
  while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (!complete) throw std::runtime_error(failure);
  return timelines;
}

}  // namespace fomoe::sim
