#include "trainer/io/safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/file_claims.hpp"
#include "trainer/io/hash.hpp"

namespace fomoe::trainer {

using nlohmann::json;

namespace {

struct Dtype {
  const char* name;
  at::ScalarType type;
};
constexpr Dtype kDtypes[] = {{"F32", at::kFloat}, {"F64", at::kDouble}, {"I64", at::kLong}};

const char* name_of(at::ScalarType type) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == type) return dtype.name;
  }
  throw std::logic_error("checkpoints do not support this dtype");
}

using Hashes = std::map<std::string, Hash>;  // by name of the tensor
constexpr const char* kChecksum = "checksum";

std::string checksum_of(const Hashes& hashes) {
  Hash all;
  for (const auto& [name, hash] : hashes) {
    const std::string line = name + ' ' + hash.text() + '\n';
    all.add(line.data(), line.size());
  }
  return all.text();
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  Hashes hashes;
  for (const auto& [name, tensor] : tensors) hashes[name].add(tensor);
  Metadata with_checksum = metadata;
  with_checksum[kChecksum] = checksum_of(hashes);
  json header = {{"__metadata__", with_checksum}};
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    header[name] = {{"dtype", name_of(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8 bytes
  const std::uint64_t length = text.size();
  AtomicFile file(path);
  file.write({reinterpret_cast<const char*>(&length), sizeof length});
  file.write(text);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.contiguous();
    file.write({static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()});
  }
  file.commit();
}

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& got) {
  throw UnusableFile(
      path + ": got " + got +
      "; expected a complete checkpoint of fomoe-train; for example one that --checkpoints DIR "
      "has written");
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::int64_t begin, end;  // bytes from the beginning of the file
};

struct Header {
  Metadata metadata;
  std::vector<Entry> entries;
};

// Leaves the file open for the tensors.
Header read_header(std::ifstream& file, const std::string& path) {
  if (!file) refuse(path, "an unreadable file");
  const std::int64_t size = file.tellg();
  file.seekg(0);
  std::uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > static_cast<std::uint64_t>(size) - sizeof length)
    refuse(path, "a truncated file or a file in another format");
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  const json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file || !header.is_object() || !header.contains("__metadata__"))
    refuse(path, "a file in another format");

  Header out;
  const std::int64_t data = static_cast<std::int64_t>(sizeof length + length);
  std::int64_t end = data;
  try {
    out.metadata = header["__metadata__"].get<Metadata>();
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const Dtype* dtype = nullptr;
      for (const Dtype& known : kDtypes) {
        if (entry.at("dtype").get<std::string>() == known.name) dtype = &known;
      }
      if (dtype == nullptr) refuse(path, "a tensor of an unknown dtype");
      const auto whole = [&](const auto& number) {
        if (!number.is_number_integer()) refuse(path, "a file in another format");
        return number.template get<std::int64_t>();
      };
      const std::int64_t begin = whole(entry.at("data_offsets").at(0)),
                         stop = whole(entry.at("data_offsets").at(1));
      std::vector<std::int64_t> shape;
      if (!entry.at("shape").is_array()) refuse(path, "a file in another format");
      for (const json& extent : entry.at("shape")) shape.push_back(whole(extent));
      // LibTorch's strides count an extent of 0 as 1, and must not overflow either.
      std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(dtype->type)), strides = bytes;
      for (const std::int64_t extent : shape) {
        if (extent < 0 ||
            strides > std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(extent, 1))
          refuse(path, "a file in another format");
        bytes *= extent;
        strides *= std::max<std::int64_t>(extent, 1);
      }
      if (begin < 0 || stop < begin || bytes != stop - begin) refuse(path, "a file in another format");
      if (stop > size - data) refuse(path, "a truncated file");
      end = std::max(end, data + stop);
      out.entries.push_back({name, dtype->type, std::move(shape), data + begin, data + stop});
    }
  } catch (const json::exception&) {
    refuse(path, "a file in another format");
  }
  if (end != size) refuse(path, "a file that is longer than the length in its header");
  return out;
}

void check(const std::string& path, const Metadata& metadata, const Hashes& hashes) {
  const auto stated = metadata.find(kChecksum);
  if (stated != metadata.end() && stated->second != checksum_of(hashes))
    refuse(path, "a file whose tensors were altered after they were written (another checksum)");
}

}  // namespace

Metadata checked_safetensors_metadata(const std::string& path) {
  note_input(path);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const Header header = read_header(file, path);
  constexpr std::int64_t kPiece = 1 << 22;
  std::vector<char> piece(kPiece);
  Hashes hashes;
  for (const Entry& entry : header.entries) {
    Hash& hash = hashes[entry.name];
    file.seekg(entry.begin);
    for (std::int64_t at = entry.begin; at < entry.end; at += kPiece) {
      const std::int64_t bytes = std::min(kPiece, entry.end - at);
      if (!file.read(piece.data(), bytes)) refuse(path, "an unreadable file");
      hash.add(piece.data(), static_cast<std::size_t>(bytes));
    }
  }
  check(path, header.metadata, hashes);
  return header.metadata;
}

Metadata read_safetensors_metadata(const std::string& path) {
  note_input(path);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  return read_header(file, path).metadata;
}

SafetensorsFile read_safetensors(const std::string& path) {
  note_input(path);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const Header header = read_header(file, path);
  SafetensorsFile out;
  Hashes hashes;
  out.metadata = header.metadata;
  for (const Entry& entry : header.entries) {
    at::Tensor tensor = at::empty(entry.shape, entry.type);
    file.seekg(entry.begin);
    file.read(static_cast<char*>(tensor.mutable_data_ptr()), entry.end - entry.begin);
    if (!file) refuse(path, "a truncated file");
    hashes[entry.name].add(tensor);
    out.tensors.emplace(entry.name, std::move(tensor));
  }
  check(path, header.metadata, hashes);
  return out;
}

}  // namespace fomoe::trainer
