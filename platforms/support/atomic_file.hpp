// A file that appears whole or not at all: written piece by piece under a temporary name beside the target.
#pragma once
#include <string>
#include <string_view>

namespace fomoe {

/// Throws std::runtime_error where anything fails; without commit() nothing stays behind.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  /// On disk, then renamed to the target.
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::string target_, temporary_;
  int descriptor_ = -1;
};

/// Writes all of `text` or nothing. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& text);

}  // namespace fomoe
