// Tests of the lists of files that sites exchange if each needs its own files only.
#include "trainer/data/file_list.hpp"

#include <stdexcept>

#include "tests/trainer/data/token_files.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/data/batches.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

/// A domain at each of two sites, and all of it in one folder.
struct Folders {
  TokenFolder all, first, second;
  Folders() {
    for (TokenFolder* folder : {&all, &first}) {
      folder->write("web/0.bin", counting(0, 10 * 8 + 1));
      folder->write("web/1.bin", counting(100, 6 * 8 + 1));
    }
    for (TokenFolder* folder : {&all, &second}) folder->write("code/0.bin", counting(200, 9 * 8 + 1));
  }
  [[nodiscard]] static FileList list(const TokenFolder& folder) {
    return file_list(Corpus::open(folder.path(), 600));
  }
};

}  // namespace

TEST_CASE("the lists of two sites together are that of a site with all files, in its order") {
  const Folders folders;
  const FileList all = Folders::list(folders.all), first = Folders::list(folders.first),
                 second = Folders::list(folders.second);
  CHECK((united({{"a", first}, {"b", second}}) == all));
  CHECK((united({{"a", first}, {"b", all}}) == all));
  CHECK(all.size() == 3);
  CHECK(all.front().name == "code/0.bin");
  CHECK(all.front().tokens == 9 * 8 + 1);
  CHECK((file_list_from(to_text(all)) == all));
  CHECK(hash_of(all) != hash_of(first));
  CHECK(hash_of(all).starts_with("203 tokens in files "));  // 81 + 49 + 73
  CHECK(refusal_of([] { (void)file_list_from("[[1]]"); }).find("cannot be read") != std::string::npos);
}

TEST_CASE("a site without the files of others gets the same batches as with them, and does not read them") {
  const Folders folders;
  const FileList all = Folders::list(folders.all);
  const auto batches = [&](const TokenFolder& folder) {
    return Batches(with_files_elsewhere(Corpus::open(folder.path(), 600), all), 8, 8, 0, 42,
                   {DataSplit::domain, {4, 4}});
  };
  Batches whole = batches(folders.all), web = batches(folders.first), code = batches(folders.second);
  CHECK((whole.files_of_sites() == std::vector<std::vector<std::size_t>>{{1, 2}, {0}}));  // web is larger
  for (const std::int64_t step : {0, 1, 7}) {
    CHECK(at::equal(web.of_step(step, 0, 4).tokens, whole.of_step(step, 0, 4).tokens));
    CHECK(at::equal(code.of_step(step, 4, 4).targets, whole.of_step(step, 4, 4).targets));
  }
  CHECK_THROWS_WITH_AS(web.of_step(0, 4, 4), "code/0.bin: cannot be read: it is at another site",
                       fomoe::FileError);
}

TEST_CASE("files that differ, and files that a site lacks, are named with the sites") {
  const Folders folders;
  const FileList all = Folders::list(folders.all), first = Folders::list(folders.first);
  FileList other = first;
  other[0].tokens = 40;
  CHECK(
      refusal_of([&] {
        (void)united({{"tokyo", first}, {"paris", other}});
      }) ==
      "trainer.data: got web/0.bin with 81 tokens at tokyo and 40 tokens at paris; expected the same file at "
      "all sites that have it; for example a copy of that at tokyo");
  TokenFolder changed;
  changed.write("web/0.bin", counting(1, 10 * 8 + 1));
  CHECK(refusal_of([&] {
          (void)united({{"tokyo", first}, {"paris", Folders::list(changed)}});
        }) ==
        "trainer.data: got web/0.bin with 81 tokens at tokyo and other 81 tokens at paris; expected the same "
        "file at all sites that have it; for example a copy of that at tokyo");
  const std::vector<FilesAt> lists = {{"tokyo", first}, {"paris", {all[0]}}};
  CHECK(refusal_of([&] { check_has(lists[0], {1, 2}, all, lists); }) == "no error");
  CHECK(
      refusal_of([&] {
        check_has(lists[1], {0, 2}, all, lists);
      }) ==
      "trainer.data: got no web/1.bin at paris, which trainer.data_split = \"domain\" deals to it; expected "
      "all files of its domains in its folder; for example a copy of that at tokyo");
}
