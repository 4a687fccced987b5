// What `--vary` says: one key of the scenario and the values it takes in turn.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::sweep {

struct Axis {
  std::string key;     // "platform.bandwidth"
  std::string column;  // with the unit of its numbers: "platform.bandwidth_bytes_per_s"
  scenario::Kind kind = scenario::Kind::text;
  std::vector<double> numbers;     // SI; empty for words
  std::vector<std::string> words;  // empty for numbers
  [[nodiscard]] bool numeric() const { return !numbers.empty(); }
  [[nodiscard]] std::size_t size() const { return numeric() ? numbers.size() : words.size(); }
  /// "platform.bandwidth=125000000Bps": reads back as exactly that value.
  [[nodiscard]] std::string assignment(std::size_t index) const;
};

/// "key=v1,v2,…", "key=lo..hi+step" (lo, lo + step, …, up to hi), "key=lo..hi*factor", or
/// "key=lo..hi*n/decade" (n values to a factor of 10); what a product gives for a count is rounded to a whole
/// number. Throws UsageError, or FileError for a key or value that no scenario may have.
Axis parse_axis(const std::string& text);

/// Every combination of the axes' values, numbered: the last axis turns fastest.
class Grid {
 public:
  explicit Grid(std::vector<Axis> axes);
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  /// Index into axes()[a]'s values.
  [[nodiscard]] std::size_t digit(std::uint64_t row, std::size_t axis) const {
    return static_cast<std::size_t>(row / strides_[axis] % axes_[axis].size());
  }
  /// The row with another value of one axis.
  [[nodiscard]] std::uint64_t with_digit(std::uint64_t row, std::size_t axis, std::size_t digit) const {
    return row - this->digit(row, axis) * strides_[axis] + digit * strides_[axis];
  }
  [[nodiscard]] std::vector<std::string> assignments(std::uint64_t row) const;

 private:
  std::vector<Axis> axes_;
  std::vector<std::uint64_t> strides_;
  std::uint64_t rows_ = 1;
};

}  // namespace fomoe::sweep
