// The owner of a file descriptor.
#pragma once
#include <unistd.h>

#include <utility>

namespace fomoe {

/// Closes a file descriptor: of a file, a pipe or a socket. A negative value is none, as system calls return
/// it.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = other.release();
    }
    return *this;
  }
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const { return value_; }
  /// Closes it now.
  void reset() {
    if (const int value = release(); value >= 0) ::close(value);
  }
  /// Gives it up to the caller, who must close it.
  [[nodiscard]] int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

}  // namespace fomoe
