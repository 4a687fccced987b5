// Tests corpora in folders: which files belong to them, how sequences are cut, and what is kept for
// validation.
#include <set>

#include "tests/trainer/data/token_files.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/run/agreement.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

/// First ids of the sequences.
std::vector<std::int64_t> firsts(const Batch& batch) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < batch.tokens.size(0); ++i)
    out.push_back(batch.tokens[i][0].item<std::int64_t>());
  return out;
}

std::string error_of(const Corpus& corpus, std::int64_t validation, std::optional<Corpus> other = {}) {
  try {
    const Batches batches(corpus, 8, 6, validation, 42, {}, std::move(other));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a folder: all token files by path, sub-folders of the first level are domains, mixed widths") {
  TokenFolder folder;
  folder.write("web/1.bin", bytes_of<std::uint16_t>({1, 2, 3}));
  folder.write("web/0.npy", npy("<u4", "2,", bytes_of<std::uint32_t>({4, 5})));
  folder.write("code/python/a.npy", npy("<i8", "1,", bytes_of<std::int64_t>({6})));
  folder.write("top.bin", bytes_of<std::uint16_t>({7}));
  folder.write("README.md", "no tokens");
  folder.write("._top.bin", "no tokens");
  folder.write(".cache/a.bin", "no tokens");
  for (const std::string& path : {folder.path(), folder.path() + '/'}) {
    const Corpus corpus = Corpus::open(path, 10);
    REQUIRE(corpus.files().size() == 4);
    const std::vector<std::string> names = {"code/python/a.npy", "top.bin", "web/0.npy", "web/1.bin"},
                                   domains = {"code", "", "web", "web"};
    const std::vector<std::vector<std::int64_t>> tokens = {{6}, {7}, {4, 5}, {1, 2, 3}};
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(corpus.files()[i].name == names[i]);
      CHECK(corpus.files()[i].domain == domains[i]);
      CHECK(ids(corpus.files()[i].tokens) == tokens[i]);
    }
    CHECK(corpus.size() == 7);
  }
  // A vocabulary of more than 65,536 tokens: .bin has 4 bytes for each, .npy says so itself.
  TokenFolder wide;
  wide.write("a.bin", bytes_of<std::uint32_t>({70'000, 1}));
  wide.write("b.npy", npy("<u2", "2,", bytes_of<std::uint16_t>({2, 3})));
  const Corpus corpus = Corpus::open(wide.path(), 100'000);
  CHECK(ids(corpus.files()[0].tokens) == std::vector<std::int64_t>{70'000, 1});
  CHECK(ids(corpus.files()[1].tokens) == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("folders that are refused say which file is wrong") {
  TokenFolder folder;
  CHECK(refusal(folder.path(), 10) ==
        folder.path() +
            ": got a folder without token files; expected .bin or .npy files in it "
            "or in its sub-folders; for example " +
            folder.path() + "/web/00000.bin");
  folder.write("web/a.bin", counting(0, 9));
  CHECK(refusal(folder.path(), 10) == "no error");
  const std::string other = folder.write("web/b.bin", counting(5, 9));  // ids 5 … 13
  CHECK(refusal(folder.path(), 10) ==
        other + ": got token id 10 at position 5; expected ids below model.vocabulary = 10");
  folder.write("web/b.bin", "");
  CHECK(
      refusal(folder.path(), 10).starts_with(other + ": got an empty file; expected token ids; for example"));
  folder.write("web/b.bin", "abc");
  CHECK(refusal(folder.path(), 10).starts_with(other + ": got 3 bytes; expected"));
  std::remove(other.c_str());
  REQUIRE(::symlink("nowhere.bin", other.c_str()) == 0);
  CHECK(refusal(folder.path(), 10) == other + ": cannot be read: No such file or directory");
  CHECK(refusal("/nonexistent", 10).starts_with("/nonexistent: cannot be read"));
}

TEST_CASE("sequences do not cross files, and the rest of a file is not used") {
  TokenFolder folder;
  folder.write("a.bin", counting(0, 3 * 8 + 8));      // three sequences: the fourth lacks its last target
  folder.write("b.bin", counting(100, 8));            // none
  folder.write("c/d.bin", counting(200, 2 * 8 + 1));  // two
  Batches batches(Corpus::open(folder.path(), 400), 8, 5, /*validation_sequences=*/0, 42);
  CHECK(batches.training_sequences() == 5);
  const Batch pass = batches.of_step(0, 0, 5);
  const std::vector<std::int64_t> begins = firsts(pass);
  CHECK(std::set<std::int64_t>(begins.begin(), begins.end()) == std::set<std::int64_t>{0, 8, 16, 200, 208});
  for (std::int64_t i = 0; i < 5; ++i) {
    const at::Tensor expected =
        at::arange(begins[static_cast<std::size_t>(i)], begins[static_cast<std::size_t>(i)] + 8, at::kLong);
    CHECK(at::equal(pass.tokens[i], expected));
    CHECK(at::equal(pass.targets[i], expected + 1));
  }
}

TEST_CASE("validation: as many sequences from the end of each domain, and none of them is trained on") {
  TokenFolder folder;
  folder.write("big/0.bin", counting(0, 10 * 8 + 1));
  folder.write("big/1.bin", counting(100, 10 * 8 + 1));
  folder.write("small.bin", counting(200, 2 * 8 + 1));
  folder.write("web/0.bin", counting(300, 10 * 8 + 1));
  // Of 9 sequences, each of three domains gives 3, but the smallest has only two. Of the other 7, the first
  // domain gives 4, two from each of its files.
  Batches batches(Corpus::open(folder.path(), 400), 8, 4, /*validation_sequences=*/9, 42);
  CHECK(batches.validation_sequences() == 9);
  CHECK(batches.training_sequences() == 32 - 9);
  const std::vector<std::int64_t> expected = {64, 72, 164, 172, 200, 208, 356, 364, 372};
  CHECK(firsts(batches.validation(0, 9)) == expected);
  CHECK(firsts(batches.validation(3, 2)) == std::vector<std::int64_t>{172, 200});
  std::set<std::int64_t> seen;
  for (std::int64_t step = 0; step < 12; ++step) {  // two passes
    for (const std::int64_t first : firsts(batches.of_step(step, 0, 4))) seen.insert(first);
  }
  CHECK(seen.size() == 23);
  for (const std::int64_t first : expected) CHECK(!seen.contains(first));
}

TEST_CASE("validation data of its own: its first sequences, and the training data is not shortened") {
  TokenFolder folder, other;
  const Corpus corpus = Corpus::open(folder.write("a.bin", counting(0, 10 * 8 + 1)), 400);
  const Corpus one = Corpus::open(other.write("v/v.bin", counting(200, 5 * 8 + 1)), 400);
  Batches batches(corpus, 8, 10, /*validation_sequences=*/3, 42, {}, one);
  CHECK(batches.training_sequences() == 10);
  CHECK(firsts(batches.validation(0, 3)) == std::vector<std::int64_t>{200, 208, 216});
  std::vector<std::int64_t> pass = firsts(batches.of_step(0, 0, 10));
  std::sort(pass.begin(), pass.end());
  CHECK(pass.front() == 0);
  CHECK(pass.back() == 72);
  other.write("w/w.bin", counting(300, 5 * 8 + 1));
  const Batches both(corpus, 8, 10, 3, 42, {}, Corpus::open(other.path(), 400));
  CHECK(firsts(both.validation(0, 3)) == std::vector<std::int64_t>{200, 208, 300});

  CHECK(error_of(corpus, 6, one) ==
        "trainer.validation_data: got enough tokens for 5 sequences of 8 tokens; expected "
        "trainer.validation_sequences = 6; for example --set trainer.validation_sequences=5");
  CHECK(error_of(corpus, 10).find("trainer.data: got a corpus of 81 tokens; expected enough for 10") == 0);
  CHECK(error_of(corpus, 0, one) == "no error");
}

TEST_CASE("what is trained on and validated with must be the same: names, sizes, tokens, split") {
  RunRequest request;
  request.scenario = training_scenario("diloco", 2);
  request.scenario.model.vocabulary = 400;
  const fomoe::costmodel::Plan plan = fomoe::costmodel::make_plan(request.scenario);
  TokenFolder folder;
  const std::string a = folder.write("web/a.bin", counting(0, 100)),
                    b = folder.write("b.bin", counting(0, 50));
  const auto opened = [&](const std::string& path) { return Corpus::open(path, 400); };
  const auto digest = [&](const std::string& path, const std::optional<Corpus>& other = {}) {
    return determines_weights(request, plan, {}, hash_of(opened(path)), other);
  };
  const Digest usual = digest(folder.path());
  const auto differs_in = [&](const Digest& changed) {
    const std::string what = first_difference(usual, changed).value_or("");
    return what.substr(0, what.find(' '));
  };
  CHECK(differs_in(digest(folder.path())).empty());
  CHECK(differs_in(digest(folder.path(), opened(a))) == "trainer.validation_data");
  CHECK(
      first_difference(digest(b, opened(a)), digest(b, opened(b))).value_or("").starts_with("trainer.valid"));
  request.settings.data_split = "iid";
  CHECK(differs_in(digest(folder.path())) == "trainer.data_split");
  request.settings.data_split.clear();
  const std::string moved = folder.write("web/other.bin", "");
  REQUIRE(std::rename(a.c_str(), moved.c_str()) == 0);  // the same tokens in the same order
  CHECK(differs_in(digest(folder.path())) == "trainer.data");
  // A single file may have another name at every site.
  CHECK(first_difference(digest(moved), digest(folder.write("copy.bin", counting(0, 100)))) == std::nullopt);
}
