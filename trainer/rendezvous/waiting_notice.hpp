// A process that waits for others says for whom: after 10 s, and then each minute.
#pragma once
#include <functional>
#include <string>

namespace fomoe::trainer {

class WaitingNotice {
 public:
  static constexpr double kFirstS = 10, kThenS = 60;
  /// Lines go to stderr.
  WaitingNotice();
  WaitingNotice(std::function<void(const std::string& line)> say, std::function<double()> now_s);

  /// Is called again and again while the process waits. If a line is due, it asks `whom` for the names, and
  /// says it. `limit_s` is the time after which the process gives up, which the line names.
  void waits(double limit_s, const std::function<std::string()>& whom);

 private:
  std::function<void(const std::string&)> say_;
  std::function<double()> now_s_;
  double began_s_, next_s_;
};

}  // namespace fomoe::trainer
