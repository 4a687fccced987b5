#include "trainer/model/cross_entropy.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "tests/trainer/support.hpp"
#include "trainer/optimizer/adamw.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

struct Case {
  at::Tensor hidden, embedding, targets;
  Case(std::int64_t tokens, std::int64_t d, std::int64_t vocabulary, at::ScalarType type, double scale = 1) {
    at::manual_seed(5);
    hidden = (at::randn({tokens, d}, type) * scale).requires_grad_();
    embedding = at::randn({vocabulary, d}, type).requires_grad_();
    targets = at::randint(vocabulary, {tokens}, at::kLong);
  }
  void check(std::int64_t chunk_tokens, double tolerance) const {
    // The gradient of 3·loss, as for a micro-batch with a weight.
    const at::Tensor expected = at::cross_entropy_loss(at::mm(hidden, embedding.t()), targets);
    const std::vector<at::Tensor> gradients = torch::autograd::grad({expected * 3}, {hidden, embedding});
    const at::Tensor loss =
        linear_cross_entropy(hidden, embedding, targets, chunk_tokens, /*tied=*/{}, /*weight=*/3);
    const std::vector<at::Tensor> got = torch::autograd::grad({loss}, {hidden, embedding});
    CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(tolerance));
    CHECK(largest_difference(got[0], gradients[0]) < tolerance);
    CHECK(largest_difference(got[1], gradients[1]) < tolerance);

    const at::Tensor zeros = at::zeros({3, embedding.size(1)}, embedding.options());
    const at::Tensor by_padded =
        linear_cross_entropy(hidden, embedding, targets, chunk_tokens, /*tied=*/{}, /*weight=*/3,
                             at::cat({embedding.detach(), zeros.detach()}));
    const std::vector<at::Tensor> same = torch::autograd::grad({by_padded}, {hidden, embedding});
    CHECK(by_padded.item<double>() == doctest::Approx(expected.item<double>()).epsilon(tolerance));
    CHECK(largest_difference(same[0], gradients[0]) < tolerance);
    CHECK(same[1].sizes() == embedding.sizes());
    CHECK(largest_difference(same[1], gradients[1]) < tolerance);

    const at::Tensor by_kernel =
        linear_cross_entropy(hidden, embedding, targets, chunk_tokens, /*tied=*/{}, /*weight=*/3,
                             at::cat({embedding.detach(), zeros.detach()}), /*own_kernels=*/true);
    const std::vector<at::Tensor> own = torch::autograd::grad({by_kernel}, {hidden, embedding});
    CHECK(by_kernel.item<double>() == doctest::Approx(expected.item<double>()).epsilon(tolerance));
    CHECK(largest_difference(own[0], gradients[0]) < tolerance);
    CHECK(largest_difference(own[1], gradients[1]) < tolerance);
  }
};

}  // namespace

TEST_CASE("chunked cross-entropy equals LibTorch's, whatever the chunks") {
  const Case test(10, 6, 50, at::kDouble);
  for (const std::int64_t chunk : {0, 1, 3, 10, 64}) {
    CAPTURE(chunk);
    test.check(chunk, 1e-12);
  }
}

TEST_CASE("chunks of equal size, of at most 2 GiB on a GPU and 512 MiB on a CPU") {
  const std::int64_t row_bytes = 2 * padded_vocabulary(200'019);  // 400 kB
  CHECK(logit_chunk_tokens(2048, row_bytes, /*gpu=*/true) == 2048);
  CHECK(logit_chunk_tokens(8192, row_bytes, true) == 4096);  // one of 3.3 GB would be too large
  CHECK(logit_chunk_tokens(8192, row_bytes, false) == 1171);
  for (const bool gpu : {true, false}) {
    const std::int64_t limit = gpu ? std::int64_t{2} << 30 : std::int64_t{512} << 20;
    CHECK(logit_chunk_tokens(0, row_bytes, gpu) == 0);
    CHECK(logit_chunk_tokens(3, 2 * limit, gpu) == 1);  // a row that is larger than a chunk
    CHECK(logit_chunk_tokens(4, limit / 4, gpu) == 4);
    CHECK(logit_chunk_tokens(5, limit / 4, gpu) == 3);
  }
}

// A sum of V fp32 terms, added one after the other, has an error of about ε·√V of its size, with ε = 2⁻²⁴.
// The order in which the machine's matrix products add terms is not known, so three times that error is
// allowed.
TEST_CASE("fp32 and a vocabulary as long as ours, against fp64") {
  constexpr std::int64_t kVocabulary = 200'019;
  const Case test(5, 16, kVocabulary, at::kFloat);
  const auto with_gradients = [&](at::ScalarType type, const auto& loss_of) {
    const at::Tensor hidden = test.hidden.detach().to(type).requires_grad_();
    const at::Tensor embedding = test.embedding.detach().to(type).requires_grad_();
    const at::Tensor loss = loss_of(hidden, embedding);
    std::vector<at::Tensor> all = torch::autograd::grad({loss}, {hidden, embedding});
    all.push_back(loss.detach());
    return all;
  };
  const auto exact = with_gradients(at::kDouble, [&](const at::Tensor& hidden, const at::Tensor& embedding) {
    return at::cross_entropy_loss(at::mm(hidden, embedding.t()), test.targets);
  });
  const auto got = with_gradients(at::kFloat, [&](const at::Tensor& hidden, const at::Tensor& embedding) {
    return linear_cross_entropy(hidden, embedding, test.targets, 2);
  });
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CAPTURE(i);
    const double size = exact[i].abs().max().item<double>();
    CHECK(largest_difference(got[i], exact[i]) < 3 * 0x1p-24 * std::sqrt(kVocabulary) * size);
  }
}

TEST_CASE("logits of several hundred, where a target's probability underflows") {
  Case(10, 6, 50, at::kDouble, /*scale=*/300).check(4, 1e-9);
  const Case single(10, 6, 50, at::kFloat, /*scale=*/300);
  CHECK(std::isfinite(linear_cross_entropy(single.hidden, single.embedding, single.targets).item<double>()));
}

TEST_CASE("without gradients the loss is the same; a second backward is refused") {
  const Case test(10, 6, 50, at::kDouble);
  const at::Tensor loss = linear_cross_entropy(test.hidden, test.embedding, test.targets, 4);
  {
    const at::NoGradGuard no_grad;
    CHECK(linear_cross_entropy(test.hidden, test.embedding, test.targets, 4).item<double>() ==
          loss.item<double>());
  }
  loss.backward({}, /*retain_graph=*/true);
  CHECK_THROWS_AS(loss.backward({}, /*retain_graph=*/true), std::logic_error);
}

TEST_CASE("a factor behind the loss is refused: the gradients are ready, and would not know it") {
  const Case test(10, 6, 50, at::kFloat);
  const at::Tensor loss = linear_cross_entropy(test.hidden, test.embedding, test.targets);
  CHECK_THROWS_AS((loss * 3).backward(), std::logic_error);
}

TEST_CASE("the gradient of a tied embedding is the sum of both uses, duplicates included") {
  at::manual_seed(8);
  const at::Tensor embedding = at::randn({20, 6}, at::kDouble).requires_grad_();
  const at::Tensor tokens = at::tensor({3, 7, 3, 3, 19}, at::kLong),
                   targets = at::tensor({7, 3, 0, 19, 3}, at::kLong);
  const at::Tensor hidden = at::embedding(embedding, tokens).tanh();
  const at::Tensor expected =
      torch::autograd::grad({at::cross_entropy_loss(at::mm(hidden, embedding.t()), targets)}, {embedding})[0];

  const auto tied = c10::make_intrusive<TiedGradient>();
  const at::Tensor loss = linear_cross_entropy(tied_lookup(embedding, tokens, tied).tanh(), embedding,
                                               targets, /*chunk_tokens=*/2, tied);
  loss.backward();
  CHECK(largest_difference(embedding.grad(), expected) < 1e-14);

  // Two micro-batches accumulate their gradients.
  const auto again = c10::make_intrusive<TiedGradient>();
  linear_cross_entropy(tied_lookup(embedding, tokens, again).tanh(), embedding, targets, 2, again).backward();
  CHECK(largest_difference(embedding.grad(), expected * 2) < 1e-14);
}

TEST_CASE("a bf16 model's padded embedding follows the updates of its weights") {
  ModelOptions options;
  options.dtype = at::kBFloat16;
  Model model(tiny_shape(), options);
  AdamWOptions fast;
  fast.learning_rate = 0.1;
  AdamW optimizer(model, fast);
  at::manual_seed(9);
  const at::Tensor tokens =
                       at::randint(tiny_shape().vocabulary, {2, tiny_shape().sequence_length}, at::kLong),
                   targets = tokens.roll(-1, 1);
  const double first = model.loss(tokens, targets).item<double>();
  for (int step = 0; step < 3; ++step) {
    model.loss(tokens, targets).backward();
    optimizer.step();
  }
  const double trained = model.loss(tokens, targets).item<double>();
  const at::Tensor& embedding = model.parameters().front().compute;
  REQUIRE(padded_vocabulary(embedding.size(0)) > embedding.size(0));
  CHECK(std::abs(trained - first) > 0.1);
  // Both have the same logits in bf16. Only the order of sums may differ, so 1e-3 is below half a step of
  // bf16 (2⁻⁹).
  CHECK(
      trained ==
      doctest::Approx(linear_cross_entropy(model.hidden(tokens), embedding, targets.flatten()).item<double>())
          .epsilon(1e-3));
}
