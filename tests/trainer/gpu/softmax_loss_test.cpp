// Compares the kernel of softmax_loss.cu with LibTorch's operators in fp64.
#include "trainer/kernels/softmax_loss/softmax_loss.hpp"

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE("cross-entropy of rows: losses and gradients of short, long, padded and odd rows, both formats") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // fp32: sums of up to 200,000 terms by 256 threads, and exponentials that are right to two units in the
    // last place. bf16: the logits are exact in both, so only the result is rounded to 8 significant bits, by
    // up to 2^−8 of a value.
    const double tolerance = type == at::kFloat ? 1e-6 : 0x1p-8;
    for (const auto& [vocabulary, stride] :
         {std::pair{1, 1}, {33, 33}, {57, 64}, {4099, 4160}, {200'019, 200'064}, {200'019, 200'019}}) {
      for (const std::int64_t rows : {0, 1, 300}) {
        CAPTURE(vocabulary);
        CAPTURE(stride);
        CAPTURE(rows);
        CAPTURE(std::string(c10::toString(type)));
        at::manual_seed(17);
        const at::Tensor logits = (4 * at::randn({rows, stride}, at::kCUDA)).to(type);
        const at::Tensor targets = at::randint(vocabulary, {rows}, at::device(at::kCUDA).dtype(at::kLong));
        at::Tensor exact = logits.to(at::kDouble), got = logits.clone(), again = logits.clone(),
                   kept = logits.clone();
        const at::Tensor wanted = softmax_losses_of_operators(exact, targets, vocabulary, true);
        const at::Tensor losses = softmax_losses(got, targets, vocabulary, true);
        // Sums have a fixed order: always the same bytes.
        CHECK(at::equal(losses, softmax_losses(again, targets, vocabulary, true)));
        CHECK(at::equal(got, again));
        CHECK(at::equal(losses, softmax_losses(kept, targets, vocabulary, false)));
        CHECK(at::equal(kept, logits));
        if (rows == 0) continue;
        CHECK(largest_difference(losses, wanted) <= 2e-5);  // of losses up to about 30, in fp32
        CHECK(((got.to(at::kDouble) - exact).abs() - tolerance * exact.abs()).max().item<double>() <= 1e-6);
        CHECK(got.narrow(1, vocabulary, stride - vocabulary).count_nonzero().item<std::int64_t>() == 0);
      }
    }
  }
}
