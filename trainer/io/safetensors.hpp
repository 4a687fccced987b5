// Reads and writes the safetensors format (huggingface.co/docs/safetensors), so that other tools can read the
// trainer's files: 8 bytes with the length of the header, a JSON header, and the bytes of the tensors.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "platforms/support/input_error.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using Metadata = std::map<std::string, std::string>;

/// Writes fp32, fp64 and int64 CPU tensors. The file gets a temporary name beside `path`, is flushed to disk
/// and is then renamed, so that no reader sees an incomplete file, even after a crash. A checksum of the
/// tensors is added to the metadata ("checksum"). Throws std::runtime_error.
void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata);

/// A file that is missing, truncated, altered or of another format.
class UnusableFile : public FileError {
  using FileError::FileError;
};

/// Contents of a file that write_safetensors wrote; the tensors own their memory. Throws UnusableFile.
struct SafetensorsFile {
  Metadata metadata;
  std::map<std::string, at::Tensor> tensors;
};
SafetensorsFile read_safetensors(const std::string& path);
/// Reads only the header. Throws UnusableFile, also if the length of the file is not that in its header.
Metadata read_safetensors_metadata(const std::string& path);
/// The same, and compares the tensors with their checksum, without keeping them in memory. Files of earlier
/// versions have no checksum.
Metadata checked_safetensors_metadata(const std::string& path);

}  // namespace fomoe::trainer
