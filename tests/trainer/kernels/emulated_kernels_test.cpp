// Runs our CUDA kernels on a CPU, thread by thread (../emulated_gpu/), and compares them with the CPU's
// own loops. It tests what a launch covers, how threads share work and wait for each other, and whether a GPU
// would accept the launch.
#include <torch/csrc/autograd/autograd.h>

#include "emulated/kernels/codec/codec.hpp"
#include "emulated/kernels/expert_rows/expert_rows.hpp"
#include "emulated/kernels/outer_step/outer_step.hpp"
#include "emulated/kernels/peri_norm/peri_norm.hpp"
#include "emulated/kernels/rotary/rotary.hpp"
#include "emulated/kernels/route/route.hpp"
#include "emulated/kernels/softmax_loss/softmax_loss.hpp"
#include "emulated/kernels/team.hpp"
#include "tests/trainer/emulated_gpu/emulated_gpu.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/kernels/codec/codec.hpp"
#include "trainer/kernels/expert_rows/expert_rows.hpp"
#include "trainer/kernels/outer_step/outer_step.hpp"
#include "trainer/kernels/peri_norm/peri_norm.hpp"
#include "trainer/kernels/rotary/rotary.hpp"
#include "trainer/kernels/route/route.hpp"
#include "trainer/kernels/softmax_loss/softmax_loss.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace emulated = fomoe::emulated;

namespace {

/// fp32 sums of `terms` terms in different orders differ by about 2^−24·√terms of the largest term; four
/// times that is allowed. Rounded to bf16 they may differ by one unit, 2^−7 of a value.
void check_near(const at::Tensor& got, const at::Tensor& wanted, std::int64_t terms) {
  REQUIRE(got.sizes() == wanted.sizes());
  if (wanted.numel() == 0) return;
  const at::Tensor exact = wanted.to(at::kDouble).abs();
  const double sums =
      4 * 0x1p-24 * std::sqrt(static_cast<double>(terms)) * std::max(1.0, exact.max().item<double>());
  const double neighbour = wanted.scalar_type() == at::kBFloat16 ? 0x1p-7 : 0;
  const at::Tensor off = (got.to(at::kDouble) - wanted.to(at::kDouble)).abs();
  CHECK((off - neighbour * exact).max().item<double>() <= sums);
}

at::Tensor varied_values(std::int64_t n) {
  at::manual_seed(42);
  const at::Tensor x = at::randn({n}) * at::exp(2 * at::randn({n}));
  return at::where(at::rand({n}) < 0.3, at::round(x), x).contiguous();
}

}  // namespace

TEST_CASE("emulated routing: the sort by expert, its inverse, and the ends") {
  at::manual_seed(3);
  const PoisonedMemory poison;
  for (const std::int64_t experts : {1, 2, 31, 32, 33, 128}) {
    for (const std::int64_t slots : {0, 1, 31, 512, 513, 3001}) {
      CAPTURE(experts);
      CAPTURE(slots);
      const at::Tensor expert = at::randint(experts + 1, {slots}, at::kLong);
      const Route expected = route_reference(expert, experts);
      const emulated::Route got = emulated::route(expert, experts);
      CHECK(at::equal(got.permutation, expected.permutation));
      CHECK(at::equal(got.position, expected.position));
      CHECK(at::equal(got.ends, expected.ends));
    }
  }
  // More chunks than one block scans at a time.
  const at::Tensor many = at::randint(3, {512 * 300 + 7}, at::kLong);
  CHECK(at::equal(emulated::route(many, 2).permutation, route_reference(many, 2).permutation));
}

TEST_CASE("emulated expert rows: gathered, activated, summed with gates, and back") {
  constexpr std::int64_t kChosen = 3, kExperts = 4;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t tokens : {1, 17}) {
      for (const std::int64_t d : {1, 33, 130, 512}) {
        for (const char* kind : {"all here", "some ghosts", "all ghosts", "one expert for all"}) {
          CAPTURE(tokens);
          CAPTURE(d);
          CAPTURE(c10::toString(type));
          at::manual_seed(9);
          const std::string which = kind;
          CAPTURE(which);
          at::Tensor expert = at::randint(kExperts + (which == "some ghosts"), {tokens * kChosen}, at::kLong);
          if (which == "all ghosts") expert.fill_(kExperts);
          if (which == "one expert for all") expert.fill_(2);  // all other experts are empty
          const Route route = route_reference(expert, kExperts);
          const emulated::Route same{route.permutation, route.position, route.ends};
          const std::int64_t here = route.ends[kExperts - 1].item<std::int64_t>();
          const auto of_rows = [&](const at::Tensor& rows) { return rows.narrow(0, 0, here); };
          const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes).to(type); };
          const at::Tensor x = random({tokens, d}), y = random({tokens * kChosen, d}),
                           h = random({tokens * kChosen, d}), u = random({tokens * kChosen, d}),
                           gates = random({tokens, kChosen});
          const PoisonedMemory poison;
          CHECK(at::equal(of_rows(emulated::rows_of_experts(x, same, kChosen)),
                          of_rows(rows_of_experts(x, route, kChosen))));
          check_near(emulated::rows_of_experts_backward(y, same, kChosen),
                     rows_of_experts_backward(y, route, kChosen), kChosen);
          check_near(of_rows(emulated::silu_of_rows(h, route.ends)), of_rows(silu_of_rows(h, route.ends)), 1);
          check_near(emulated::weighted_sum_of_rows(y, gates, same), weighted_sum_of_rows(y, gates, route),
                     kChosen);
          const auto got = emulated::gated_silu_backward(u, h, gates, same);
          const auto wanted = gated_silu_backward(u, h, gates, route);
          check_near(of_rows(got.d_h), of_rows(wanted.d_h), 1);
          check_near(of_rows(got.gated), of_rows(wanted.gated), 1);
          check_near(got.d_gates, wanted.d_gates, d);
        }
      }
    }
  }
}

TEST_CASE("emulated peri_norm: forward, backward and sums over rows") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t rows : {0, 1, 7}) {
      for (const std::int64_t d :
           {1, 33, 256, 4096, 8192}) {  // from 4096 on: more shared memory than the default
        CAPTURE(rows);
        CAPTURE(d);
        CAPTURE(c10::toString(type));
        at::manual_seed(22);
        const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes).to(type); };
        const std::vector<at::Tensor> inputs = {random({rows, d}), random({rows, d}), random({d}),
                                                random({d})};
        const at::Tensor d_sum = random({rows, d}), d_normed = random({rows, d});
        const auto run = [&](const auto& peri_norm) {
          std::vector<at::Tensor> leaf;
          for (const at::Tensor& t : inputs) leaf.push_back(t.clone().requires_grad_());
          // A large epsilon, since the variance is 0 for d = 1.
          const auto out = peri_norm(leaf[0], leaf[1], leaf[2], leaf[3], 0.3, 1e-1);
          torch::autograd::backward({out.sum, out.normed}, {d_sum, d_normed});
          return std::vector<at::Tensor>{out.sum,        out.normed,     leaf[0].grad(),
                                         leaf[1].grad(), leaf[2].grad(), leaf[3].grad()};
        };
        const PoisonedMemory poison;
        const auto wanted = run(fomoe::trainer::peri_norm), got = run(emulated::peri_norm);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          CAPTURE(i);
          check_near(got[i], wanted[i], d);
        }
      }
    }
  }
}

TEST_CASE("emulated rotation of q and k, forward and backward") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t head : {2, 6, 64, 128}) {
      CAPTURE(head);
      CAPTURE(c10::toString(type));
      at::manual_seed(31);
      const at::Tensor projection = at::randn({2, 5, 3, 3, head}).to(type);
      const RotaryTable table = rotary_table(5, head, projection.options());
      const at::Tensor d = at::randn({2, 5, 3, head}).to(type);
      const auto run = [&](const auto& rotated_heads) {
        const at::Tensor leaf = projection.clone().requires_grad_();
        const auto out = rotated_heads(leaf, table);
        torch::autograd::backward({out.q, out.k, out.v}, {d, d * 2, d * 3});
        return std::vector<at::Tensor>{out.q, out.k, leaf.grad()};
      };
      const PoisonedMemory poison;
      const auto wanted = run(rotated_heads), got = run(emulated::rotated_heads);
      for (std::size_t i = 0; i < wanted.size(); ++i) check_near(got[i], wanted[i], 2);
    }
  }
}

TEST_CASE("emulated cross-entropy of rows, with and without padding, packs and gradients") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // Rows of single elements and of packs, shorter than the block and longer than two packs for each thread.
    for (const auto& [vocabulary, stride] :
         {std::pair{1, 1}, {33, 33}, {57, 64}, {64, 64}, {5003, 5056}, {9001, 9024}}) {
      for (const std::int64_t rows : {0, 1, 3}) {
        CAPTURE(vocabulary);
        CAPTURE(stride);
        CAPTURE(rows);
        CAPTURE(c10::toString(type));
        at::manual_seed(17);
        const at::Tensor logits = (4 * at::randn({rows, stride})).to(type),
                         targets = at::randint(vocabulary, {rows}, at::kLong);
        const PoisonedMemory poison;
        for (const bool gradients : {true, false}) {
          at::Tensor wanted = logits.clone(), got = logits.clone();
          const at::Tensor losses = softmax_losses(wanted, targets, vocabulary, gradients);
          check_near(emulated::softmax_losses(got, targets, vocabulary, gradients), losses, vocabulary);
          check_near(got, wanted, vocabulary);
          if (!gradients) CHECK(at::equal(got, logits));
        }
      }
    }
  }
}

TEST_CASE("emulated codecs: the CPU's bytes, values and positions") {
  for (const int bits : {8, 4, 2}) {
    for (const std::int64_t block : {1, 3, 256, 1000}) {
      for (const std::int64_t n : {0, 1, 257, 5003}) {
        CAPTURE(bits);
        CAPTURE(block);
        CAPTURE(n);
        const at::Tensor x = varied_values(n), bytes = encode_blocks(x, bits, block);
        CHECK(at::equal(emulated::encode_blocks(x, bits, block), bytes));
        CHECK(
            at::equal(emulated::decode_blocks(bytes, n, bits, block), decode_blocks(bytes, n, bits, block)));
      }
    }
  }
  for (const int index_bits : {0, 1, 7, 12, 33}) {
    for (const double share : {0.01, 0.25, 0.99}) {
      // few groups, since each takes a block
      for (const std::int64_t n : {0, 1, 129, index_bits < 7 ? 500 : 9001}) {
        CAPTURE(index_bits);
        CAPTURE(share);
        CAPTURE(n);
        const at::Tensor x = varied_values(n);
        const KeptValues wanted = largest_of_groups(x, share, index_bits);
        const emulated::KeptValues got = emulated::largest_of_groups(x, share, index_bits);
        CHECK(at::equal(got.values, wanted.values));
        CHECK(at::equal(got.positions, wanted.positions));
        const at::Tensor packed = pack_positions(wanted.positions, index_bits);
        CHECK(at::equal(emulated::pack_positions(wanted.positions, index_bits), packed));
        CHECK(at::equal(emulated::unpack_positions(packed, n, share, index_bits),
                        unpack_positions(packed, n, share, index_bits)));
      }
    }
  }
}

TEST_CASE("emulated outer step: Nesterov's, of sizes with and without whole packs") {
  for (const std::int64_t n : {1, 3, 1024, 1027}) {
    CAPTURE(n);
    const at::Tensor anchor = varied_values(n), momentum = anchor.flip(0).contiguous(),
                     difference = (anchor * 0.5).contiguous();
    const at::Tensor a = anchor.clone(), b = anchor.clone(), m = momentum.clone(), k = momentum.clone();
    nesterov_step(a, m, difference, 0.7, 0.9);
    emulated::nesterov_step(b, k, difference, 0.7, 0.9);
    check_near(b, a, 2);
    check_near(k, m, 2);
  }
}

TEST_CASE("the emulated GPU refuses what a GPU does, and finds threads that wait for ever") {
  const auto launched = [](std::int64_t blocks, std::int64_t threads, std::size_t shared,
                           const std::function<void()>& body) {
    static const int kernel = 0;
    emulated_gpu::launch(&kernel, blocks, threads, shared, body);
    return emulated_gpu::last_error();
  };
  int ran = 0;
  const auto count = [&] { ++ran; };
  CHECK(launched(3, 64, 0, count) == cudaSuccess);
  CHECK(ran == 3 * 64);
  CHECK(launched(0, 64, 0, count) == cudaErrorInvalidConfiguration);
  CHECK(launched(1, 1025, 0, count) == cudaErrorInvalidConfiguration);
  // shared memory that kernels declare statically counts too
  CHECK(launched(1, 32, 48 * 1024, count) == cudaErrorInvalidValue);
  CHECK(ran == 3 * 64);
  alignas(16) static float four[8];
  CHECK(launched(1, 1, 0, [] { emulated::load<4>(four + 4); }) == cudaSuccess);
  CHECK(launched(1, 1, 0, [] { emulated::load<4>(four + 1); }) == cudaErrorMisalignedAddress);
  // Some threads of the block never reach the barrier at which the others wait, which is an error. It is no
  // error if some threads leave the kernel first.
  CHECK_THROWS_AS(
      launched(1, 64, 0, [] { emulated_gpu::thread_index.x < 16 ? __syncwarp() : __syncthreads(); }),
      std::logic_error);
  CHECK(launched(1, 64, 0, [] {
          if (emulated_gpu::thread_index.x >= 32) __syncthreads();
        }) == cudaSuccess);
}
