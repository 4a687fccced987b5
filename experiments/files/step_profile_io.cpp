#include "experiments/files/step_profile_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/files/model_shape_json.hpp"
#include "experiments/json/json_object.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

constexpr JsonKind kProfile = {"fomoe.step-profile/1", "profile", "a step profile",
                               "a file that `fomoe-train profile` wrote"};
/// Version 2 has a GPU's share of the sequences beside the micro-batch, for steps of several micro-batches.
constexpr JsonKind kWithShares = {"fomoe.step-profile/2", "profile", "a step profile",
                                  "a file that `fomoe profile import` wrote"};

const std::vector<std::string>& profile_keys() {
  static const std::vector<std::string> keys = {"schema",          "model",  "device_kind", "device_name",
                                                "threads",         "dtype",  "versions",    "measured_at",
                                                "shared_device",   "source", "origin",      "superseded",
                                                "synchronisation", "points"};
  return keys;
}

costmodel::ProfileOrigin read_origin(const std::string& path, const Json& json) {
  const JsonObject reader(
      path, kProfile, "origin", json,
      {"kind", "file", "sha256", "lines", "warmup_dropped", "gpus", "tensor_parallel", "pipeline_parallel",
       "context_parallel", "whole_steps", "recomputation", "composed", "scaled"});
  costmodel::ProfileOrigin origin;
  origin.kind = reader.text("kind");
  origin.file = reader.text("file");
  origin.sha256 = reader.text("sha256");
  origin.lines = reader.text("lines");
  origin.warmup_dropped = reader.count("warmup_dropped", 0);
  origin.gpus = reader.count("gpus", 1);
  if (reader.has("tensor_parallel")) origin.tensor_parallel = reader.count("tensor_parallel", 1);
  if (reader.has("pipeline_parallel")) origin.pipeline_parallel = reader.count("pipeline_parallel", 1);
  if (reader.has("context_parallel")) origin.context_parallel = reader.count("context_parallel", 1);
  origin.whole_steps = reader.boolean("whole_steps");
  origin.recomputation = costmodel::Recomputation::unstated;
  if (reader.has("recomputation")) {
    const std::string stated = reader.text("recomputation");
    const auto known = costmodel::enum_of<costmodel::Recomputation>(stated);
    if (!known)
      fail(path, "origin.recomputation", '"' + stated + '"',
           "one of " + joined(costmodel::all_names<costmodel::Recomputation>()), "\"full\"");
    origin.recomputation = *known;
  }
  origin.composed = reader.text("composed");
  origin.scaled = reader.text("scaled");
  return origin;
}

Json origin_json(const costmodel::ProfileOrigin& origin) {
  Json json = {{"kind", origin.kind},
               {"file", origin.file},
               {"sha256", origin.sha256},
               {"lines", origin.lines},
               {"warmup_dropped", origin.warmup_dropped},
               {"gpus", origin.gpus},
               {"whole_steps", origin.whole_steps},
               {"recomputation", to_string(origin.recomputation)},
               {"composed", origin.composed},
               {"scaled", origin.scaled}};
  if (origin.tensor_parallel > 1) json["tensor_parallel"] = origin.tensor_parallel;
  if (origin.pipeline_parallel > 1) json["pipeline_parallel"] = origin.pipeline_parallel;
  if (origin.context_parallel > 1) json["context_parallel"] = origin.context_parallel;
  return json;
}

costmodel::Superseded read_superseded(const std::string& path, const Json& json) {
  const JsonObject reader(path, kProfile, "superseded", json, {"date", "reason", "difference"});
  return {reader.text("date"), reader.text("reason"), reader.text("difference")};
}

costmodel::SynchronisationTimes read_synchronisation(const std::string& path, const Json& json) {
  const JsonObject reader(path, kProfile, "synchronisation", json,
                          {"payload_bytes_per_s", "outer_step_s_per_parameter", "sparse"});
  costmodel::SynchronisationTimes times;
  if (reader.has("sparse")) {
    const JsonObject sparse(path, kProfile, "synchronisation.sparse", reader.at("sparse", "an object"),
                            {"choose_s_per_element", "add_s_per_element"});
    const auto seconds = [&](const char* key) {
      const double value = sparse.number(key, "seconds above 0");
      if (value == 0) sparse.refuse(key, "0", "seconds above 0");
      return value;
    };
    times.sparse = {seconds("choose_s_per_element"), seconds("add_s_per_element")};
  }
  times.outer_step_s_per_parameter = reader.seconds("outer_step_s_per_parameter");
  const Json& rates = reader.at("payload_bytes_per_s", "an object");
  const JsonObject by_dtype(path, kProfile, "synchronisation.payload_bytes_per_s", rates,
                            costmodel::all_names<costmodel::ElementType>());
  for (const std::string& name : costmodel::all_names<costmodel::ElementType>()) {
    if (!by_dtype.has(name)) continue;
    const double bytes_per_s = by_dtype.number(name, "bytes per second above 0");
    if (bytes_per_s == 0)
      fail(path, "synchronisation.payload_bytes_per_s." + name, "0", "a rate above 0", "5e9");
    times.payload_rates.push_back({*costmodel::enum_of<costmodel::ElementType>(name), bytes_per_s});
  }
  return times;
}

Json synchronisation_json(const costmodel::SynchronisationTimes& times) {
  Json rates = Json::object();
  for (const auto& [dtype, bytes_per_s] : times.payload_rates) rates[to_string(dtype)] = bytes_per_s;
  Json json = {{"payload_bytes_per_s", rates},
               {"outer_step_s_per_parameter", times.outer_step_s_per_parameter}};
  if (times.sparse)
    json["sparse"] = {{"choose_s_per_element", times.sparse->choose_s_per_element},
                      {"add_s_per_element", times.sparse->add_s_per_element}};
  return json;
}

costmodel::ProfilePoint read_point(const std::string& path, const std::string& where, const Json& json) {
  const JsonObject reader(path, kProfile, where, json,
                          {"micro_batch_sequences", "local_experts", "skip_token", "peak_memory_bytes",
                           "samples", "accumulation_s", "cpu_share", "waited_share", "device_waited_share",
                           "sequences_per_gpu", "micro_batches", "memory_counter"});
  costmodel::ProfilePoint point;
  if (reader.has("sequences_per_gpu")) {
    const double share = reader.number("sequences_per_gpu", "a GPU's share of the sequences, above 0");
    if (share == 0) reader.refuse("sequences_per_gpu", "0", "a GPU's share of the sequences, above 0");
    point.sequences_per_gpu = share;
  }
  point.micro_batch_sequences = reader.count("micro_batch_sequences", point.sequences_per_gpu ? 0 : 1);
  if (reader.has("micro_batches")) point.micro_batches = reader.count("micro_batches", 0);
  if (reader.has("memory_counter")) {
    const std::string counter = reader.text("memory_counter");
    const auto known = costmodel::enum_of<costmodel::MemoryCounter>(counter);
    if (!known)
      reader.refuse("memory_counter", '"' + counter + '"',
                    "one of " + joined(costmodel::all_names<costmodel::MemoryCounter>()));
    point.memory_counter = *known;
  }
  point.local_experts = reader.count("local_experts", 0);
  point.skip_token = reader.boolean("skip_token");
  point.peak_memory_bytes = reader.count("peak_memory_bytes", 0);
  if (reader.has("accumulation_s")) point.accumulation_s = reader.seconds("accumulation_s");
  if (reader.has("cpu_share")) point.cpu_share = reader.seconds("cpu_share");
  if (reader.has("waited_share")) point.waited_share = reader.seconds("waited_share");
  if (reader.has("device_waited_share")) point.device_waited_share = reader.seconds("device_waited_share");
  for (const Json& sample : reader.filled_array("samples")) {
    const JsonObject times(path, kProfile, fmt::format("{}.samples[{}]", where, point.samples.size()), sample,
                           {"forward_s", "backward_s", "optimizer_s"});
    point.samples.push_back(
        {times.seconds("forward_s"), times.seconds("backward_s"), times.seconds("optimizer_s")});
  }
  return point;
}

}  // namespace

namespace {

/// Imports of the first schema wrote a GPU's share of the batch as its micro-batch, whatever the log said.
void forget_assumed_micro_batches(costmodel::StepProfile& profile) {
  if (!profile.origin || profile.origin->file.empty()) return;
  for (costmodel::ProfilePoint& point : profile.points) {
    if (point.sequences_per_gpu) continue;
    point.sequences_per_gpu = static_cast<double>(std::exchange(point.micro_batch_sequences, 0));
  }
}

costmodel::StepProfile profile_of(const std::string& path, const Json& json) {
  const JsonObject reader(path, kProfile, "", json, profile_keys());
  costmodel::StepProfile profile;
  profile.model = read_exact_shape(path, kProfile, reader.at("model", "an object"));
  profile.device_kind = reader.text("device_kind");
  profile.device_name = reader.text("device_name");
  profile.threads = static_cast<int>(std::min<std::int64_t>(reader.count("threads", 0), 1 << 20));
  profile.dtype = reader.text("dtype");
  profile.versions = reader.text("versions");
  profile.measured_at = reader.text("measured_at");
  if (reader.has("shared_device")) profile.shared_device = reader.boolean("shared_device");
  profile.source = path;
  if (reader.has("origin")) profile.origin = read_origin(path, reader.at("origin", "an object"));
  if (reader.has("superseded"))
    profile.superseded = read_superseded(path, reader.at("superseded", "an object"));
  if (reader.has("synchronisation"))
    profile.synchronisation = read_synchronisation(path, reader.at("synchronisation", "an object"));
  for (const Json& point : reader.filled_array("points")) {
    profile.points.push_back(read_point(path, fmt::format("points[{}]", profile.points.size()), point));
  }
  forget_assumed_micro_batches(profile);
  return profile;
}

}  // namespace

costmodel::StepProfile read_step_profile(const std::string& path) {
  return profile_of(path, read_any_json(path, {&kProfile, &kWithShares}));
}

costmodel::StepProfile parse_step_profile(const std::string& text, const std::string& name) {
  return profile_of(name, Json::parse(text));
}

std::string step_profile_json(const costmodel::StepProfile& profile) {
  Json points = Json::array();
  bool with_shares = false;  // programs that know only version 1 still read what has none
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
    if (point.accumulation_s) points.back()["accumulation_s"] = *point.accumulation_s;
    if (point.cpu_share) points.back()["cpu_share"] = *point.cpu_share;
    if (point.waited_share) points.back()["waited_share"] = *point.waited_share;
    if (point.device_waited_share) points.back()["device_waited_share"] = *point.device_waited_share;
    if (point.sequences_per_gpu) points.back()["sequences_per_gpu"] = *point.sequences_per_gpu;
    if (point.micro_batches > 0) points.back()["micro_batches"] = point.micro_batches;
    if (point.memory_counter != costmodel::MemoryCounter::allocated)
      points.back()["memory_counter"] = to_string(point.memory_counter);
    with_shares = with_shares || point.sequences_per_gpu;
  }
  Json document = {{"schema", with_shares ? kWithShares.schema : kProfile.schema},
                   {"model", exact_shape_json(profile.model)},
                   {"device_kind", profile.device_kind},
                   {"device_name", profile.device_name},
                   {"threads", profile.threads},
                   {"dtype", profile.dtype},
                   {"versions", profile.versions},
                   {"measured_at", profile.measured_at},
                   {"source", profile.source}};
  if (profile.shared_device) document["shared_device"] = true;
  if (profile.origin) document["origin"] = origin_json(*profile.origin);
  if (profile.superseded)
    document["superseded"] = {{"date", profile.superseded->date},
                              {"reason", profile.superseded->reason},
                              {"difference", profile.superseded->difference}};
  if (profile.synchronisation) document["synchronisation"] = synchronisation_json(*profile.synchronisation);
  document["points"] = points;
  return to_text(document);
}

}  // namespace fomoe::scenario
