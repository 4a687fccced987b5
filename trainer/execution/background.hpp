// A pool of threads that runs each task at once, beside the others. Transfers run in this pool, so that they
// share the links and continue while the sites train. The pool has as many threads as there were tasks at the
// same time; idle threads wait for the next task.
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
  /// Runs at most `most` tasks at a time. With 1, tasks run one after another, in the order of run().
  explicit Background(std::size_t most = 1024) : most_(most) {}
  /// Waits for running tasks; tasks that have not begun are dropped.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// The future is ready when the task has run; its get() throws what the task threw.
  std::future<void> run(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  std::size_t most_, idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last member: the threads use the others
};

}  // namespace fomoe::trainer
