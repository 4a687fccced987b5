// Encodes values as bytes and decodes them, in a plan's WireFormat. The number of bytes equals
// WireFormat::bytes.
//
//   fp32 bf16 fp16 fp8   the values, rounded to nearest (fp8: 4 exponent bits and 3 mantissa bits)
//   int8 int4 int2       codes of b = 8, 4 or 2 bits. The values x of each block of `block_elements` get the
//                        codes q = round(x·(2^(b−1) − 1)/max|x|). After all codes follows the fp32 max|x| of
//                        each block. These are the buckets of QSGD (Alistarh et al. 2017), without its
//                        random rounding.
//   top-k                a share of the elements of each group of 2^index_bits elements: those with the
//                        largest magnitude in fp32, and of equal magnitudes the first. The values come first
//                        (fp32, bf16 or fp16), then their positions in the group, of index_bits bits each.
#pragma once
#include <cstdint>
#include <optional>

#include "costmodel/inputs/wire_format.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Whether a site keeps what its pseudo-gradients lose in this format, and adds it to the next ones (error
/// feedback). Small differences would be lost in every round: top-k leaves them out, and in less than 16 bits
/// they are rounded to zero. fp8 has no scale, so that values below 2^−10 are zeros.
bool feeds_errors_back(const costmodel::WireFormat& format);

class WireCodec {
 public:
  /// If `exact` is set, values travel as fp64 whatever the format is. That serves tests of the arithmetic;
  /// the bytes are then not those of the plan. Throws std::invalid_argument for a format that cannot be
  /// decoded (top-k of integers leaves no room for scales).
  explicit WireCodec(const costmodel::WireFormat& format, bool exact = false);

  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const;
  /// values [n], of any floating-point dtype and on any device → uint8 [bytes(n)] on that device. The result
  /// may share memory with `values`.
  [[nodiscard]] at::Tensor encode(const at::Tensor& values) const;
  /// The inverse of encode(), of bytes on any device: the result has the dtype and the device of `like`,
  /// where the bytes are decoded.
  [[nodiscard]] at::Tensor decode(const at::Tensor& bytes, std::int64_t elements,
                                  const at::Tensor& like) const;
  /// Encodes and decodes: the values that a receiver would read.
  [[nodiscard]] at::Tensor round_trip(const at::Tensor& values) const;

 private:
  costmodel::WireFormat format_;
  // the dtype of a format that stores each value as it is; empty for the others
  std::optional<at::ScalarType> plain_;
};

}  // namespace fomoe::trainer
