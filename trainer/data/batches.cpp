#include "trainer/data/batches.hpp"

#include <numeric>
#include <stdexcept>

#include "costmodel/math/random.hpp"

namespace fomoe::trainer {

Batches::Batches(Corpus corpus, std::int64_t sequence_length, std::int64_t global_batch,
                 std::int64_t validation_sequences, std::uint64_t seed)
    : corpus_(std::move(corpus)),
      length_(sequence_length),
      global_batch_(global_batch),
      validation_(validation_sequences),
      seed_(seed) {
  training_ = (corpus_.size() - 1) / length_ - validation_;
  if (training_ < 1) {
    throw std::invalid_argument("got a corpus of " + std::to_string(corpus_.size()) +
                                " tokens; expected enough for " + std::to_string(validation_) +
                                " validation sequences and one training sequence of " +
                                std::to_string(length_) + " tokens each");
  }
}

std::int64_t Batches::number(std::int64_t position) {
  const std::int64_t pass = position / training_;
  if (pass != pass_) {
    order_.resize(static_cast<std::size_t>(training_));
    std::iota(order_.begin(), order_.end(), 0);
    costmodel::RandomEngine engine =
        costmodel::seeded_engine(seed_, 0x0bade7 + static_cast<std::uint64_t>(pass));
    costmodel::shuffle(order_, engine);
    pass_ = pass;
  }
  return order_[static_cast<std::size_t>(position % training_)];
}

Batch Batches::sequences(const std::vector<std::int64_t>& numbers) const {
  const auto count = static_cast<std::int64_t>(numbers.size());
  const at::Tensor text = at::empty({count, length_ + 1}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    corpus_.copy(numbers[static_cast<std::size_t>(i)] * length_, length_ + 1,
                 text.mutable_data_ptr<std::int64_t>() + i * (length_ + 1));
  }
  return {text.narrow(1, 0, length_).contiguous(), text.narrow(1, 1, length_).contiguous()};
}

Batch Batches::of_step(std::int64_t step, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t j = first; j < first + count; ++j) numbers.push_back(number(step * global_batch_ + j));
  return sequences(numbers);
}

Batch Batches::validation(std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), training_ + first);
  return sequences(numbers);
}

}  // namespace fomoe::trainer
