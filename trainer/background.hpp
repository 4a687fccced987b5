// One thread that does what it is given, in that order: transfers go on while the sites train.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace fomoe::trainer {

class Background {
 public:
  Background();
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
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace fomoe::trainer
