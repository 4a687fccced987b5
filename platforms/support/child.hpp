// Runs a function in a child process, and reads from it while it runs. It exists because SimGrid's engine is
// global to a process, and because simulations of different scenarios can then use all cores.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "platforms/support/descriptor.hpp"

namespace fomoe {

/// The child threw an exception, or died. what() is the exception's message, or the child's stderr if it
/// died.
class ChildError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The child's end of the pipe to its parent.
class ChildOutput {
 public:
  explicit ChildOutput(int descriptor) : descriptor_(descriptor) {}

  /// Ends the process if the parent is gone.
  void write(const void* data, std::size_t size);

  template <typename Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    write(&value, sizeof value);
  }
  template <typename Value>
  void put(const std::vector<Value>& values) {
    static_assert(std::is_trivially_copyable_v<Value>);
    put(std::uint64_t{values.size()});
    write(values.data(), values.size() * sizeof(Value));
  }
  void put(const std::string& text);
  void put(const std::vector<std::string>& texts);

 private:
  int descriptor_;
};

/// A child process. It starts in the constructor, and ends when this object or this process does. The caller
/// must not have started threads.
class Child {
 public:
  explicit Child(const std::function<void(ChildOutput&)>& work);
  /// Stops the child if it still runs.
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;

  /// Waits for at most so long, and returns whether there is output to read or the child has ended.
  [[nodiscard]] bool has_output_within(std::chrono::milliseconds time) const;

  /// Waits for the next bytes of the child's output. All functions that read throw ChildError if the child
  /// ends before them.
  void read(void* data, std::size_t size);

  // The counterparts of ChildOutput::put, to be called in the same order and with the same types.
  template <typename Value>
  void get(Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    read(&value, sizeof value);
  }
  template <typename Value>
  void get(std::vector<Value>& values) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::uint64_t count = 0;
    get(count);
    values.resize(count);
    read(values.data(), count * sizeof(Value));
  }
  void get(std::string& text);
  void get(std::vector<std::string>& texts);

  /// Waits for the end of the child, and passes its stderr on to this process's. Throws ChildError if the
  /// child did not succeed.
  void finish();

 private:
  std::string reap();  // the error; empty if the child succeeded

  pid_t pid_ = -1;
  Descriptor reader_;
  std::FILE* messages_ = nullptr;  // the child's stderr
};

}  // namespace fomoe
