#include "trainer/data/token_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/descriptor.hpp"
#include "platforms/support/file_claims.hpp"
#include "trainer/data/mapped_files.hpp"

namespace fomoe::trainer {

namespace {

struct Mapped {
  std::shared_ptr<const std::byte> data;
  std::int64_t bytes = 0;
};

Mapped map_file(const std::string& path) {
  note_input(path);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    throw FileError(path + ": cannot be read: " + std::strerror(errno));
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* address = bytes == 0 ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  const std::string reason = std::strerror(errno);
  if (bytes == 0)
    throw FileError(path +
                    ": got an empty file; expected token ids; for example of tools/tokenize_corpus.py");
  if (address == MAP_FAILED) throw FileError(path + ": cannot be mapped into memory: " + reason);
  name_if_it_shrinks(address, bytes, path);
  const auto unmap = [address, bytes](const std::byte*) {
    forget_mapping(address);
    ::munmap(address, bytes);
  };
  return {std::shared_ptr<const std::byte>(static_cast<const std::byte*>(address), unmap), info.st_size};
}

/// Header of a NumPy array file: "\x93NUMPY", version, length, then a Python dictionary.
struct NpyHeader {
  std::size_t length = 0;  // bytes before the data
  std::string type;        // such as "<u2"
  std::int64_t size = 0;
};

NpyHeader npy_header(const Mapped& file, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw FileError(path + ": " + what +
                    "; expected a one-dimensional NumPy array of uint16, uint32, int32 or int64");
  };
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data.get());
  if (file.bytes < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0) refuse("got a file without a NumPy header");
  const bool wide = bytes[6] >= 2;  // from version 2 on, the length field has four bytes
  NpyHeader header;
  const std::size_t begin = wide ? 12 : 10;
  std::size_t text = static_cast<std::size_t>(bytes[8]) | static_cast<std::size_t>(bytes[9]) << 8;
  if (wide) text |= static_cast<std::size_t>(bytes[10]) << 16 | static_cast<std::size_t>(bytes[11]) << 24;
  header.length = begin + text;
  if (header.length > static_cast<std::size_t>(file.bytes)) refuse("got a truncated NumPy header");
  const std::string_view dictionary(reinterpret_cast<const char*>(bytes) + begin, text);
  const auto after = [&](std::string_view key) {
    const std::size_t at = dictionary.find(key);
    if (at == std::string_view::npos) refuse("got a NumPy header without " + std::string(key));
    return dictionary.substr(at + key.size());
  };
  const std::string_view type = after("'descr': '");
  header.type = type.substr(0, type.find('\''));
  std::string_view shape = after("'shape': (");
  shape = shape.substr(0, shape.find(')'));
  const std::size_t comma = shape.find(',');
  if (comma == std::string_view::npos || shape.find_first_not_of(" ", comma + 1) != std::string_view::npos)
    refuse("got shape (" + std::string(shape) + ")");
  header.size = std::atoll(std::string(shape.substr(0, comma)).c_str());
  return header;
}

}  // namespace

TokenFile TokenFile::open(const std::string& path, std::int64_t vocabulary) {
  const Mapped file = map_file(path);
  TokenFile tokens;
  tokens.path_ = path;
  tokens.vocabulary_ = vocabulary;
  std::int64_t width = vocabulary <= 65'536 ? 2 : 4, offset = 0;
  tokens.width_ = width == 2 ? Width::u16 : Width::u32;
  if (path.ends_with(".npy")) {
    const NpyHeader header = npy_header(file, path);
    if (header.type == "<u2") {
      tokens.width_ = Width::u16;
    } else if (header.type == "<u4") {
      tokens.width_ = Width::u32;
    } else if (header.type == "<i4") {
      tokens.width_ = Width::i32;
    } else if (header.type == "<i8") {
      tokens.width_ = Width::i64;
    } else {
      throw FileError(path + ": got an array of " + header.type +
                      "; expected uint16, uint32, int32 or int64, little endian");
    }
    width = tokens.width_ == Width::u16 ? 2 : tokens.width_ == Width::i64 ? 8 : 4;
    offset = static_cast<std::int64_t>(header.length);
    tokens.size_ = header.size;
    std::int64_t wanted = 0;
    const bool impossible = tokens.size_ < 0 || __builtin_mul_overflow(tokens.size_, width, &wanted);
    if (impossible || wanted != file.bytes - offset)
      throw FileError(
          path + ": got " + std::to_string(file.bytes - offset) + " bytes of data; expected " +
          (impossible ? std::to_string(tokens.size_) + " ids" : std::to_string(wanted) + " bytes") +
          ", the size in its header");
    if (tokens.size_ == 0) throw FileError(path + ": got an empty array; expected token ids");
  } else if (path.ends_with(".bin")) {
    if (file.bytes % width != 0)
      throw FileError(path + ": got " + std::to_string(file.bytes) + " bytes; expected token ids of " +
                      std::to_string(width) + " bytes each");
    tokens.size_ = file.bytes / width;
  } else {
    throw FileError(path + ": got an unknown file type; expected a file name that ends in .bin or .npy");
  }
  tokens.data_ = {file.data, file.data.get() + offset};
  return tokens;
}

TokenFile TokenFile::in_memory(const std::vector<std::uint32_t>& ids, std::int64_t vocabulary) {
  const auto kept = std::make_shared<const std::vector<std::uint32_t>>(ids);
  TokenFile tokens;
  tokens.path_ = "synthetic data";
  tokens.vocabulary_ = vocabulary;
  tokens.data_ = {kept, reinterpret_cast<const std::byte*>(kept->data())};
  tokens.size_ = static_cast<std::int64_t>(ids.size());
  tokens.width_ = Width::u32;
  return tokens;
}

TokenFile TokenFile::elsewhere(const std::string& name, std::int64_t size) {
  TokenFile tokens;
  tokens.path_ = name;
  tokens.size_ = size;
  return tokens;
}

void TokenFile::copy(std::int64_t begin, std::int64_t count, std::int64_t* out) const {
  if (!here()) throw FileError(path_ + ": cannot be read: it is at another site");
  const auto read = [&](auto example) {
    using T = decltype(example);
    const std::byte* from = data_.get() + static_cast<std::size_t>(begin) * sizeof(T);
    for (std::int64_t i = 0; i < count; ++i) {
      T stored;
      std::memcpy(&stored, from + static_cast<std::size_t>(i) * sizeof stored, sizeof stored);
      const auto id = static_cast<std::int64_t>(stored);
      if (id < 0 || id >= vocabulary_)
        throw FileError(path_ + ": got token id " + std::to_string(id) + " at position " +
                        std::to_string(begin + i) +
                        "; expected ids below model.vocabulary = " + std::to_string(vocabulary_));
      out[i] = id;
    }
  };
  switch (width_) {
    case Width::u16:
      return read(std::uint16_t{});
    case Width::u32:
      return read(std::uint32_t{});
    case Width::i32:
      return read(std::int32_t{});
    case Width::i64:
      return read(std::int64_t{});
  }
}

}  // namespace fomoe::trainer
