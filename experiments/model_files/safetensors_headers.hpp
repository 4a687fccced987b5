// The names, types and shapes of the tensors in files of weights, without the weights.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fomoe::scenario {

struct TensorHeader {
  std::string name;
  std::string dtype;  // "BF16", "F32", "U8", …
  std::vector<std::int64_t> shape;
  std::string file;
  [[nodiscard]] std::int64_t elements() const;
};

/// Reads the headers of all *.safetensors files of a folder, in the order of their names
/// (huggingface.co/docs/safetensors: 8 bytes with the header's length, least significant first, then the
/// header as JSON). The weights behind a header are not read, and may be missing. Throws FileError if the
/// folder has no such file, if a header is incomplete or malformed, or if two files contain a tensor of the
/// same name, or if model.safetensors.index.json names a file that is missing.
std::vector<TensorHeader> read_safetensors_headers(const std::string& folder);

}  // namespace fomoe::scenario
