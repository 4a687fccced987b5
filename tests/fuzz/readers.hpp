// The readers of files and messages that the fuzzer tries, as a table.
#pragma once
#include <span>
#include <string>

namespace fomoe::fuzz {

struct Reader {
  const char* name;
  const char* file;  // name of the file with the bytes; some readers depend on the ending
  /// Reads the file. A folder of its own contains the file, and nothing else.
  void (*read)(const std::string& path);
  /// Text files that are tried first, as globs relative to the root of the repository; separated by spaces.
  const char* seeds;
};

std::span<const Reader> file_readers();     // what a scenario or an option names
std::span<const Reader> message_readers();  // what comes from a socket or from another process

}  // namespace fomoe::fuzz
