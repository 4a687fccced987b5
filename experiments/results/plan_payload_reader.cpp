#include "experiments/results/plan_payload_reader.hpp"

namespace fomoe::scenario {

using namespace costmodel;

namespace {

WireFormat read_format(const std::string& path, const JsonObject& payload, const std::string& key,
                       const std::string& where) {
  const JsonObject reader = {
      path,
      kPlan,
      where + "." + key,
      payload.at(key, "an object"),
      {"type", "kept_share", "index_bits", "entropy_coded", "block_elements", "scale_bits"}};
  WireFormat format;
  format.type = choice(reader, "type", ElementType::bf16, true);
  if (reader.has("kept_share")) {
    format.kept_share = reader.number("kept_share", "a number above 0 and up to 1");
    if (!(format.kept_share > 0 && format.kept_share <= 1))
      reader.refuse_value("kept_share", reader.at("kept_share", ""), "a number above 0 and up to 1");
  }
  if (reader.has("index_bits")) format.index_bits = static_cast<int>(reader.count("index_bits", 0, 64));
  if (reader.has("entropy_coded")) format.entropy_coded = reader.boolean("entropy_coded");
  if (reader.has("block_elements")) format.block_elements = reader.count("block_elements", 0, kMostElements);
  if (reader.has("scale_bits")) format.scale_bits = static_cast<int>(reader.count("scale_bits", 0, 64));
  return format;
}

}  // namespace

Payload read_payload(const std::string& path, const Json& json, const std::string& where,
                     std::size_t groups) {
  const JsonObject reader = {
      path,
      kPlan,
      where,
      json,
      {"content", "traffic", "groups", "bytes", "elements", "format", "result", "chunk", "chunks"}};
  Payload payload;
  payload.content = choice(reader, "content", Content::parameter, false);
  payload.traffic = choice(reader, "traffic", TrafficClass::dense, false);
  if (reader.has("bytes")) {
    for (const char* other : {"elements", "format", "groups"})
      if (reader.has(other))
        reader.refuse("bytes", fmt::format("both bytes and {}", other), "only one of them");
    payload.format.type = ElementType::int8;  // one byte per element
    payload.elements = reader.count("bytes", 0, kMostElements);
    return payload;
  }
  if (!reader.has("elements")) reader.refuse("bytes", "nothing", "bytes, or elements with format");
  payload.elements = reader.count("elements", 0, kMostElements);
  payload.format = read_format(path, reader, "format", where);
  if (reader.has("result")) payload.result = read_format(path, reader, "result", where);
  if (reader.has("groups")) {
    const auto last = static_cast<std::int64_t>(groups) - 1;
    for (const std::int64_t id : reader.counts(
             "groups", 0, last, fmt::format("groups of the plan, whole numbers from 0 to {}", last)))
      payload.groups.push_back(static_cast<GroupId>(id));
  }
  if (reader.has("chunks")) payload.chunks = static_cast<int>(reader.count("chunks", 1, kMostNodes));
  if (reader.has("chunk")) payload.chunk = static_cast<int>(reader.count("chunk", 0, payload.chunks - 1));
  return payload;
}

}  // namespace fomoe::scenario
