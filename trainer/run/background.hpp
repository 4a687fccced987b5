// Threads that do what they are given, each task at once beside the others: transfers share the links, and
// go on while the sites train. As many threads as tasks under way at a time; they stay for the next.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace fomoe::trainer {

class Background {
 public:
  /// `most` tasks at a time; 1: one after another, in the order in which they were given.
  explicit Background(std::size_t most = 1024) : most_(most) {}
  /// Finishes what is running; what has not begun is dropped.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Ready when the task has run; get() throws what it threw.
  std::future<void> run(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  std::size_t most_, idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace fomoe::trainer
