// Access to the fields of a config.json. Every error names the file, the line of the field and the expected
// value. A field that the file omits has the default of the library that writes these files, if it is known
// (library_defaults.hpp); the reader remembers which defaults were read.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
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

  /// Omitted fields have the defaults of the architecture `model_type` from now on.
  void take_defaults(const std::string& model_type);
  /// The field has this value from now on, whatever the file says.
  void take(const std::string& field, const Json& value) { given_[field] = value; }

  /// Whether the field has a value, by the file or by a default.
  [[nodiscard]] bool has(const std::string& field) const;
  /// Whether the file itself has the field.
  [[nodiscard]] bool states(const std::string& field) const { return json_.contains(field); }
  [[nodiscard]] std::string text(const std::string& field, const std::string& expected,
                                 const std::string& example) const;
  [[nodiscard]] std::int64_t count(const std::string& field, std::int64_t least = 1) const;
  [[nodiscard]] std::int64_t count_or(const std::string& field, std::int64_t fallback) const;
  /// A number of layers, at most kMaxLayers.
  [[nodiscard]] std::int64_t layers(const std::string& field) const;
  /// The first count of a list, or the only one. Files of models with experts for images have a list, in
  /// which the first number is that of the experts for text.
  [[nodiscard]] std::int64_t first_count(const std::string& field, std::int64_t least = 1) const;
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

  /// "num_key_value_heads = 4" for each default that was read, in the order of their names.
  [[nodiscard]] std::vector<std::string> used_defaults() const;
  /// Whether the library's defaults of the architecture are known.
  [[nodiscard]] bool knows_defaults() const { return !source_.empty(); }
  /// Who made the defaults, such as "transformers 5.24.0 for gemma2"; empty if they are not known.
  [[nodiscard]] const std::string& source_of_defaults() const { return source_; }

  /// The file and the line of the field, or line 1 if it is missing.
  [[nodiscard]] std::string place(const std::string& field) const;
  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// The value of a field that has one.
  [[nodiscard]] const Json& at(const std::string& field) const;
  std::string path_, text_;
  std::size_t begin_ = 0;  // where the object begins in the text
  Json json_;
  Json given_ = Json::object(), defaults_ = Json::object();
  std::string source_;
  bool complete_ = false;  // no defaults are known, so that the file must state what it would have by default
  std::shared_ptr<std::set<std::string>> used_ = std::make_shared<std::set<std::string>>();
};

}  // namespace fomoe::scenario
