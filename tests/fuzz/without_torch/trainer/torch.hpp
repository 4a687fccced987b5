// The few names of LibTorch that trainer/io needs, so that the fuzzer reads checkpoints with the trainer's
// own code and without LibTorch, which has no build with sanitizers. It takes the place of trainer/torch.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace at {

enum class ScalarType : std::uint8_t { Float, Double, Long };
inline constexpr ScalarType kFloat = ScalarType::Float, kDouble = ScalarType::Double,
                            kLong = ScalarType::Long;

struct Sizes {
  std::vector<std::int64_t> extents;
  [[nodiscard]] const std::vector<std::int64_t>& vec() const { return extents; }
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::vector<std::int64_t> shape, ScalarType type, std::size_t bytes)
      : sizes_{std::move(shape)}, type_(type), bytes_(bytes) {}
  [[nodiscard]] std::size_t nbytes() const { return bytes_.size(); }
  [[nodiscard]] ScalarType scalar_type() const { return type_; }
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  [[nodiscard]] Tensor contiguous() const { return *this; }
  [[nodiscard]] const void* const_data_ptr() const { return bytes_.data(); }
  void* mutable_data_ptr() { return bytes_.data(); }

 private:
  Sizes sizes_;
  ScalarType type_ = kFloat;
  std::vector<char> bytes_;
};

}  // namespace at

namespace c10 {
inline std::size_t elementSize(at::ScalarType type) { return type == at::kFloat ? 4 : 8; }
}  // namespace c10

namespace at {

/// As LibTorch's, it throws if the strides of the tensor, in which an extent of 0 counts as 1, overflow.
inline Tensor empty(const std::vector<std::int64_t>& shape, ScalarType type) {
  std::int64_t elements = 1, stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::int64_t extent = shape[i] > 1 ? shape[i] : 1;
    if (extent > std::numeric_limits<std::int64_t>::max() / stride)
      throw std::runtime_error("Stride calculation overflowed");
    stride *= extent;
    elements *= shape[i];
  }
  return {shape, type, static_cast<std::size_t>(elements) * c10::elementSize(type)};
}

}  // namespace at
