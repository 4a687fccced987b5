#include "experiments/files/model_shape_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>

namespace fomoe::scenario {
namespace {

using costmodel::AttentionGate;
using costmodel::CompressedAttention;
using costmodel::LatentAttention;
using costmodel::LinearAttention;
using costmodel::LinearKind;
using costmodel::ModelShape;
using costmodel::QueryKeyNorm;
using costmodel::SparseIndexer;

template <class Owner, class Value>
struct Member {
  const char* name;
  Value Owner::*member;
};

constexpr Member<ModelShape, std::int64_t> kCounts[] = {
    {"kv_heads", &ModelShape::kv_heads},
    {"head_dim", &ModelShape::head_dim},
    {"query_rank", &ModelShape::query_rank},
    {"window_tokens", &ModelShape::window_tokens},
    {"window_layers", &ModelShape::window_layers},
    {"dense_layers", &ModelShape::dense_layers},
    {"d_ffn", &ModelShape::d_ffn},
    {"shared_experts", &ModelShape::shared_experts},
    {"norms_per_layer", &ModelShape::norms_per_layer},
    {"outer_norms", &ModelShape::outer_norms},
    {"d_shared", &ModelShape::d_shared},
    {"identity_experts", &ModelShape::identity_experts},
    {"layers_without_attention", &ModelShape::layers_without_attention},
    {"layers_without_ffn", &ModelShape::layers_without_ffn},
    {"residual_streams", &ModelShape::residual_streams},
    {"prediction_modules", &ModelShape::prediction_modules},
    {"other_parameters", &ModelShape::other_parameters}};
constexpr Member<ModelShape, bool> kFlags[] = {
    {"qkv_bias", &ModelShape::qkv_bias},
    {"output_bias", &ModelShape::output_bias},
    {"sinks", &ModelShape::sinks},
    {"chunked", &ModelShape::chunked},
    {"gated", &ModelShape::gated},
    {"ffn_bias", &ModelShape::ffn_bias},
    {"router_bias", &ModelShape::router_bias},
    {"shared_gate", &ModelShape::shared_gate},
    {"norm_bias", &ModelShape::norm_bias},
    {"tied_embeddings", &ModelShape::tied_embeddings},
    {"embedding_counts_as_active", &ModelShape::embedding_counts_as_active}};
constexpr Member<LatentAttention, std::int64_t> kLatent[] = {{"query_rank", &LatentAttention::query_rank},
                                                             {"kv_rank", &LatentAttention::kv_rank},
                                                             {"nope_dim", &LatentAttention::nope_dim},
                                                             {"rope_dim", &LatentAttention::rope_dim},
                                                             {"v_dim", &LatentAttention::v_dim}};
constexpr Member<LinearAttention, std::int64_t> kLinear[] = {
    {"layers", &LinearAttention::layers},       {"key_heads", &LinearAttention::key_heads},
    {"key_dim", &LinearAttention::key_dim},     {"value_heads", &LinearAttention::value_heads},
    {"value_dim", &LinearAttention::value_dim}, {"kernel", &LinearAttention::kernel},
    {"gate_rank", &LinearAttention::gate_rank}};
constexpr Member<SparseIndexer, std::int64_t> kIndexer[] = {
    {"heads", &SparseIndexer::heads}, {"dim", &SparseIndexer::dim}, {"top_k", &SparseIndexer::top_k}};
constexpr Member<CompressedAttention, std::int64_t> kCompressed[] = {
    {"sparse_layers", &CompressedAttention::sparse_layers},
    {"sparse_rate", &CompressedAttention::sparse_rate},
    {"heavy_layers", &CompressedAttention::heavy_layers},
    {"heavy_rate", &CompressedAttention::heavy_rate},
    {"output_groups", &CompressedAttention::output_groups},
    {"output_rank", &CompressedAttention::output_rank}};
constexpr Member<costmodel::OpaqueCounts, std::int64_t> kOpaque[] = {
    {"dense_parameters", &costmodel::OpaqueCounts::dense_parameters},
    {"expert_parameters", &costmodel::OpaqueCounts::expert_parameters}};

template <class Owner, std::size_t N>
Json object_json(const Owner& owner, const Member<Owner, std::int64_t> (&members)[N]) {
  Json json = Json::object();
  for (const auto& member : members) json[member.name] = owner.*member.member;
  return json;
}

template <class Owner, std::size_t N>
Owner read_object(const std::string& path, const JsonKind& kind, const std::string& where, const Json& json,
                  const Member<Owner, std::int64_t> (&members)[N], std::vector<std::string> keys = {}) {
  for (const auto& member : members) keys.emplace_back(member.name);
  const JsonObject reader(path, kind, where, json, keys);
  Owner owner;
  for (const auto& member : members) owner.*member.member = reader.count(member.name, 0);
  return owner;
}

template <costmodel::NamedEnum E>
void read_name(const JsonObject& reader, const char* key, E& value) {
  if (!reader.has(key)) return;
  const std::string name = reader.text(key);
  const std::optional<E> named = costmodel::enum_of<E>(name);
  if (!named)
    reader.refuse(key, '"' + name + '"',
                  fmt::format("one of {}", fmt::join(costmodel::all_names<E>(), ", ")));
  value = *named;
}

std::vector<std::string> all_keys() {
  std::vector<std::string> keys = {
      "name",     "d_model",        "layers",          "heads",        "experts",        "active_experts",
      "d_expert", "vocabulary",     "sequence_length", "architecture", "query_key_norm", "latent",
      "opaque",   "attention_gate", "linear",          "indexer",      "moe_layer_list", "compressed"};
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
  if (!shape.moe_layer_list.empty()) json["moe_layer_list"] = shape.moe_layer_list;
  if (shape.query_key_norm != QueryKeyNorm::none) json["query_key_norm"] = to_string(shape.query_key_norm);
  if (shape.attention_gate != AttentionGate::none) json["attention_gate"] = to_string(shape.attention_gate);
  if (shape.indexer) json["indexer"] = object_json(*shape.indexer, kIndexer);
  if (shape.linear) {
    json["linear"] = {{"kind", to_string(shape.linear->kind)}};
    json["linear"].update(object_json(*shape.linear, kLinear));
  }
  if (shape.latent) json["latent"] = object_json(*shape.latent, kLatent);
  if (shape.compressed) json["compressed"] = object_json(*shape.compressed, kCompressed);
  if (shape.opaque) json["opaque"] = object_json(*shape.opaque, kOpaque);
  return json;
}

ModelShape read_exact_shape(const std::string& path, const JsonKind& kind, const Json& json,
                            std::int64_t least_sequence) {
  const JsonObject reader(path, kind, "model", json, all_keys());
  ModelShape shape;
  shape.name = reader.text("name");
  if (reader.has("architecture")) shape.architecture = reader.text("architecture");
  // Models of other families may be dense, or may be described by their parameter counts alone.
  const std::int64_t least = shape.architecture == ModelShape{}.architecture ? 1 : 0;
  shape.d_model = reader.count("d_model", least);
  shape.layers = reader.count("layers", 1);
  shape.heads = reader.count("heads", least);
  // So may one that a scenario describes by its keys: all of its layers are dense.
  const bool dense = reader.has("dense_layers") && reader.count("dense_layers", 0) == shape.layers;
  const std::int64_t least_expert = dense ? 0 : least;
  shape.experts = reader.count("experts", least_expert);
  shape.active_experts = reader.count("active_experts", least_expert);
  shape.d_expert = reader.count("d_expert", least_expert);
  shape.vocabulary = reader.count("vocabulary", least);
  shape.sequence_length = reader.count("sequence_length", least_sequence);
  for (const auto& member : kCounts) {
    if (reader.has(member.name)) shape.*member.member = reader.count(member.name, 0);
  }
  for (const auto& member : kFlags) {
    if (reader.has(member.name)) shape.*member.member = reader.boolean(member.name);
  }
  read_name(reader, "query_key_norm", shape.query_key_norm);
  read_name(reader, "attention_gate", shape.attention_gate);
  if (reader.has("moe_layer_list")) {
    shape.moe_layer_list = reader.counts("moe_layer_list", 0, shape.layers - 1,
                                         "the ascending indices of the layers that have experts");
    const std::vector<std::int64_t>& list = shape.moe_layer_list;
    if (std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) != list.end())
      reader.refuse("moe_layer_list", "a list that is not ascending", "ascending indices, each once");
  }
  if (reader.has("linear")) {
    const Json& linear = reader.at("linear", "an object");
    shape.linear = read_object(path, kind, "model.linear", linear, kLinear, {"kind"});
    read_name(open_object(path, kind, "model.linear", linear), "kind", shape.linear->kind);
  }
  if (reader.has("indexer"))
    shape.indexer = read_object(path, kind, "model.indexer", reader.at("indexer", "an object"), kIndexer);
  if (reader.has("latent"))
    shape.latent = read_object(path, kind, "model.latent", reader.at("latent", "an object"), kLatent);
  if (reader.has("compressed"))
    shape.compressed =
        read_object(path, kind, "model.compressed", reader.at("compressed", "an object"), kCompressed);
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
