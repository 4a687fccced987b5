// Tests corpora in files, and that the batch of a step does not depend on which site trains it.
#include <cmath>
#include <numeric>

#include "costmodel/math/random.hpp"
#include "tests/trainer/data/token_files.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/data/batches.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

/// The only file of a folder.
struct File {
  File(const std::string& name, const std::string& bytes) : path_(folder_.write(name, bytes)) {}
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TokenFolder folder_;
  std::string path_;
};

std::vector<std::int64_t> ids(const Corpus& corpus) { return testing::ids(corpus.files().at(0).tokens); }

}  // namespace

TEST_CASE("token files: .bin by the size of the vocabulary, .npy by its header") {
  const std::vector<std::int64_t> expected = {3, 1, 4, 1, 5};
  const std::string u16 = bytes_of<std::uint16_t>({3, 1, 4, 1, 5}),
                    u32 = bytes_of<std::uint32_t>({3, 1, 4, 1, 5});
  CHECK(ids(Corpus::open(File("t16.bin", u16).path(), 65'536)) == expected);
  CHECK(ids(Corpus::open(File("t32.bin", u32).path(), 65'537)) == expected);
  CHECK(ids(Corpus::open(File("a.npy", npy("<u2", "5,", u16)).path(), 10)) == expected);
  CHECK(ids(Corpus::open(File("b.npy", npy("<u4", "5,", u32)).path(), 10)) == expected);
  CHECK(ids(Corpus::open(File("c.npy", npy("<i4", "5,", u32)).path(), 10)) == expected);
  CHECK(ids(Corpus::open(File("d.npy", npy("<i8", "5,", bytes_of<std::int64_t>(expected))).path(), 10)) ==
        expected);
}

TEST_CASE("token files that are something else are refused, and say why") {
  const std::string u16 = bytes_of<std::uint16_t>({3, 1, 4, 1, 5});
  CHECK(refusal("/nonexistent.bin", 10).find("cannot be read") != std::string::npos);
  CHECK(refusal(File("e.bin", "").path(), 10).find("empty") != std::string::npos);
  CHECK(refusal(File("f.bin", "abc").path(), 10).find("ids of 2 bytes each") != std::string::npos);
  CHECK(refusal(File("g.txt", "abcd").path(), 10).find(".bin or .npy") != std::string::npos);
  CHECK(refusal(File("h.bin", u16).path(), 5)
            .find("got token id 5 at position 4; expected ids below model.vocabulary = 5") !=
        std::string::npos);
  CHECK(refusal(File("i.npy", npy("<f4", "5,", u16)).path(), 10).find("got an array of <f4") !=
        std::string::npos);
  CHECK(refusal(File("j.npy", npy("<u2", "2, 3", u16)).path(), 10).find("shape (2, 3)") != std::string::npos);
  CHECK(refusal(File("k.npy", npy("<u2", "6,", u16)).path(), 10).find("got 10 bytes of data; expected 12") !=
        std::string::npos);
  // Times 8 bytes, this number of ids is 8 in 64 bits.
  CHECK(refusal(File("n.npy", npy("<i8", "2305843009213693953,", std::string(8, '\0'))).path(), 10)
            .find("expected 2305843009213693953 ids") != std::string::npos);
  CHECK(refusal(File("l.npy", u16).path(), 10).find("without a NumPy header") != std::string::npos);
  CHECK(refusal(File("n.npy", npy("<u2", "0,", "")).path(), 10).find("got an empty array") !=
        std::string::npos);
}

TEST_CASE("an id outside of the vocabulary is refused when it is used, with its position") {
  std::vector<std::uint16_t> tokens(1'000'000, 3);
  tokens[123'456] = 10;  // not in the sample, which has 64 tokens at every 976th or 977th position
  const File file("late.bin", bytes_of(tokens));
  const Corpus corpus = Corpus::open(file.path(), 10);
  std::vector<std::int64_t> out(20);
  corpus.files()[0].tokens.copy(123'436, 20, out.data());
  try {
    corpus.files()[0].tokens.copy(123'450, 20, out.data());
    FAIL("the id was accepted");
  } catch (const fomoe::FileError& error) {
    CHECK(error.what() ==
          file.path() + ": got token id 10 at position 123456; expected ids below model.vocabulary = 10");
  }
  // Ids of another tokenizer are noticed at once.
  std::fill(tokens.begin() + 1'000, tokens.begin() + 3'000, std::uint16_t{11});
  CHECK(refusal(File("other.bin", bytes_of(tokens)).path(), 10).find("got token id 11 at position") !=
        std::string::npos);
  // A negative id
  CHECK(refusal(File("n.npy", npy("<i4", "2,", bytes_of<std::int32_t>({1, -1}))).path(), 10)
            .find("got token id -1 at position 1;") != std::string::npos);
}

TEST_CASE("the global batch of a step is the same however it is divided, and passes differ in order") {
  std::vector<std::uint16_t> counting(40 * 8 + 1);  // 40 sequences of 8, all different
  std::iota(counting.begin(), counting.end(), std::uint16_t{0});
  const File file("m.bin", bytes_of(counting));
  const Corpus corpus = Corpus::open(file.path(), 400);
  Batches whole(corpus, 8, 6, /*validation_sequences=*/4, 42), parts(corpus, 8, 6, 4, 42);
  CHECK(whole.training_sequences() == 36);
  for (const std::int64_t step : {0, 5, 6, 100}) {
    const Batch all = whole.of_step(step, 0, 6);
    CHECK(at::equal(at::cat({parts.of_step(step, 0, 2).tokens, parts.of_step(step, 2, 1).tokens,
                             parts.of_step(step, 3, 3).tokens}),
                    all.tokens));
    CHECK(at::equal(all.targets.narrow(1, 0, 7), all.tokens.narrow(1, 1, 7)));
  }
  // One pass of 6 steps contains every sequence once; the next pass has them in another order.
  const auto pass = [&](std::int64_t first) {
    std::vector<at::Tensor> steps;
    for (std::int64_t s = first; s < first + 6; ++s) steps.push_back(whole.of_step(s, 0, 6).tokens);
    return at::cat(steps);
  };
  const at::Tensor one = pass(0), two = pass(6);
  CHECK(!at::equal(one, two));
  CHECK(at::equal(std::get<0>(at::unique_dim(one, 0)), std::get<0>(at::unique_dim(two, 0))));
  CHECK(std::get<0>(at::unique_dim(one, 0)).size(0) == 36);
  // Validation sequences are never trained on.
  const at::Tensor held_back = whole.validation(0, 4).tokens;
  CHECK(std::get<0>(at::unique_dim(at::cat({one, held_back}), 0)).size(0) == 40);
  CHECK_THROWS_AS(Batches(corpus, 8, 6, 40, 42), std::invalid_argument);
}

TEST_CASE("one file: the order of the sequences is that of earlier versions, whose runs may be resumed") {
  TokenFolder folder;
  const Corpus corpus = Corpus::open(folder.write("a.bin", counting(0, 40 * 8 + 1)), 400);
  Batches batches(corpus, 8, 6, /*validation_sequences=*/4, 42);
  for (const std::uint64_t pass : {0, 1, 3}) {
    std::vector<std::int64_t> order(36);
    std::iota(order.begin(), order.end(), 0);
    fomoe::costmodel::RandomEngine engine = fomoe::costmodel::seeded_engine(42, 0x0bade7 + pass);
    fomoe::costmodel::shuffle(order, engine);
    for (std::int64_t i = 0; i < 36; ++i) {
      const Batch one = batches.of_step(static_cast<std::int64_t>(pass) * 6 + i / 6, i % 6, 1);
      CHECK(one.tokens[0][0].item<std::int64_t>() == 8 * order[static_cast<std::size_t>(i)]);
    }
  }
  for (std::int64_t i = 0; i < 4; ++i)
    CHECK(batches.validation(i, 1).tokens[0][0].item<std::int64_t>() == 8 * (36 + i));
}

TEST_CASE("the synthetic chain has the entropy that it says") {
  const std::int64_t v = 20, n = 200'000;
  const std::vector<std::int64_t> tokens = ids(Corpus::synthetic(v, n, 3));
  double loss = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const bool likely = tokens[i] == (5 * tokens[i - 1] + 7) % v;
    loss -= std::log(likely ? 0.8 + 0.2 / 20 : 0.2 / 20) / static_cast<double>(n - 1);
  }
  CHECK(loss == doctest::Approx(Corpus::synthetic_loss(v)).epsilon(0.02));  // mean of 200,000 random tokens
}
