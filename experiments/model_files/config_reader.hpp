// Access to the fields of a config.json. Every error names the file, the line of the field and the expected
// value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/json/json.hpp"

namespace fomoe::scenario {

/// An upper bound for counts. No model has a larger count. The bound is small enough that the program can
/// detect a sum of products of counts that would overflow.
inline constexpr std::int64_t kMaxConfigValue = 100'000'000;
inline constexpr std::int64_t kMaxLayers = 100'000;

/// A null value counts as absent, as in the library that writes these files.
class ConfigReader {
 public:
  /// Throws FileError if the file cannot be read or is not a JSON object.
  explicit ConfigReader(const std::string& path);

  /// The same file, of which only the object `field` is read. Throws FileError if it is not an object.
  [[nodiscard]] ConfigReader inside(const std::string& field) const;

  [[nodiscard]] bool has(const std::string& field) const;
  [[nodiscard]] std::string text(const std::string& field, const std::string& expected,
                                 const std::string& example) const;
  [[nodiscard]] std::int64_t count(const std::string& field, std::int64_t least = 1) const;
  [[nodiscard]] std::int64_t count_or(const std::string& field, std::int64_t fallback) const;
  /// A number of layers, at most kMaxLayers.
  [[nodiscard]] std::int64_t layers(const std::string& field) const;
  /// A count that some files write as a list with the same count for each layer.
  [[nodiscard]] std::int64_t count_of_all_layers(const std::string& field, std::int64_t least = 1) const;
  [[nodiscard]] bool yes_no_or(const std::string& field, bool fallback) const;
  /// A list of words, one for each layer; nothing if the field is absent.
  [[nodiscard]] std::optional<std::vector<std::string>> words(const std::string& field) const;
  /// A list of whole numbers from 0 to `most`; nothing if the field is absent.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> numbers(const std::string& field,
                                                                 std::int64_t most) const;

  [[noreturn]] void refuse(const std::string& field, const std::string& expected, const std::string& example,
                           const std::string& suggestion = "") const;

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// The line of the field, or line 1 if it is missing.
  [[nodiscard]] std::string place(const std::string& field) const;

  std::string path_, text_;
  std::size_t begin_ = 0;  // where the object begins in the text
  Json json_;
};

}  // namespace fomoe::scenario
