// Determines which sequences are trained on in which step. A step trains on one global batch of B_g
// sequences, which the sites share. The global batch does not depend on the number of sites: sequence j of
// step s is number s·B_g + j of an endless list, and each site takes a range of the batch.
//
// The corpus is cut into sequences of S tokens. The target of each token is the token after it, so a sequence
// also reads one token beyond its end. Each pass over the corpus takes the sequences in a new order, drawn
// from the seed. The last sequences of the corpus are kept for validation.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/data/corpus.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct Batch {
  at::Tensor tokens, targets;  // int64 [B, S] on the CPU
};

class Batches {
 public:
  /// The last `validation_sequences` sequences of the corpus are never trained on. Throws
  /// std::invalid_argument if no sequence is left to train on.
  Batches(Corpus corpus, std::int64_t sequence_length, std::int64_t global_batch,
          std::int64_t validation_sequences, std::uint64_t seed);

  /// Sequences first … first + count − 1 of the global batch of `step`.
  [[nodiscard]] Batch of_step(std::int64_t step, std::int64_t first, std::int64_t count);
  [[nodiscard]] Batch validation(std::int64_t first, std::int64_t count) const;
  [[nodiscard]] std::int64_t validation_sequences() const { return validation_; }
  [[nodiscard]] std::int64_t training_sequences() const { return training_; }

 private:
  [[nodiscard]] Batch sequences(const std::vector<std::int64_t>& numbers) const;
  [[nodiscard]] std::int64_t number(std::int64_t position);

  Corpus corpus_;
  std::int64_t length_, global_batch_, validation_, training_ = 0;
  std::uint64_t seed_;
  std::int64_t pass_ = -1;
  std::vector<std::int64_t> order_;  // of the sequences in the current pass
};

}  // namespace fomoe::trainer
