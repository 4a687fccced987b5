// A file in the folder of the output file. It stores the rows computed so far, so that a killed sweep can be
// resumed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "experiments/sweep/rows.hpp"
#include "platforms/support/descriptor.hpp"

namespace fomoe::sweep {

/// All inputs that determine the rows of a sweep, as bytes: the program, the scenario with the contents of
/// all files that it names, the values, the shard and the engine's options.
std::string identity_of(const Request& request, const sim::RunOptions& options);

/// The file has a line that identifies the sweep, followed by chunks with checksums. Once append() has
/// returned, its rows remain in the file even if the process is killed. A chunk that a crash of the machine
/// left incomplete is detected and computed again.
class Journal {
 public:
  /// Throws std::runtime_error if the file cannot be written.
  Journal(std::string path, const std::string& identity);
  Journal(Journal&&) = default;
  Journal& operator=(Journal&&) = default;

  /// foreign: no journal, but another file, or a symbolic link.
  enum class Found { nothing, same, other, foreign };
  /// Whether there is a journal, and whether it belongs to the same sweep.
  [[nodiscard]] Found found() const;
  /// The number of rows that the journal of the same sweep has from `begin` on.
  [[nodiscard]] std::uint64_t stored_rows(std::uint64_t begin) const;
  /// Passes the stored rows to `sink`, in order from `begin` on, and returns the first missing row. New
  /// chunks are appended after them.
  std::uint64_t go_on(std::uint64_t begin, const Sink& sink);
  /// Starts an empty journal and discards an existing one.
  void start_anew();
  void append(const Chunk& chunk);
  /// Deletes the journal, if the file is still the one that was written. Call it when the output is complete.
  void remove();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::uint64_t read(std::uint64_t begin, const Sink& sink, std::uint64_t& good_bytes) const;
  void open();
  void write(std::string_view text);

  std::string path_, header_;
  Descriptor file_;
};

}  // namespace fomoe::sweep
