#include "experiments/files/model_shape_json.hpp"

#include <algorithm>
#include <iterator>

namespace fomoe::scenario {
namespace {

using costmodel::LatentAttention;
using costmodel::ModelShape;
using costmodel::QueryKeyNorm;

template <class Owner, class Value>
struct Member {
  const char* name;
  Value Owner::*member;
};

constexpr Member<ModelShape, std::int64_t> kCounts[] = {{"kv_heads", &ModelShape::kv_heads},
                                                        {"head_dim", &ModelShape::head_dim},
                                                        {"window_tokens", &ModelShape::window_tokens},
                                                        {"window_layers", &ModelShape::window_layers},
                                                        {"dense_layers", &ModelShape::dense_layers},
                                                        {"d_ffn", &ModelShape::d_ffn},
                                                        {"shared_experts", &ModelShape::shared_experts},
                                                        {"norms_per_layer", &ModelShape::norms_per_layer},
                                                        {"outer_norms", &ModelShape::outer_norms}};
constexpr Member<ModelShape, bool> kFlags[] = {
    {"qkv_bias", &ModelShape::qkv_bias},
    {"output_bias", &ModelShape::output_bias},
    {"sinks", &ModelShape::sinks},
    {"gated", &ModelShape::gated},
    {"ffn_bias", &ModelShape::ffn_bias},
    {"router_bias", &ModelShape::router_bias},
    {"tied_embeddings", &ModelShape::tied_embeddings},
    {"embedding_counts_as_active", &ModelShape::embedding_counts_as_active}};
constexpr Member<LatentAttention, std::int64_t> kLatent[] = {{"query_rank", &LatentAttention::query_rank},
                                                             {"kv_rank", &LatentAttention::kv_rank},
                                                             {"nope_dim", &LatentAttention::nope_dim},
                                                             {"rope_dim", &LatentAttention::rope_dim},
                                                             {"v_dim", &LatentAttention::v_dim}};
constexpr Member<costmodel::OpaqueCounts, std::int64_t> kOpaque[] = {
    {"dense_parameters", &costmodel::OpaqueCounts::dense_parameters},
    {"expert_parameters", &costmodel::OpaqueCounts::expert_parameters}};
// Indexed by the value of the enum.
constexpr const char* kNorms[] = {"none", "per_head", "all_heads"};

template <class Owner, std::size_t N>
Json object_json(const Owner& owner, const Member<Owner, std::int64_t> (&members)[N]) {
  Json json = Json::object();
  for (const auto& member : members) json[member.name] = owner.*member.member;
  return json;
}

template <class Owner, std::size_t N>
Owner read_object(const std::string& path, const JsonKind& kind, const std::string& where, const Json& json,
                  const Member<Owner, std::int64_t> (&members)[N]) {
  std::vector<std::string> keys;
  for (const auto& member : members) keys.emplace_back(member.name);
  const JsonObject reader(path, kind, where, json, keys);
  Owner owner;
  for (const auto& member : members) owner.*member.member = reader.count(member.name, 0);
  return owner;
}

std::vector<std::string> all_keys() {
  std::vector<std::string> keys = {
      "name",           "d_model",  "layers",     "heads",           "experts",
      "active_experts", "d_expert", "vocabulary", "sequence_length", "architecture",
      "query_key_norm", "latent",   "opaque"};
  for (const auto& member : kCounts) keys.emplace_back(member.name);
  for (const auto& member : kFlags) keys.emplace_back(member.name);
  return keys;
}

}  // namespace

Json exact_shape_json(const ModelShape& shape) {
  const ModelShape usual;
  Json json = paper_shape_json(shape);
  if (shape.architecture != usual.architecture) json["architecture"] = shape.architecture;
  for (const auto& member : kCounts) {
    if (shape.*member.member != usual.*member.member) json[member.name] = shape.*member.member;
  }
  for (const auto& member : kFlags) {
    if (shape.*member.member != usual.*member.member) json[member.name] = shape.*member.member;
  }
  if (shape.query_key_norm != QueryKeyNorm::none)
    json["query_key_norm"] = kNorms[static_cast<std::size_t>(shape.query_key_norm)];
  if (shape.latent) json["latent"] = object_json(*shape.latent, kLatent);
  if (shape.opaque) json["opaque"] = object_json(*shape.opaque, kOpaque);
  return json;
}

ModelShape read_exact_shape(const std::string& path, const JsonKind& kind, const Json& json) {
  const JsonObject reader(path, kind, "model", json, all_keys());
  ModelShape shape;
  shape.name = reader.text("name");
  if (reader.has("architecture")) shape.architecture = reader.text("architecture");
  // Models of other families may be dense, or may be described by their parameter counts alone.
  const std::int64_t least = shape.architecture == ModelShape{}.architecture ? 1 : 0;
  shape.d_model = reader.count("d_model", least);
  shape.layers = reader.count("layers", 1);
  shape.heads = reader.count("heads", least);
  shape.experts = reader.count("experts", least);
  shape.active_experts = reader.count("active_experts", least);
  shape.d_expert = reader.count("d_expert", least);
  shape.vocabulary = reader.count("vocabulary", least);
  shape.sequence_length = reader.count("sequence_length", 1);
  for (const auto& member : kCounts) {
    if (reader.has(member.name)) shape.*member.member = reader.count(member.name, 0);
  }
  for (const auto& member : kFlags) {
    if (reader.has(member.name)) shape.*member.member = reader.boolean(member.name);
  }
  if (reader.has("query_key_norm")) {
    const std::string name = reader.text("query_key_norm");
    const auto* found = std::find(std::begin(kNorms), std::end(kNorms), name);
    if (found == std::end(kNorms))
      reader.refuse("query_key_norm", '"' + name + '"', "none, per_head or all_heads");
    shape.query_key_norm = static_cast<QueryKeyNorm>(found - std::begin(kNorms));
  }
  if (reader.has("latent"))
    shape.latent = read_object(path, kind, "model.latent", reader.at("latent", "an object"), kLatent);
  if (reader.has("opaque"))
    shape.opaque = read_object(path, kind, "model.opaque", reader.at("opaque", "an object"), kOpaque);
  return shape;
}

Json paper_shape_json(const costmodel::ModelShape& shape) {
  return {{"name", shape.name},
          {"d_model", shape.d_model},
          {"layers", shape.layers},
          {"heads", shape.heads},
          {"experts", shape.experts},
          {"active_experts", shape.active_experts},
          {"d_expert", shape.d_expert},
          {"vocabulary", shape.vocabulary},
          {"sequence_length", shape.sequence_length}};
}

}  // namespace fomoe::scenario
