// What a model's layers have, by what divides it among the GPUs of a site: the input of the memory models of
// training frameworks.
#pragma once
#include <vector>

#include "costmodel/inputs/model_shape.hpp"

namespace fomoe::costmodel {

struct Scenario;

/// A matrix of a layer. Tensor parallelism divides it if `divided`.
struct LayerMatrix {
  double outputs = 0, inputs = 0;
  bool divided = true;
  bool in_dense = true, in_moe = true;  // kinds of layers that have it
  bool of_expert = false;               // divided among the GPUs of an expert instead
};

/// Parameters and widths of a layer without experts, or of one with experts without those.
struct LayerKind {
  double divided_parameters = 0;  // tensor parallelism divides them
  double whole_parameters = 0;    // norms and the down-projections of latents, which every GPU has
  double width = 0;               // hidden elements of a token in dense blocks or shared experts
};

struct StackShape {
  LayerKind dense, moe;
  double queries = 0, keys = 0, values = 0, output = 0;  // elements of a token in a layer of attention
  double expanded = 0;  // of latents: keys without their rotary part, and values
  double heads = 0;
  double latent_elements = 0;  // inputs and outputs of the latents' norms, which every GPU keeps
  double other_elements = 0;   // gates, indexers, norms of queries and keys, linear attention; divided
  double attention_share = 1;  // layers with attention ÷ layers; the others have linear attention or none
  double norms = 0;            // norms of d_model elements in a layer
  double matrices = 0;         // of a feed-forward block: 3 with a gate, 2 without
  double d_expert = 0;
  double router_scores = 0;      // of a token, with experts that compute nothing
  double expert_parameters = 0;  // routed experts of all layers
  double router_parameters = 0;  // of all layers
  bool router_is_dense = false;  // whether SiteLoad::dense includes the router
  double outer_norm_parameters = 0;
  double vocabulary = 0;
  bool tied = false;
  std::vector<double> moe_layers_before;  // of each layer; one entry more than layers
  std::vector<LayerMatrix> matrices_of_layers;

  /// Layers with experts among those from `first` up to `last`, which need not be whole.
  [[nodiscard]] double moe_layers_in(double first, double last) const;
};

/// `router_is_dense`: see StackShape.
StackShape stack_shape(const ModelShape& shape, bool router_is_dense);

}  // namespace fomoe::costmodel
