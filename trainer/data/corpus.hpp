// The tokens to train on: a file of token ids, or synthetic ones. This header does not include LibTorch.
//
//   - FILE.bin: Only token ids, little endian, in the layout of nanoGPT and llm.c without llm.c's
//     header. They are uint16 if the vocabulary has at most 65,536 tokens, otherwise uint32.
//   - FILE.npy: A one-dimensional NumPy array of uint16, uint32, int32 or int64.
//   - Synthetic: A Markov chain over the vocabulary V. Token t is followed by (5·t + 7) mod V
//     with probability 0.8, and by a uniformly drawn token otherwise. A model that has learnt the chain has
//     the loss Corpus::synthetic_loss().
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fomoe::trainer {

class Corpus {
 public:
  /// Maps the file into memory and checks all ids once. Throws FileError if the file has another format or
  /// holds an id outside of the vocabulary.
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
