#include "costmodel/inputs/wire_format.hpp"

#include <cmath>
#include <cstdlib>

namespace fomoe::costmodel {

int bits_of(ElementType type) {
  switch (type) {
    case ElementType::fp32:
    case ElementType::int32:
      return 32;
    case ElementType::bf16:
    case ElementType::fp16:
      return 16;
    case ElementType::fp8:
    case ElementType::int8:
      return 8;
    case ElementType::int4:
      return 4;
    case ElementType::int2:
      return 2;
  }
  std::abort();
}

double WireFormat::position_bits() const {
  if (!sparse()) return 0;  // all values are sent, in order
  if (!entropy_coded) return index_bits;
  const double p = kept_share, entropy = -p * std::log2(p) - (1 - p) * std::log2(1 - p);
  return entropy / p;
}

std::int64_t WireFormat::bytes(std::int64_t elements) const {
  const auto kept = kept_share >= 1
                        ? elements
                        : static_cast<std::int64_t>(std::ceil(kept_share * static_cast<double>(elements)));
  std::int64_t bits = kept * bits_of(type) +
                      static_cast<std::int64_t>(std::ceil(static_cast<double>(kept) * position_bits()));
  if (block_elements > 0) bits += (elements + block_elements - 1) / block_elements * scale_bits;
  return (bits + 7) / 8;
}

double WireFormat::bytes_per_element() const {
  const double scale =
      block_elements > 0 ? static_cast<double>(scale_bits) / static_cast<double>(block_elements) : 0;
  return (kept_share * (bits_of(type) + position_bits()) + scale) / 8;
}

WireFormat plain_format(ElementType type) {
  const bool scaled = type == ElementType::int8 || type == ElementType::int4 || type == ElementType::int2;
  return scaled ? WireFormat{type, 1, 0, 256, 32} : WireFormat{type, 1, 0, 0, 0};
}

WireFormat dispatch_wire(ElementType type) {
  return type == ElementType::fp8 ? WireFormat{type, 1, 0, 128, 32} : plain_format(type);
}

WireFormat top_k_format(ElementType type, double kept_share, int index_bits) {
  if (kept_share >= 1) return plain_format(type);
  return {type, kept_share, index_bits, 0, 0};
}

WireFormat parameter_format(const WireFormat& wire) {
  const bool coarse = wire.sparse() || bits_of(wire.type) < 16;
  return coarse ? plain_format(ElementType::bf16) : wire;
}

WireFormat result_format(const WireFormat& payload, double contributors,
                         const std::optional<double>& result_share) {
  if (!payload.sparse()) return payload;
  WireFormat sparse = payload, dense = payload;
  sparse.kept_share = result_share.value_or(1 - std::pow(1 - payload.kept_share, contributors));
  dense.kept_share = 1;
  dense.index_bits = 0;
  dense.entropy_coded = false;
  return sparse.sparse() && sparse.bytes_per_element() < dense.bytes_per_element() ? sparse : dense;
}

}  // namespace fomoe::costmodel
