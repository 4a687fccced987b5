// Work in a child process, because SimGrid's engine is global: its answer, or why there is none.
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

namespace fomoe::sim {

/// The child threw, or died; what() is the exception's message or, without one, what was on its stderr.
class ChildError : public std::runtime_error {
 public:
  ChildError(const std::string& message, bool threw) : std::runtime_error(message), threw_(threw) {}
  [[nodiscard]] bool threw() const { return threw_; }

 private:
  bool threw_;
};

/// Starts at once. Call it before starting threads.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work);
  /// Ends a child that nobody has waited for.
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;

  /// What the work returned. Throws ChildError. Once.
  std::string wait();

 private:
  pid_t pid_ = -1;
  int reader_ = -1;
  std::FILE* messages_ = nullptr;  // the child's stderr
};

}  // namespace fomoe::sim
