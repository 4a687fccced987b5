// Which sequences are trained on in which step. The global batch of a step is the same however many sites
// share it: sequence j of step s is number s·B_g + j of an endless list, of which a site takes a range.
//
// The corpus is cut into sequences of S tokens (and the token after them, their last target); each pass over
// it takes them in an order of its own, drawn from the seed. The last sequences are kept for validation.
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
  /// `validation_sequences` from the end of the corpus are never trained on. Throws std::invalid_argument
  /// where nothing is left to train on.
  Batches(Corpus corpus, std::int64_t sequence_length, std::int64_t global_batch,
          std::int64_t validation_sequences, std::uint64_t seed);

  /// Sequences first … first + count − 1 of the step's global batch.
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
  std::vector<std::int64_t> order_;  // of the pass
};

}  // namespace fomoe::trainer
