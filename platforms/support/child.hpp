// Runs a function in a child process, and returns its result or its error. It exists because SimGrid's engine
// is global to a process.
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

namespace fomoe::sim {

/// The child threw an exception, or died. what() is the exception's message, or the child's stderr if it
/// died. threw() tells which.
class ChildError : public std::runtime_error {
 public:
  ChildError(const std::string& message, bool threw) : std::runtime_error(message), threw_(threw) {}
  [[nodiscard]] bool threw() const { return threw_; }

 private:
  bool threw_;
};

/// A child process that computes a string. It starts in the constructor. The caller must not have started
/// threads.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work);
  /// Ends the child if wait() was not called.
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;

  /// Waits for the child, and returns the result of the work. Throws ChildError. May be called once only.
  std::string wait();

 private:
  pid_t pid_ = -1;
  int reader_ = -1;
  std::FILE* messages_ = nullptr;  // the child's stderr
};

}  // namespace fomoe::sim
