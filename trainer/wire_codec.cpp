#include "trainer/wire_codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

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

at::Tensor as_bytes(const at::Tensor& values, at::ScalarType type) {
  return values.detach().to(at::kCPU, type).contiguous().view(at::kByte);
}

// Codes of `bits` bits one after another, the first in the lowest bits.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : out_(out) {}
  void put(std::uint64_t code, int bits) {
    for (int b = 0; b < bits; ++b, ++at_) {
      if ((code >> b) & 1) out_[at_ / 8] = static_cast<std::uint8_t>(out_[at_ / 8] | (1u << (at_ % 8)));
    }
  }

 private:
  std::uint8_t* out_;
  std::int64_t at_ = 0;
};

class BitReader {
 public:
  explicit BitReader(const std::uint8_t* in) : in_(in) {}
  std::uint64_t get(int bits) {
    std::uint64_t code = 0;
    for (int b = 0; b < bits; ++b, ++at_)
      code |= static_cast<std::uint64_t>((in_[at_ / 8] >> (at_ % 8)) & 1) << b;
    return code;
  }

 private:
  const std::uint8_t* in_;
  std::int64_t at_ = 0;
};

at::Tensor encode_integers(const at::Tensor& values, const WireFormat& format) {
  const at::Tensor x = values.detach().to(at::kCPU, at::kFloat).contiguous();
  const std::int64_t n = x.numel(), block = format.block_elements;
  const int bits = costmodel::bits_of(format.type);
  const float largest_code = static_cast<float>((1 << (bits - 1)) - 1);
  at::Tensor bytes = at::zeros({format.bytes(n)}, at::kByte);
  auto* out = bytes.mutable_data_ptr<std::uint8_t>();
  const auto* in = x.const_data_ptr<float>();
  BitWriter writer(out);
  std::uint8_t* scales = out + (n * bits + 7) / 8;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    float scale = 0;
    for (std::int64_t i = begin; i < end; ++i) scale = std::max(scale, std::abs(in[i]));
    for (std::int64_t i = begin; i < end; ++i) {
      const int code = scale > 0 ? static_cast<int>(std::lround(in[i] / scale * largest_code)) : 0;
      writer.put(static_cast<std::uint64_t>(code + (1 << (bits - 1))), bits);
    }
    std::memcpy(scales, &scale, sizeof scale);
    scales += sizeof scale;
  }
  return bytes;
}

at::Tensor decode_integers(const at::Tensor& bytes, std::int64_t n, const WireFormat& format) {
  const int bits = costmodel::bits_of(format.type);
  const float largest_code = static_cast<float>((1 << (bits - 1)) - 1);
  at::Tensor values = at::empty({n}, at::kFloat);
  auto* out = values.mutable_data_ptr<float>();
  const auto* in = bytes.const_data_ptr<std::uint8_t>();
  BitReader reader(in);
  const std::uint8_t* scales = in + (n * bits + 7) / 8;
  float scale = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % format.block_elements == 0)
      std::memcpy(&scale, scales + i / format.block_elements * std::int64_t{sizeof scale}, sizeof scale);
    const int code = static_cast<int>(reader.get(bits)) - (1 << (bits - 1));
    out[i] = static_cast<float>(code) / largest_code * scale;
  }
  return values;
}

// Kept elements among the first `elements`: summing over groups gives ⌈share·n⌉, as WireFormat counts.
std::int64_t kept_before(const WireFormat& format, std::int64_t elements) {
  return static_cast<std::int64_t>(std::ceil(format.kept_share * static_cast<double>(elements)));
}

at::Tensor encode_top_k(const at::Tensor& values, const WireFormat& format, at::ScalarType type) {
  const at::Tensor x = values.detach().to(at::kCPU).contiguous();
  const std::int64_t n = x.numel(), group = std::int64_t{1} << format.index_bits;
  std::vector<at::Tensor> kept;
  std::vector<std::int64_t> positions;
  for (std::int64_t begin = 0; begin < n; begin += group) {
    const std::int64_t end = std::min(n, begin + group);
    const std::int64_t count = kept_before(format, end) - kept_before(format, begin);
    const at::Tensor part = x.narrow(0, begin, end - begin);
    // Sorted by position, so that equal input gives equal bytes.
    const at::Tensor where = std::get<0>(std::get<1>(part.abs().topk(count)).sort());
    kept.push_back(part.index_select(0, where));
    const auto* data = where.const_data_ptr<std::int64_t>();
    positions.insert(positions.end(), data, data + count);
  }
  const at::Tensor payload = as_bytes(at::cat(kept), type);
  at::Tensor bytes = at::zeros({format.bytes(n)}, at::kByte);
  bytes.narrow(0, 0, payload.numel()).copy_(payload);
  BitWriter writer(bytes.mutable_data_ptr<std::uint8_t>() + payload.numel());
  for (const std::int64_t position : positions)
    writer.put(static_cast<std::uint64_t>(position), format.index_bits);
  return bytes;
}

at::Tensor decode_top_k(const at::Tensor& bytes, std::int64_t n, const WireFormat& format,
                        at::ScalarType type) {
  const std::int64_t group = std::int64_t{1} << format.index_bits, count = kept_before(format, n);
  const std::int64_t value_bytes = count * costmodel::bits_of(format.type) / 8;
  const at::Tensor kept = bytes.narrow(0, 0, value_bytes).clone().view(type);
  BitReader reader(bytes.const_data_ptr<std::uint8_t>() + value_bytes);
  at::Tensor where = at::empty({count}, at::kLong);
  auto* out = where.mutable_data_ptr<std::int64_t>();
  std::int64_t i = 0;
  for (std::int64_t begin = 0; begin < n; begin += group) {
    for (const std::int64_t end = kept_before(format, std::min(n, begin + group)); i < end; ++i)
      out[i] = begin + static_cast<std::int64_t>(reader.get(format.index_bits));
  }
  return at::zeros({n}, kept.options()).index_copy(0, where, kept);
}

}  // namespace

WireCodec::WireCodec(const WireFormat& format, bool exact) : format_(format) {
  plain_ = exact ? std::optional(at::kDouble) : scalar_type(format.type);
  if (exact) format_ = {};
  if (format_.sparse() && (!plain_ || format_.type == ElementType::fp8 || format_.block_elements > 0)) {
    throw std::invalid_argument("values kept by top-k travel as fp32, bf16 or fp16, not as " +
                                std::string(to_string(format_.type)));
  }
}

std::int64_t WireCodec::bytes(std::int64_t elements) const {
  return plain_ == at::kDouble ? 8 * elements : format_.bytes(elements);
}

at::Tensor WireCodec::encode(const at::Tensor& values) const {
  if (format_.sparse()) return encode_top_k(values, format_, *plain_);
  return plain_ ? as_bytes(values, *plain_) : encode_integers(values, format_);
}

at::Tensor WireCodec::decode(const at::Tensor& bytes, std::int64_t elements, const at::Tensor& like) const {
  at::Tensor values;
  if (format_.sparse()) {
    values = decode_top_k(bytes, elements, format_, *plain_);
  } else if (plain_) {
    // A message's segments start at any byte; a dtype's view needs its own alignment.
    values = bytes.clone().view(*plain_);
  } else {
    values = decode_integers(bytes, elements, format_);
  }
  return values.to(like.device(), like.scalar_type());
}

at::Tensor WireCodec::round_trip(const at::Tensor& values) const {
  if (plain_ && !format_.sparse()) return values.to(*plain_).to(values.scalar_type());
  return decode(encode(values), values.numel(), values);
}

}  // namespace fomoe::trainer
