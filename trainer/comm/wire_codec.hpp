// Values to bytes and back, as a plan's WireFormat says: as many bytes as WireFormat::bytes counts, exactly.
//
//   fp32 bf16 fp16 fp8     the values, rounded to nearest (fp8: 4 exponent and 3 mantissa bits)
//   int8 int4 int2         per block of `block_elements`: q = round(x·(2^(b−1) − 1)/max|x|), then the fp32
//                          max|x| of each block behind all codes (QSGD's buckets, Alistarh et al. 2017,
//                          without its random rounding)
//   top-k                  of every 2^index_bits elements the share of largest magnitude in fp32, of equal
//                          ones the first: values (fp32, bf16, fp16), then positions of index_bits bits
#pragma once
#include <cstdint>
#include <optional>

#include "costmodel/inputs/wire_format.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class WireCodec {
 public:
  /// `exact`: values travel as fp64 whatever the format says, for tests of the mathematics; bytes are then
  /// not the plan's. Throws std::invalid_argument for a format that cannot be decoded (top-k of integers has
  /// no room for scales).
  explicit WireCodec(const costmodel::WireFormat& format, bool exact = false);

  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const;
  /// values [n], any floating dtype and device → uint8 [bytes(n)] on the CPU; may share memory with `values`.
  [[nodiscard]] at::Tensor encode(const at::Tensor& values) const;
  /// The inverse, in the dtype and on the device of `like`.
  [[nodiscard]] at::Tensor decode(const at::Tensor& bytes, std::int64_t elements,
                                  const at::Tensor& like) const;
  /// What a receiver would read.
  [[nodiscard]] at::Tensor round_trip(const at::Tensor& values) const;

 private:
  costmodel::WireFormat format_;
  std::optional<at::ScalarType> plain_;  // the values as they are in this dtype
};

}  // namespace fomoe::trainer
