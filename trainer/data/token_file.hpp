// A file of token ids, mapped into memory. Opening it reads only the header of a .npy file, however large the
// file is. Ids are checked when they are copied. This header does not include LibTorch.
//
//   - FILE.bin: Only token ids, little endian, in the layout of nanoGPT and llm.c without llm.c's
//     header. They are uint16 if the vocabulary has at most 65,536 tokens, otherwise uint32.
//   - FILE.npy: A one-dimensional NumPy array of uint16, uint32, int32 or int64.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fomoe::trainer {

class TokenFile {
 public:
  /// Throws FileError if the file has another format.
  static TokenFile open(const std::string& path, std::int64_t vocabulary);
  /// Tokens that are in no file.
  static TokenFile in_memory(const std::vector<std::uint32_t>& ids, std::int64_t vocabulary);
  /// A file of that many tokens which is at another site.
  static TokenFile elsewhere(const std::string& name, std::int64_t tokens);

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] bool here() const { return data_ != nullptr; }
  /// Copies tokens begin … begin + count − 1. Throws FileError if one of them is outside of the vocabulary,
  /// or if the file is not here.
  void copy(std::int64_t begin, std::int64_t count, std::int64_t* out) const;

 private:
  enum class Width { u16, u32, i32, i64 };
  std::string path_;
  std::shared_ptr<const std::byte> data_;
  std::int64_t size_ = 0, vocabulary_ = 0;
  Width width_ = Width::u16;
};

}  // namespace fomoe::trainer
