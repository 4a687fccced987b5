// The readers of files and messages that the fuzzer tries, as a table.
#pragma once
#include <span>
#include <string>

namespace fomoe::fuzz {

struct Reader {
  const char* name;
  /// Name of the file with the bytes, on whose ending some readers depend. nullptr: the reader gets the bytes
  /// themselves.
  const char* file;
  /// Reads the file of this path, which a folder of its own contains and nothing else; or the bytes.
  void (*read)(const std::string& path_or_bytes);
  /// Text files that are tried first, as globs relative to the root of the repository; separated by spaces.
  const char* seeds;
};

std::span<const Reader> file_readers();     // what a scenario or an option names
std::span<const Reader> message_readers();  // what comes from a socket or from another process
std::span<const Reader> trainer_readers();  // checkpoints, and the messages of a run's store

}  // namespace fomoe::fuzz
