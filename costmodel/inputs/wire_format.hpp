// Encoding of elements on the wire: value type, top-k sparsity, indices and scales.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/inputs/enum_names.hpp"

namespace fomoe::costmodel {

enum class ElementType { fp32, bf16, fp16, fp8, int8, int4, int2, int32 };
constexpr auto enum_names(ElementType) {
  return std::to_array<EnumName<ElementType>>({{ElementType::fp32, "fp32"},
                                               {ElementType::bf16, "bf16"},
                                               {ElementType::fp16, "fp16"},
                                               {ElementType::fp8, "fp8"},
                                               {ElementType::int8, "int8"},
                                               {ElementType::int4, "int4"},
                                               {ElementType::int2, "int2"},
                                               {ElementType::int32, "int32"}});
}
int bits_of(ElementType type);

/// The n elements of a payload take ⌈(⌈kept_share·n⌉·(value bits + position bits) + ⌈n/block⌉·scale bits) ÷
/// 8⌉ bytes, where `block` is block_elements. A position has index_bits bits. If positions are entropy-coded,
/// it has the entropy of a position instead, H(p)/p bits for a share p of kept elements, where H is the
/// binary entropy. If all elements are kept, nothing is sent about their positions.
struct WireFormat {
  ElementType type = ElementType::bf16;
  double kept_share = 1;            // top-k: share of the elements that is sent
  int index_bits = 0;               // bits for the position of a sent element
  std::int64_t block_elements = 0;  // elements that share one scale; 0: no scales
  int scale_bits = 0;
  bool entropy_coded = false;

  [[nodiscard]] bool sparse() const { return kept_share < 1; }
  [[nodiscard]] double position_bits() const;
  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const;
  /// Bytes per element of a large payload, without rounding.
  [[nodiscard]] double bytes_per_element() const;
  bool operator==(const WireFormat&) const = default;
};

/// Dense values, with one fp32 scale for each 256 elements of the integer types that need scales (the bucket
/// of QSGD, Alistarh et al. 2017). A scenario can set other block sizes.
WireFormat plain_format(ElementType type);

/// Dense values that are sent to experts. fp8 has one fp32 scale for each 128 values (DeepSeek-V3, arXiv
/// 2412.19437, section 3.3.2).
WireFormat dispatch_wire(ElementType type);

/// The `kept_share` largest values, each with its position. There are no scales: codebooks of one tensor
/// each, as in SparseLoCo, are too small to count. A share of 1 is plain_format(), which sends all values in
/// order.
WireFormat top_k_format(ElementType type, double kept_share, int index_bits);

/// Format for values that are not differences: parameters, moments and outer state. Rounding them to a few
/// bits in every round would destroy them, and a sparse part of them is useless to the receiver. They are
/// therefore sent as bf16 if `wire`, the format of gradients, is sparse or has less than 16 bits.
WireFormat parameter_format(const WireFormat& wire);

/// Format of the result of `contributors` payloads. Sparse payloads keep values at different positions, which
/// are taken as independent: of a share k of each payload follows the share 1 − (1 − k)^contributors of the
/// result, unless the aggregator keeps another share (as in gTop-k, Shi et al. 2019, arXiv 1901.04359). If
/// positions then take more bits than zeros, all values are sent without positions.
WireFormat result_format(const WireFormat& payload, double contributors,
                         const std::optional<double>& result_share);

}  // namespace fomoe::costmodel
