// How elements are written on the wire: value type, what is left out, and what goes beside the values.
#pragma once
#include <cstdint>
#include <string>

namespace fomoe::costmodel {

enum class ElementType { fp32, bf16, fp16, fp8, int8, int4, int2, int32 };
const char* to_string(ElementType type);
int bits_of(ElementType type);

/// Bytes of n elements: ⌈(⌈kept·n⌉·(value bits + index bits) + ⌈n/block⌉·scale bits) ÷ 8⌉.
struct WireFormat {
  ElementType type = ElementType::bf16;
  double kept_share = 1;            // top-k: share of the elements that is sent
  int index_bits = 0;               // position of a kept element
  std::int64_t block_elements = 0;  // elements that share a scale; 0: no scales
  int scale_bits = 0;

  [[nodiscard]] bool sparse() const { return kept_share < 1; }
  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const;
  /// The mean over many elements, without the rounding.
  [[nodiscard]] double bytes_per_element() const;
  bool operator==(const WireFormat&) const = default;
};

/// Values alone, or with the scales that integer types need: one fp32 for 256 elements (QSGD's bucket,
/// Alistarh et al. 2017; others are a matter of the scenario).
WireFormat plain_format(ElementType type);

/// The `kept_share` largest values, each with its position. No scales: codebooks of one per tensor, as
/// SparseLoCo's, are too small to count.
WireFormat top_k_format(ElementType type, double kept_share, int index_bits);

/// For parameters that the receiver does not have yet: a sparse difference tells it nothing, so these go as
/// bf16 where the other payloads are sparse.
WireFormat whole_parameter_format(const WireFormat& wire);

}  // namespace fomoe::costmodel
