#include "trainer/comm/wire_codec.hpp"

#include <stdexcept>
#include <string>

#include "trainer/comm/staging.hpp"
#include "trainer/kernels/codec/codec.hpp"

namespace fomoe::trainer {

using costmodel::ElementType;
using costmodel::WireFormat;

namespace {

std::optional<at::ScalarType> scalar_type(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return at::kFloat;
    case ElementType::bf16:
      return at::kBFloat16;
    case ElementType::fp16:
      return at::kHalf;
    case ElementType::fp8:
      return at::kFloat8_e4m3fn;
    default:
      return std::nullopt;
  }
}

// All results stay on the device of the values, so that a GPU encodes its own values and only encoded bytes
// leave it.
at::Tensor as_bytes(const at::Tensor& values, at::ScalarType type) {
  return values.detach().to(type).contiguous().view(at::kByte);
}

at::Tensor as_fp32(const at::Tensor& values) { return values.detach().to(at::kFloat).contiguous(); }

at::Tensor encode_top_k(const at::Tensor& values, const WireFormat& format, at::ScalarType type) {
  const KeptValues kept = largest_of_groups(as_fp32(values), format.kept_share, format.index_bits);
  return at::cat({kept.values.to(type).view(at::kByte), pack_positions(kept.positions, format.index_bits)});
}

at::Tensor decode_top_k(const at::Tensor& bytes, std::int64_t n, const WireFormat& format,
                        at::ScalarType type) {
  const std::int64_t count = kept_values(n, format.kept_share);
  const std::int64_t value_bytes = count * costmodel::bits_of(format.type) / 8;
  const at::Tensor kept = bytes.narrow(0, 0, value_bytes).clone().view(type);
  const at::Tensor where = unpack_positions(bytes.narrow(0, value_bytes, bytes.numel() - value_bytes), n,
                                            format.kept_share, format.index_bits);
  return at::zeros({n}, kept.options()).index_copy(0, where, kept);
}

}  // namespace

bool feeds_errors_back(const WireFormat& format) {
  return format.sparse() || costmodel::bits_of(format.type) < 16;
}

WireCodec::WireCodec(const WireFormat& format, bool exact) : format_(format) {
  plain_ = exact ? std::optional(at::kDouble) : scalar_type(format.type);
  if (exact) format_ = {};
  if (format_.entropy_coded) throw std::invalid_argument("top-k has no entropy coder for positions");
  if (format_.sparse() && (!plain_ || format_.type == ElementType::fp8 || format_.block_elements > 0)) {
    throw std::invalid_argument("top-k supports values in fp32, bf16 and fp16, but not in " +
                                std::string(to_string(format_.type)));
  }
}

std::int64_t WireCodec::bytes(std::int64_t elements) const {
  return plain_ == at::kDouble ? 8 * elements : format_.bytes(elements);
}

at::Tensor WireCodec::encode(const at::Tensor& values) const {
  if (format_.sparse()) return encode_top_k(values, format_, *plain_);
  if (plain_) return as_bytes(values, *plain_);
  return encode_blocks(as_fp32(values), costmodel::bits_of(format_.type), format_.block_elements);
}

at::Tensor WireCodec::decode(const at::Tensor& bytes, std::int64_t elements, const at::Tensor& like) const {
  const at::Tensor here = on_device(bytes, like.device());
  at::Tensor values;
  if (format_.sparse()) {
    values = decode_top_k(here, elements, format_, *plain_);
  } else if (plain_) {
    // A segment may start at any byte of a message, but a view as another dtype needs that dtype's alignment.
    values = here.clone().view(*plain_);
  } else {
    values = decode_blocks(here, elements, costmodel::bits_of(format_.type), format_.block_elements);
  }
  return values.to(like.scalar_type());
}

at::Tensor WireCodec::round_trip(const at::Tensor& values) const {
  if (plain_ && !format_.sparse()) return values.to(*plain_).to(values.scalar_type());
  return decode(encode(values), values.numel(), values);
}

}  // namespace fomoe::trainer
