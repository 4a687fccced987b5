#include "costmodel/inputs/linear_attention.hpp"

namespace fomoe::costmodel {

namespace {

std::int64_t kept_elements(std::int64_t d, std::int64_t channels, std::int64_t gates, std::int64_t values,
                           bool convolution) {
  return d + (convolution ? 2 : 1) * channels + gates + 2 * values;
}

}  // namespace

LinearLayer linear_layer(const LinearAttention& linear, std::int64_t d_model) {
  const std::int64_t d = d_model, heads = linear.value_heads;
  const std::int64_t keys = linear.key_heads * linear.key_dim, values = heads * linear.value_dim;
  const std::int64_t state = heads * linear.key_dim * linear.value_dim;
  const bool convolves = linear.kernel > 0;
  std::int64_t channels = 2 * keys + values, gates = 0;
  LinearLayer layer;
  switch (linear.kind) {
    case LinearKind::gated_delta:
      gates = values + 2 * heads;
      layer.matrices = d * (channels + gates) + values * d;
      layer.others = 2 * heads;  // A_log and the bias of the time step
      layer.norms = linear.value_dim;
      layer.state_products = 3 * state;
      break;
    case LinearKind::kimi_delta: {
      const std::int64_t rank = linear.gate_rank;
      gates = keys + values + heads;
      layer.matrices = d * (channels + heads) + values * d;
      layer.matrices += rank > 0 ? 2 * d * rank + rank * (keys + values) : d * (keys + values);
      layer.others = heads + keys;  // A_log of each head, and a bias of each element's time step
      layer.norms = linear.value_dim;
      layer.state_products = 3 * state;
      break;
    }
    case LinearKind::lightning:
      gates = values;
      layer.matrices = d * (channels + gates) + values * d;
      layer.norms = values;
      layer.state_products = 2 * state;
      break;
    case LinearKind::mamba2:
      gates = values + heads;
      layer.matrices = d * (channels + gates) + values * d;
      layer.others = channels + 3 * heads;  // the convolution's bias, A_log, D and the bias of the time step
      layer.norms = values;
      layer.state_products = 2 * state;
      break;
    case LinearKind::mamba1: {
      const std::int64_t rank = linear.gate_rank;
      channels = values;
      gates = values + rank + 2 * keys + values;  // the gate; the time step's latent, B and C; the time steps
      layer.matrices = 2 * d * values + values * (rank + 2 * keys) + rank * values + values * d;
      // The convolution's bias and the time step's bias, the decays A of the states, and D.
      layer.others = 3 * values + values * keys;
      layer.norms = rank + 2 * keys;
      layer.state_products = 2 * state;
      break;
    }
    case LinearKind::short_convolution:
      channels = d;
      gates = 2 * d;
      layer.matrices = d * (channels + gates) + d * d;
      layer.kept = kept_elements(d, channels, gates, d, convolves);
      break;
  }
  layer.others += channels * linear.kernel;
  layer.state_products += channels * linear.kernel;
  if (layer.kept == 0) layer.kept = kept_elements(d, channels, gates, values, convolves);
  return layer;
}

}  // namespace fomoe::costmodel
