// Tokens to train on: a file of token ids, or made up. No LibTorch in this header.
//
//   FILE.bin    nothing but ids: uint16 where the vocabulary has at most 65,536 tokens, else uint32, little
//               endian (as nanoGPT and llm.c write them, without llm.c's header)
//   FILE.npy    a one-dimensional NumPy array of uint16, uint32, int32 or int64
//   synthetic   a Markov chain over the vocabulary: after token t comes (5·t + 7) mod V with probability 0.8,
//               else any token. A model that has learnt it has a loss of Corpus::synthetic_loss().
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fomoe::trainer {

class Corpus {
 public:
  /// Maps the file into memory; ids are checked once. Throws FileError where it is not such a file
  /// or has an id outside of the vocabulary.
  static Corpus open(const std::string& path, std::int64_t vocabulary);
  static Corpus synthetic(std::int64_t vocabulary, std::int64_t tokens, std::uint64_t seed);
  /// Entropy of the next token of the synthetic chain, in nats.
  static double synthetic_loss(std::int64_t vocabulary);

  [[nodiscard]] std::int64_t size() const { return size_; }
  void copy(std::int64_t begin, std::int64_t count, std::int64_t* out) const;

 private:
  enum class Width { u16, u32, i32, i64 };
  std::shared_ptr<const std::byte> data_;
  std::int64_t size_ = 0;
  Width width_ = Width::u16;
};

}  // namespace fomoe::trainer
