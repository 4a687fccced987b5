// Tests codes with block scales and top-k: all implementations give the bytes of the reference. It also runs
// the row functions with a team of several members, as in a GPU's block. ../comm/collectives_test.cpp tests
// how close decoded values are to the originals.
#include "trainer/kernels/codec/codec.hpp"

#include "tests/trainer/kernels/codec_reference.hpp"
#include "tests/trainer/kernels/thread_team.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/kernels/codec/codec_row.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

template <class T>
std::vector<T> as_vector(const at::Tensor& tensor) {
  const T* data = static_cast<const T*>(tensor.const_data_ptr());
  return {data, data + tensor.numel()};
}
at::Tensor as_tensor(std::vector<float> values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat).clone();
}

/// Values of very different magnitudes, with zeros and equal values among them.
at::Tensor some_values(std::int64_t n) {
  at::manual_seed(41);
  at::Tensor x = at::randn({n}) * at::exp(2 * at::randn({n}));
  if (n > 0) x = at::where(at::rand({n}) < 0.3, at::round(x), x);
  return x.contiguous();
}

}  // namespace

TEST_CASE("int4 by hand: codes are 1 to 15 for −max to max, the first of two in the low half of a byte") {
  // With a maximum of 7, q = x. 8 is the code of 0.
  const at::Tensor bytes = encode_blocks(at::tensor({7.0f, -7.0f, 0.4f, 0.5f, -0.5f}, at::kFloat), 4, 256);
  const float scale = 7;
  std::vector<std::uint8_t> expected = {0x1f, 0x98, 0x07};  // (15, 1), (8, 9), (7, none)
  expected.resize(7);
  std::memcpy(&expected[3], &scale, 4);
  CHECK(as_vector<std::uint8_t>(bytes) == expected);
  CHECK(at::equal(decode_blocks(bytes, 5, 4, 256), at::tensor({7.0f, -7.0f, 0.0f, 1.0f, -1.0f}, at::kFloat)));
}

TEST_CASE("codes and scales are the reference's, for blocks that end at and within bytes") {
  for (const int bits : {8, 4, 2}) {
    for (const std::int64_t block : {1, 3, 6, 256, 1000}) {
      for (const std::int64_t n : {0, 1, 5, 255, 256, 257, 1003}) {
        CAPTURE(bits);
        CAPTURE(block);
        CAPTURE(n);
        const at::Tensor x = some_values(n);
        const at::Tensor bytes = encode_blocks(x, bits, block);
        CHECK(as_vector<std::uint8_t>(bytes) ==
              encode_blocks_reference(as_vector<float>(x), bits, static_cast<std::size_t>(block)));
        // The tolerance is half a step of the block's scale, plus rounding in fp32.
        const at::Tensor back = decode_blocks(bytes, n, bits, block);
        const double most = 0.5 / ((1 << (bits - 1)) - 1) + 1e-6;
        for (std::int64_t begin = 0; begin < n; begin += block) {
          const std::int64_t size = std::min(block, n - begin);
          const at::Tensor part = x.narrow(0, begin, size);
          CHECK(largest_difference(back.narrow(0, begin, size), part) <=
                most * part.abs().max().item<double>());
        }
      }
    }
  }
}

TEST_CASE("zeros, NaN and infinity: zeros stay, NaN becomes 0, an infinite scale spoils its block alone") {
  const float inf = INFINITY;
  const at::Tensor x = as_tensor({0, -0.0f, 0, 0, NAN, 2, -1, 0, inf, 1, -inf, 0});
  for (const int bits : {8, 4, 2}) {
    const at::Tensor bytes = encode_blocks(x, bits, 4);
    CHECK(as_vector<std::uint8_t>(bytes) == encode_blocks_reference(as_vector<float>(x), bits, 4));
    const at::Tensor back = decode_blocks(bytes, 12, bits, 4);
    CHECK(back.narrow(0, 0, 5).abs().max().item<double>() == 0);
    CHECK(back[5].item<double>() == 2);
    CHECK(back.narrow(0, 8, 4).isnan().all().item<bool>());
  }
}

TEST_CASE("top-k keeps the reference's values, with equal magnitudes among them") {
  for (const int index_bits : {0, 1, 7, 12, 33}) {
    for (const double share : {0.01, 0.25, 0.5, 0.99}) {
      for (const std::int64_t n : {0, 1, 127, 128, 129, 5000}) {
        CAPTURE(index_bits);
        CAPTURE(share);
        CAPTURE(n);
        const at::Tensor x = some_values(n);
        const KeptValues kept = largest_of_groups(x, share, index_bits);
        const auto [values, positions] =
            top_k_reference(as_vector<float>(x), share, std::size_t{1} << index_bits);
        CHECK(as_vector<float>(kept.values) == values);
        CHECK(as_vector<std::uint32_t>(kept.positions) == positions);

        BitWriter writer;
        for (const std::uint32_t position : positions) writer.put(position, index_bits);
        const at::Tensor packed = pack_positions(kept.positions, index_bits);
        CHECK(as_vector<std::uint8_t>(packed) == writer.bytes);
        const at::Tensor where = unpack_positions(packed, n, share, index_bits);
        CHECK(at::equal(x.index_select(0, where), kept.values));
      }
    }
  }
}

TEST_CASE("top-k of equal magnitudes keeps the first, of zeros too; NaN is larger than infinity") {
  const KeptValues equal = largest_of_groups(as_tensor({1, -2, 2, 2, -2, 3, 0, 0}), 0.5, 3);
  CHECK(as_vector<float>(equal.values) == std::vector<float>{-2, 2, 2, 3});
  CHECK(as_vector<std::int32_t>(largest_of_groups(at::zeros({8}), 0.5, 3).positions) ==
        std::vector<std::int32_t>{0, 1, 2, 3});
  const KeptValues odd = largest_of_groups(as_tensor({1, INFINITY, NAN, -INFINITY}), 0.5, 2);
  CHECK(as_vector<std::int32_t>(odd.positions) == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("other sizes are refused") {
  CHECK_THROWS_AS(encode_blocks(at::zeros({4}), 3, 256), c10::Error);
  CHECK_THROWS_AS(encode_blocks(at::zeros({4}), 4, 0), c10::Error);
  CHECK_THROWS_AS(encode_blocks(at::zeros({4}, at::kDouble), 4, 256), c10::Error);
  CHECK_THROWS_AS(decode_blocks(at::zeros({7}, at::kByte), 8, 8, 256), c10::Error);
  CHECK_THROWS_AS(unpack_positions(at::zeros({7}, at::kByte), 8, 0.5, 3), c10::Error);
}

TEST_CASE("any size of team writes the bytes that one member writes") {
  const std::int64_t n = 700;
  const at::Tensor x = some_values(n);
  const auto* in = x.const_data_ptr<float>();
  for (const int size : {2, 5, 32}) {
    CAPTURE(size);
    for (const int bits : {8, 4, 2}) {
      const BlockCodes codes{n, 256, bits};
      const at::Tensor alone = encode_blocks(x, bits, 256), back = decode_blocks(alone, n, bits, 256);
      at::Tensor bytes = at::full_like(alone, 0xa5), values = at::full_like(x, NAN);
      ThreadTeam team(size);
      team.run([&](const ThreadTeam::Member& member) {
        for (std::int64_t block = 0; block < codes.blocks(); ++block)
          encode_block(member, codes, in, block, bytes.mutable_data_ptr<std::uint8_t>());
        member.wait();  // the end of a kernel
        for (std::int64_t block = 0; block < codes.blocks(); ++block) {
          decode_block(member, codes, bytes.const_data_ptr<std::uint8_t>(), block,
                       values.mutable_data_ptr<float>());
        }
      });
      CHECK(at::equal(bytes, alone));
      CHECK(at::equal(values, back));
    }
    for (const double share : {0.05, 0.3}) {
      const TopK top{n, 128, share};
      const KeptValues alone = largest_of_groups(x, share, 7);
      const at::Tensor packed = pack_positions(alone.positions, 7);
      at::Tensor values = at::full_like(alone.values, NAN), positions = at::full_like(alone.positions, -1);
      at::Tensor where = at::full(positions.sizes(), -1, at::kLong);
      ThreadTeam team(size);
      team.run([&](const ThreadTeam::Member& member) {
        for (std::int64_t group = 0; group < top.groups(); ++group) {
          top_k_of_group(member, top, in, group, values.mutable_data_ptr<float>(),
                         reinterpret_cast<std::uint32_t*>(positions.mutable_data_ptr<std::int32_t>()));
          positions_of_group(member, top, packed.const_data_ptr<std::uint8_t>(), 7, group,
                             where.mutable_data_ptr<std::int64_t>());
        }
      });
      CHECK(at::equal(values, alone.values));
      CHECK(at::equal(positions, alone.positions));
      CHECK(at::equal(where, unpack_positions(packed, n, share, 7)));
    }
  }
}
