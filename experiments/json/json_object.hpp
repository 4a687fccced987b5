// Strict reading of JSON: every mistake is named by the file, the key and what was expected of it.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/json/json.hpp"

namespace fomoe::scenario {

/// A kind of JSON file, for messages.
struct JsonKind {
  const char* schema;   // "fomoe.plan/1"
  const char* subject;  // "plan"
  const char* article;  // "a plan"
  const char* remedy;   // after "for example"
};

/// One JSON object, read strictly: unknown keys are refused when it is made, missing ones when they are asked
/// for. `where` is its path from the top, "ops[3]".
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
  [[nodiscard]] double number(const std::string& name, const std::string& expected) const;  // zero or more
  [[nodiscard]] double seconds(const std::string& name) const {
    return number(name, "seconds of zero or more");
  }
  [[nodiscard]] bool boolean(const std::string& name) const;
  [[nodiscard]] const Json& array(const std::string& name) const;
  [[nodiscard]] const Json& filled_array(const std::string& name) const;
  /// Whole numbers from `least` to `most`; a wrong one is named by its place in the array.
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

/// The same for what may have keys that this version does not know. `file` and `kind` outlive what is
/// returned.
JsonObject open_object(const std::string& file, const JsonKind& kind, std::string where, const Json& object);

/// The file as JSON with that schema. Throws FileError.
Json read_json_file(const std::string& path, const JsonKind& kind);
/// The same where several kinds will do; the first is what messages expect.
Json read_any_json(const std::string& path, const std::vector<const JsonKind*>& kinds);

}  // namespace fomoe::scenario
