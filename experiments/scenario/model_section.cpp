#include <fmt/format.h>

#include "experiments/scenario/sections.hpp"
#include "experiments/scenario/table_reader.hpp"

namespace fomoe::scenario {
namespace {

struct ShapeKey {
  const char* name;
  std::int64_t costmodel::ModelShape::*member;
};
constexpr ShapeKey kShapeKeys[] = {
    {"d_model", &costmodel::ModelShape::d_model},
    {"layers", &costmodel::ModelShape::layers},
    {"heads", &costmodel::ModelShape::heads},
    {"experts", &costmodel::ModelShape::experts},
    {"active_experts", &costmodel::ModelShape::active_experts},
    {"d_expert", &costmodel::ModelShape::d_expert},
    {"vocabulary", &costmodel::ModelShape::vocabulary},
};

void check_shape(const TableReader& table, const costmodel::ModelShape& shape) {
  if (shape.d_model % shape.heads != 0 || (shape.d_model / shape.heads) % 2 != 0) {
    table.refuse(table.has("heads") || !table.has("d_model") ? "heads" : "d_model",
                 fmt::format("heads = {} with d_model = {}", shape.heads, shape.d_model),
                 "d_model divisible by heads, with an even quotient (rotary embeddings turn pairs)");
  }
  if (shape.active_experts > shape.experts) {
    table.refuse(table.has("active_experts") || !table.has("experts") ? "active_experts" : "experts",
                 fmt::format("active_experts = {} with experts = {}", shape.active_experts, shape.experts),
                 "active_experts of at most experts");
  }
  // Counted in floating point first: the exact count is 64 bits wide.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double parameters =
      real(shape.vocabulary) * real(shape.d_model) +
      real(shape.layers) * real(shape.d_model) *
          (4 * real(shape.d_model) + real(shape.experts) * (1 + 2 * real(shape.d_expert)) + 4);
  if (parameters > 1e16) {
    table.refuse("d_model", fmt::format("a model of {:.3g} parameters", parameters),
                 "at most 1e16 parameters");
  }
}

}  // namespace

costmodel::ModelShape read_model(const Document& document) {
  const TableReader table(document, scenario_keys(), "model", find_table(document, "model"));
  costmodel::ModelShape shape;
  shape.name = "custom";
  const bool from_preset = table.has("preset");
  bool any_shape_key = false;
  for (const ShapeKey& key : kShapeKeys) any_shape_key = any_shape_key || table.has(key.name);
  if (from_preset) {
    shape = *costmodel::find_preset(table.text("preset"));
    if (any_shape_key) shape.name += "-modified";
  } else if (!any_shape_key) {
    table.refuse("preset", "neither a preset nor shape keys",
                 "a preset, or all of d_model, layers, heads, experts, active_experts, d_expert, vocabulary");
  }
  for (const ShapeKey& key : kShapeKeys) {
    if (!from_preset || table.has(key.name)) shape.*key.member = table.count(key.name);
  }
  if (!from_preset || table.has("sequence_length")) shape.sequence_length = table.count("sequence_length");
  check_shape(table, shape);
  return shape;
}

costmodel::Workload read_workload(const Document& document, std::int64_t sequence_length) {
  const TableReader table(document, scenario_keys(), "workload", find_table(document, "workload"));
  const costmodel::Workload workload = {table.count("tokens"), table.count("global_batch_sequences")};
  // Tokens of one step must stay a whole number that a double holds exactly.
  const double step_tokens =
      static_cast<double>(workload.global_batch_sequences) * static_cast<double>(sequence_length);
  if (step_tokens > 9e15) {
    table.refuse("global_batch_sequences", fmt::format("{:.3g} tokens in one step", step_tokens),
                 "at most 9e15 tokens in one step");
  }
  return workload;
}

}  // namespace fomoe::scenario
