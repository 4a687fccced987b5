// Tests the kernels of codec.cu: they give exactly the CPU's bytes, and WireCodec decodes on the GPU.
#include "trainer/kernels/codec/codec.hpp"

#include "tests/trainer/support.hpp"
#include "trainer/comm/wire_codec.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
using fomoe::costmodel::ElementType;

namespace {

at::Tensor some_values(std::int64_t n) {
  at::manual_seed(42);
  const at::Tensor x = at::randn({n}) * at::exp(2 * at::randn({n}));
  return at::where(at::rand({n}) < 0.3, at::round(x), x).contiguous();
}

}  // namespace

TEST_CASE("codes with block scales: the CPU's bytes, and its values back") {
  for (const int bits : {8, 4, 2}) {
    for (const std::int64_t block : {1, 3, 6, 256, 1000}) {
      for (const std::int64_t n : {0, 1, 257, 1'000'003}) {
        CAPTURE(bits);
        CAPTURE(block);
        CAPTURE(n);
        const at::Tensor x = some_values(n), bytes = encode_blocks(x, bits, block);
        CHECK(at::equal(encode_blocks(x.cuda(), bits, block).cpu(), bytes));
        CHECK(at::equal(decode_blocks(bytes.cuda(), n, bits, block).cpu(),
                        decode_blocks(bytes, n, bits, block)));
      }
    }
  }
}

TEST_CASE("top-k: the CPU's values, positions and bytes") {
  for (const int index_bits : {0, 1, 7, 12, 16, 33}) {
    for (const double share : {0.01, 0.25, 0.99}) {
      for (const std::int64_t n : {0, 1, 129, 300'001}) {
        CAPTURE(index_bits);
        CAPTURE(share);
        CAPTURE(n);
        const at::Tensor x = some_values(n);
        const KeptValues cpu = largest_of_groups(x, share, index_bits),
                         gpu = largest_of_groups(x.cuda(), share, index_bits);
        CHECK(at::equal(gpu.values.cpu(), cpu.values));
        CHECK(at::equal(gpu.positions.cpu(), cpu.positions));
        const at::Tensor packed = pack_positions(cpu.positions, index_bits);
        CHECK(at::equal(pack_positions(gpu.positions, index_bits).cpu(), packed));
        CHECK(at::equal(unpack_positions(packed.cuda(), n, share, index_bits).cpu(),
                        unpack_positions(packed, n, share, index_bits)));
      }
    }
  }
}

TEST_CASE(
    "WireCodec encodes a GPU's values to the bytes that it makes of the CPU's, and decodes them there") {
  namespace costmodel = fomoe::costmodel;
  std::vector<costmodel::WireFormat> formats = {costmodel::top_k_format(ElementType::fp32, 0.25, 7),
                                                costmodel::top_k_format(ElementType::bf16, 0.02, 12)};
  for (const ElementType type : {ElementType::fp32, ElementType::bf16, ElementType::fp16, ElementType::fp8,
                                 ElementType::int8, ElementType::int4, ElementType::int2}) {
    formats.push_back(costmodel::plain_format(type));
  }
  for (const costmodel::WireFormat& format : formats) {
    CAPTURE(to_string(format.type));
    const WireCodec codec(format);
    // fp8 has no values above 448 but NaN, which does not equal itself.
    const at::Tensor x = some_values(10'007).clamp(-400, 400), bytes = codec.encode(x);
    const at::Tensor encoded = codec.encode(x.cuda());
    CHECK(encoded.is_cuda());  // only encoded bytes leave the GPU
    CHECK(at::equal(encoded.cpu(), bytes));
    CHECK(at::equal(codec.decode(encoded, x.numel(), x), codec.decode(bytes, x.numel(), x)));
    const at::Tensor back = codec.decode(bytes, x.numel(), x.cuda());
    CHECK(back.is_cuda());
    CHECK(at::equal(back.cpu(), codec.decode(bytes, x.numel(), x)));
    CHECK(at::equal(codec.round_trip(x.cuda()).cpu(), codec.round_trip(x)));
  }
}
