// Files of weights without weights, for tests.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/json/json.hpp"

namespace fomoe::tests {

using scenario::Json;

/// A file of weights: the length of the header, and the header. The weights themselves are missing.
inline std::string weights(const Json& header) {
  const std::string text = header.dump();
  std::string length;
  for (int byte = 0; byte < 8; ++byte)
    length += static_cast<char>((static_cast<std::uint64_t>(text.size()) >> (8 * byte)) & 0xffU);
  return length + text;
}

inline void add_weight(Json& header, const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::string& dtype = "BF16") {
  header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {0, 0}}};
}

/// d = 8, V = 20, three layers with attention, of which the last two have 4 experts of width 6.
inline Json sample() {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  add_weight(header, "model.embed_tokens.weight", {20, 8});
  add_weight(header, "lm_head.weight", {20, 8});
  for (int layer = 0; layer < 3; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + '.';
    add_weight(header, prefix + "self_attn.qkv.weight", {24, 8});
    if (layer == 0) {
      add_weight(header, prefix + "mlp.up_proj.weight", {32, 8});
      continue;
    }
    add_weight(header, prefix + "mlp.gate.weight", {4, 8});
    for (int expert = 0; expert < 4; ++expert) {
      add_weight(header, prefix + "mlp.experts." + std::to_string(expert) + ".up_proj.weight", {6, 8});
      add_weight(header, prefix + "mlp.experts." + std::to_string(expert) + ".down_proj.weight", {8, 6});
    }
    add_weight(header, prefix + "mlp.shared_experts.up_proj.weight", {6, 8});
  }
  return header;
}

}  // namespace fomoe::tests
