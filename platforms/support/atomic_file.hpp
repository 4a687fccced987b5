// Atomic output files: a file is written without a name in the folder of the target, and takes the target's
// place when it is complete. A program that is killed leaves nothing. File systems without nameless files
// (O_TMPFILE) get a file with a temporary name instead.
#pragma once
#include <string>
#include <string_view>

#include "platforms/support/descriptor.hpp"

namespace fomoe {

/// A file that replaces its target at commit(), and has the target's mode. Without commit() the destructor
/// removes it. All functions throw std::runtime_error if they fail.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  /// Flushes the file to the disk, and renames it to the target.
  void commit();

 private:
  [[noreturn]] void fail() const;
  void name_it();

  std::string target_, temporary_;  // temporary_ is empty while the file has no name
  Descriptor file_;
};

/// Writes `text` to the file atomically. Throws std::runtime_error if it fails.
void write_file(const std::string& path, const std::string& text);

}  // namespace fomoe
