// Strict reading of JSON. Every error names the file, the key and the expected value.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/json/json.hpp"

namespace fomoe::scenario {

/// A kind of JSON file, for error messages.
struct JsonKind {
  const char* schema;   // "fomoe.plan/1"
  const char* subject;  // "plan"
  const char* article;  // "a plan"
  const char* remedy;   // the remedy that the message suggests after "for example"
};

/// One JSON object with strict checks. The constructor rejects unknown keys; reading a missing key is an
/// error. `where` is the object's path from the top level, such as "ops[3]".
class JsonObject {
 public:
  JsonObject(const std::string& file, const JsonKind& kind, std::string where, const Json& object,
             const std::vector<std::string>& keys);

  [[nodiscard]] bool has(const std::string& name) const { return object_.contains(name); }
  [[nodiscard]] std::string key(const std::string& name) const;
  [[nodiscard]] const Json& at(const std::string& name, const std::string& expected) const;
  [[nodiscard]] std::string text(const std::string& name) const;
  [[nodiscard]] std::int64_t count(const std::string& name, std::int64_t least,
                                   std::int64_t most = 1LL << 62) const;
  [[nodiscard]] double number(const std::string& name, const std::string& expected) const;  // at least zero
  [[nodiscard]] double seconds(const std::string& name) const {
    return number(name, "seconds of zero or more");
  }
  [[nodiscard]] bool boolean(const std::string& name) const;
  [[nodiscard]] const Json& array(const std::string& name) const;
  [[nodiscard]] const Json& filled_array(const std::string& name) const;
  /// Reads an array of whole numbers from `least` to `most`. An error names the index of the wrong number.
  [[nodiscard]] std::vector<std::int64_t> counts(const std::string& name, std::int64_t least,
                                                 std::int64_t most, const std::string& expected) const;

  [[noreturn]] void refuse_value(const std::string& name, const Json& value,
                                 const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& name, const std::string& got,
                           const std::string& expected) const;

 private:
  const std::string& file_;
  const JsonKind& kind_;
  std::string where_;
  const Json& object_;
};

/// Like the constructor of JsonObject, but allows unknown keys. `file` and `kind` must outlive the returned
/// object.
JsonObject open_object(const std::string& file, const JsonKind& kind, std::string where, const Json& object);

/// Reads the file as JSON and checks its schema. Throws FileError.
Json read_json_file(const std::string& path, const JsonKind& kind);
/// Accepts any of several kinds; error messages name the first.
Json read_any_json(const std::string& path, const std::vector<const JsonKind*>& kinds);

}  // namespace fomoe::scenario
