// The safetensors format (huggingface.co/docs/safetensors): 8 bytes length, a JSON header, then the tensors'
// bytes, so that any tool reads what is written here.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using Metadata = std::map<std::string, std::string>;

/// Writes fp32, fp64 and int64 CPU tensors under a temporary name beside `path`, on disk before it gets that
/// name: nobody ever sees half a file, whatever is killed when. Throws std::runtime_error.
void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata);

/// Of a file that write_safetensors wrote; tensors own their memory. Throws FileError where the
/// file is missing, truncated or of another kind.
struct SafetensorsFile {
  Metadata metadata;
  std::map<std::string, at::Tensor> tensors;
};
SafetensorsFile read_safetensors(const std::string& path);

}  // namespace fomoe::trainer
