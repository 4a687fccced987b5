#include "trainer/kernels/codec/codec.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "trainer/kernels/codec/codec_kernels.hpp"
#include "trainer/kernels/on_device.hpp"

namespace fomoe::trainer {
namespace {

constexpr std::int64_t kMostValues = std::int64_t{1} << 32;  // positions have at most 32 bits

/// Calls `launch` with the stream of x if x is on a GPU, otherwise `loop(i)` for i = 0 … count − 1.
template <class Launch, class Loop>
void run(const at::Tensor& on, std::int64_t count, const Launch& launch, const Loop& loop) {
  if (count == 0) return;
  if (on.is_cuda()) {
    launch_on(on.device(), launch);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) loop(i);
}

void check(const at::Tensor& tensor, at::ScalarType type, const char* what) {
  TORCH_CHECK(tensor.dim() == 1 && tensor.is_contiguous() && tensor.scalar_type() == type, what,
              " must be a contiguous vector of ", type);
}

BlockCodes block_codes(std::int64_t n, int bits, std::int64_t block) {
  TORCH_CHECK((bits == 8 || bits == 4 || bits == 2) && block > 0,
              "block codes must have 8, 4 or 2 bits and a positive block size");
  return {n, block, bits};
}

TopK top_k(std::int64_t n, double share, int index_bits) {
  TORCH_CHECK(n <= kMostValues && index_bits >= 0,
              "top-k supports at most 2^32 values and no negative number of index bits");
  return {n, index_bits >= 32 ? kMostValues : std::int64_t{1} << index_bits, share};
}

/// What top_k_of_group() does, on a CPU: partial sorting finds the threshold faster than counting for each
/// bit. `magnitudes` is memory that the calls share.
void select(const TopK& top, const float* x, std::int64_t index, std::vector<std::uint32_t>& magnitudes,
            float* values, std::uint32_t* positions) {
  const TopKGroup group(top, index);
  if (group.count == 0) return;
  const float* in = x + group.begin;
  magnitudes.resize(static_cast<std::size_t>(group.size));
  std::transform(in, in + group.size, magnitudes.begin(), magnitude);
  const auto last_kept = magnitudes.begin() + group.count - 1;
  std::nth_element(magnitudes.begin(), last_kept, magnitudes.end(), std::greater<>());
  write_kept(Alone{}, group, in, *last_kept, values, positions);
}

}  // namespace

at::Tensor encode_blocks(const at::Tensor& x, int bits, std::int64_t block) {
  check(x, at::kFloat, "the values to encode");
  const BlockCodes codes = block_codes(x.numel(), bits, block);
  at::Tensor bytes = at::empty({codes.code_bytes() + 4 * codes.blocks()}, x.options().dtype(at::kByte));
  const auto* in = x.const_data_ptr<float>();
  auto* out = bytes.mutable_data_ptr<std::uint8_t>();
  run(
      x, codes.blocks(),
      [&](auto stream) { return launch_encode_blocks(codes, codes.blocks(), in, out, stream); },
      [&](std::int64_t i) { encode_block(Alone{}, codes, in, i, out); });
  if (codes.whole_bytes()) return bytes;
  run(
      x, codes.code_bytes(),
      [&](auto stream) { return launch_encode_shared_bytes(codes, codes.code_bytes(), in, out, stream); },
      [&](std::int64_t i) { encode_shared_byte(codes, in, i, out); });
  return bytes;
}

at::Tensor decode_blocks(const at::Tensor& bytes, std::int64_t n, int bits, std::int64_t block) {
  check(bytes, at::kByte, "the codes");
  const BlockCodes codes = block_codes(n, bits, block);
  TORCH_CHECK(bytes.numel() == codes.code_bytes() + 4 * codes.blocks(), "the codes of ", n,
              " values do not have ", bytes.numel(), " bytes");
  at::Tensor x = at::empty({n}, bytes.options().dtype(at::kFloat));
  const auto* in = bytes.const_data_ptr<std::uint8_t>();
  auto* out = x.mutable_data_ptr<float>();
  run(
      bytes, codes.blocks(),
      [&](auto stream) { return launch_decode_blocks(codes, codes.blocks(), in, out, stream); },
      [&](std::int64_t i) { decode_block(Alone{}, codes, in, i, out); });
  return x;
}

std::int64_t kept_values(std::int64_t n, double share) { return TopK{n, 1, share}.kept_before(n); }

KeptValues largest_of_groups(const at::Tensor& x, double share, int index_bits) {
  check(x, at::kFloat, "the values to select from");
  const TopK top = top_k(x.numel(), share, index_bits);
  KeptValues kept{at::empty({top.kept_before(top.n)}, x.options()),
                  at::empty({top.kept_before(top.n)}, x.options().dtype(at::kInt))};
  const auto* in = x.const_data_ptr<float>();
  auto* values = kept.values.mutable_data_ptr<float>();
  auto* positions = reinterpret_cast<std::uint32_t*>(kept.positions.mutable_data_ptr<std::int32_t>());
  std::vector<std::uint32_t> magnitudes;
  run(
      x, top.groups(),
      [&](auto stream) { return launch_top_k(top, top.groups(), in, values, positions, stream); },
      [&](std::int64_t i) { select(top, in, i, magnitudes, values, positions); });
  return kept;
}

at::Tensor pack_positions(const at::Tensor& positions, int index_bits) {
  check(positions, at::kInt, "the positions");
  const std::int64_t count = positions.numel(), bytes = (count * index_bits + 7) / 8;
  at::Tensor packed = at::empty({bytes}, positions.options().dtype(at::kByte));
  const auto* in = reinterpret_cast<const std::uint32_t*>(positions.const_data_ptr<std::int32_t>());
  auto* out = packed.mutable_data_ptr<std::uint8_t>();
  run(
      positions, bytes,
      [&](auto stream) { return launch_pack_positions(in, count, index_bits, bytes, out, stream); },
      [&](std::int64_t i) { out[i] = byte_of_positions(in, count, index_bits, i); });
  return packed;
}

at::Tensor unpack_positions(const at::Tensor& bytes, std::int64_t n, double share, int index_bits) {
  check(bytes, at::kByte, "the packed positions");
  const TopK top = top_k(n, share, index_bits);
  const std::int64_t count = top.kept_before(n);
  TORCH_CHECK(bytes.numel() == (count * index_bits + 7) / 8, "the packed positions of ", count,
              " values do not have ", bytes.numel(), " bytes");
  at::Tensor positions = at::empty({count}, bytes.options().dtype(at::kLong));
  const auto* in = bytes.const_data_ptr<std::uint8_t>();
  auto* out = positions.mutable_data_ptr<std::int64_t>();
  run(
      bytes, top.groups(),
      [&](auto stream) { return launch_unpack_positions(top, top.groups(), in, index_bits, out, stream); },
      [&](std::int64_t i) { positions_of_group(Alone{}, top, in, index_bits, i, out); });
  return positions;
}

}  // namespace fomoe::trainer
