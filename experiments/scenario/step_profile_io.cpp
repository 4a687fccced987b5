#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "experiments/scenario/document.hpp"
#include "experiments/scenario/json_io.hpp"
#include "experiments/scenario/json_values.hpp"
#include "experiments/scenario/suggest.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kSchema = "fomoe.step-profile/1";
constexpr const char* kRemedy = "a file that `fomoe-train profile` wrote";

/// One JSON object, read strictly: unknown keys are refused when it is made, missing ones when they are asked
/// for.
class ObjectReader {
 public:
  ObjectReader(const std::string& file, std::string where, const Json& object,
               const std::vector<std::string>& keys)
      : file_(file), where_(std::move(where)), object_(object) {
    if (!object.is_object())
      fail(file_, where_.empty() ? "profile" : where_, object.type_name(), "an object", kRemedy);
    for (const auto& item : object.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
        fail(file_, key(item.key()), "an unknown key", "one of " + joined(keys), kRemedy,
             nearest(item.key(), keys));
      }
    }
  }

  [[nodiscard]] std::string key(const std::string& name) const {
    return where_.empty() ? name : where_ + '.' + name;
  }

  [[nodiscard]] const Json& at(const std::string& name, const std::string& expected) const {
    const auto found = object_.find(name);
    if (found == object_.end()) fail(file_, key(name), "nothing", expected, kRemedy);
    return *found;
  }

  [[nodiscard]] std::string text(const std::string& name) const {
    const Json& value = at(name, "a text");
    if (!value.is_string()) refuse(name, value, "a text");
    return value.get<std::string>();
  }

  [[nodiscard]] std::int64_t count(const std::string& name, std::int64_t least) const {
    const std::string expected = fmt::format("a whole number of at least {}", least);
    const Json& value = at(name, expected);
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > 1ULL << 62) ||
        value.get<std::int64_t>() < least) {
      refuse(name, value, expected);
    }
    return value.get<std::int64_t>();
  }

  [[nodiscard]] double seconds(const std::string& name) const {
    const Json& value = at(name, "seconds of zero or more");
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
      refuse(name, value, "seconds of zero or more");
    }
    return value.get<double>();
  }

  [[nodiscard]] bool yes_no(const std::string& name) const {
    const Json& value = at(name, "true or false");
    if (!value.is_boolean()) refuse(name, value, "true or false");
    return value.get<bool>();
  }

  [[nodiscard]] const Json& filled_array(const std::string& name) const {
    const Json& value = at(name, "an array with at least one entry");
    if (!value.is_array() || value.empty()) refuse(name, value, "an array with at least one entry");
    return value;
  }

  [[noreturn]] void refuse(const std::string& name, const Json& value, const std::string& expected) const {
    const std::string written = value.is_structured()
                                    ? (value.empty() ? "an empty one" : value.type_name())
                                    : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    fail(file_, key(name), written, expected, kRemedy);
  }

 private:
  const std::string& file_;
  std::string where_;
  const Json& object_;
};

const std::vector<std::string>& profile_keys() {
  static const std::vector<std::string> keys = {"schema", "model",    "device_kind", "device_name", "threads",
                                                "dtype",  "versions", "measured_at", "source",      "points"};
  return keys;
}

Json parse(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    fail(path + ":1", "profile", "no file that can be read", "a step profile", kRemedy);
  }
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto bytes = static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    const auto line = 1 + std::count(text.begin(), text.begin() + bytes, '\n');
    fail(fmt::format("{}:{}", path, line), "profile", "what is no JSON", "a step profile", kRemedy);
  } catch (const Json::out_of_range&) {  // 1e999
    fail(path + ":1", "profile", "a number that is too large", "finite numbers", kRemedy);
  }
}

costmodel::ModelShape read_shape(const std::string& path, const Json& json) {
  const ObjectReader reader(path, "model", json,
                            {"name", "d_model", "layers", "heads", "experts", "active_experts", "d_expert",
                             "vocabulary", "sequence_length"});
  return {reader.text("name"),         reader.count("d_model", 1),    reader.count("layers", 1),
          reader.count("heads", 1),    reader.count("experts", 1),    reader.count("active_experts", 1),
          reader.count("d_expert", 1), reader.count("vocabulary", 1), reader.count("sequence_length", 1)};
}

costmodel::ProfilePoint read_point(const std::string& path, const std::string& where, const Json& json) {
  const ObjectReader reader(
      path, where, json,
      {"micro_batch_sequences", "local_experts", "skip_token", "peak_memory_bytes", "samples"});
  costmodel::ProfilePoint point;
  point.micro_batch_sequences = reader.count("micro_batch_sequences", 1);
  point.local_experts = reader.count("local_experts", 0);
  point.skip_token = reader.yes_no("skip_token");
  point.peak_memory_bytes = reader.count("peak_memory_bytes", 0);
  for (const Json& sample : reader.filled_array("samples")) {
    const ObjectReader times(path, fmt::format("{}.samples[{}]", where, point.samples.size()), sample,
                             {"forward_s", "backward_s", "optimizer_s"});
    point.samples.push_back(
        {times.seconds("forward_s"), times.seconds("backward_s"), times.seconds("optimizer_s")});
  }
  return point;
}

}  // namespace

costmodel::StepProfile read_step_profile(const std::string& path) {
  const Json json = parse(path);
  const std::string quoted_schema = std::string("\"") + kSchema + '"';
  // Asked first: a file of another kind should not be told about its keys.
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kSchema) {
    const bool has = json.is_object() && json.contains("schema") && json["schema"].is_string();
    fail(path + ":1", "schema", has ? '"' + json["schema"].get<std::string>() + '"' : "nothing",
         quoted_schema, kRemedy);
  }
  const ObjectReader reader(path, "", json, profile_keys());
  costmodel::StepProfile profile;
  profile.model = read_shape(path, reader.at("model", "an object"));
  profile.device_kind = reader.text("device_kind");
  profile.device_name = reader.text("device_name");
  profile.threads = static_cast<int>(std::min<std::int64_t>(reader.count("threads", 0), 1 << 20));
  profile.dtype = reader.text("dtype");
  profile.versions = reader.text("versions");
  profile.measured_at = reader.text("measured_at");
  profile.source = path;
  for (const Json& point : reader.filled_array("points")) {
    profile.points.push_back(read_point(path, fmt::format("points[{}]", profile.points.size()), point));
  }
  return profile;
}

std::string step_profile_json(const costmodel::StepProfile& profile) {
  Json points = Json::array();
  for (const costmodel::ProfilePoint& point : profile.points) {
    Json samples = Json::array();
    for (const costmodel::StepSample& sample : point.samples) {
      samples.push_back({{"forward_s", sample.forward_s},
                         {"backward_s", sample.backward_s},
                         {"optimizer_s", sample.optimizer_s}});
    }
    points.push_back({{"micro_batch_sequences", point.micro_batch_sequences},
                      {"local_experts", point.local_experts},
                      {"skip_token", point.skip_token},
                      {"peak_memory_bytes", point.peak_memory_bytes},
                      {"samples", samples}});
  }
  return to_text({{"schema", kSchema},
                  {"model", paper_shape_json(profile.model)},
                  {"device_kind", profile.device_kind},
                  {"device_name", profile.device_name},
                  {"threads", profile.threads},
                  {"dtype", profile.dtype},
                  {"versions", profile.versions},
                  {"measured_at", profile.measured_at},
                  {"source", profile.source},
                  {"points", points}});
}

}  // namespace fomoe::scenario
