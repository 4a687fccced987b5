// What a sweep has computed so far, in a file beside its output: one that was killed goes on from there.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>

#include "experiments/sweep/rows.hpp"

namespace fomoe::sweep {

/// What decides the rows of a sweep, as bytes: the program, the scenario with the contents of all files that
/// it names, the values, the shard and the engine's options.
std::string identity_of(const Request& request, const sim::RunOptions& options);

/// A line that says what it is of, then chunk after chunk, each with a checksum. Rows are safe from a kill of
/// the process as soon as append() has returned; what a crash of the machine leaves half-written is noticed
/// and computed again.
class Journal {
 public:
  /// Throws std::runtime_error where the file cannot be written.
  Journal(std::string path, const std::string& identity);
  Journal(Journal&&) = default;
  Journal& operator=(Journal&&) = default;

  enum class Found { nothing, same, other };
  /// Whether there is a journal, and of the same sweep.
  [[nodiscard]] Found found() const;
  /// Rows of the earlier run to `sink`, in order from `begin` on; the first row that is missing. Further
  /// chunks are appended behind them.
  std::uint64_t go_on(std::uint64_t begin, const Sink& sink);
  /// Empty, whatever was there.
  void start_anew();
  void append(const Chunk& chunk);
  /// The output is complete.
  void remove();

 private:
  std::string path_, header_;
  std::ofstream file_;
};

}  // namespace fomoe::sweep
