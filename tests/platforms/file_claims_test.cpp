// Tests that an output of a command cannot be one of its inputs, or another output.
#include "platforms/support/file_claims.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

using fomoe::claim_output;
using fomoe::FileClaims;
using fomoe::UsageError;
using fomoe::whole_file;
using fomoe::write_file;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/fomoe-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + '/' + name; }
  std::string path;
};

}  // namespace

TEST_CASE("an output that is also an input is refused, through links too, whichever is known first") {
  const Folder folder;
  write_file(folder / "s.json", "text");
  fs::create_symlink("s.json", folder / "link.json");
  fs::create_hard_link(folder / "s.json", folder / "hard.json");
  for (const char* name : {"s.json", "link.json", "hard.json", "./s.json"}) {
    CAPTURE(name);
    {
      const FileClaims claims;
      claim_output("--output", folder / name);
      CHECK_THROWS_AS(whole_file(folder / "s.json"), UsageError);
    }
    const FileClaims claims;
    CHECK(whole_file(folder / "s.json") == "text");
    CHECK_THROWS_WITH_AS(claim_output("--output", folder / name),
                         ("--output: got \"" + (folder / name) +
                          "\", which is also read as an input; expected a file of its own, since it would be "
                          "replaced; for example --output another-" +
                          fs::path(name).filename().string())
                             .c_str(),
                         UsageError);
  }
  const FileClaims claims;  // another command knows nothing of the earlier ones
  claim_output("--output", folder / "s.json");
}

TEST_CASE("two outputs cannot be the same file, even if it does not exist yet") {
  const Folder folder;
  fs::create_directory_symlink(".", folder / "here");
  const FileClaims claims;
  claim_output("--output", folder / "a.json");
  claim_output("--output", folder / "a.json");  // the same one again
  CHECK_THROWS_AS(claim_output("--trace", folder / "a.json"), UsageError);
  CHECK_THROWS_AS(claim_output("--trace", folder / "here/./a.json"), UsageError);
  claim_output("--trace", folder / "b.json");
}

TEST_CASE("a file that is replaced keeps its mode") {
  const Folder folder;
  write_file(folder / "a.json", "first");
  fs::permissions(folder / "a.json", fs::perms(0640));
  write_file(folder / "a.json", "second");
  CHECK(fs::status(folder / "a.json").permissions() == fs::perms(0640));
}
