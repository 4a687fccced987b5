// What happens to a resumed run whose checkpoint was altered on the disk.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

// The method averages all parameters, so that both sites hold the same.
const std::vector<std::string> kAveraging = {"workload.tokens=131072", "platform.sites=2",
                                             "strategy.method=diloco"};

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Flips a bit of the fraction of a number in the first tensor of a checkpoint.
std::string altered(std::string file) {
  const auto header = static_cast<unsigned char>(file[0]) + 256U * static_cast<unsigned char>(file[1]) +
                      65536U * static_cast<unsigned char>(file[2]);
  file[8 + header + 402] = static_cast<char>(file[8 + header + 402] ^ 0x10);
  return file;
}

Ended resumed(const Folder& folder, const char* tokens) {
  std::vector<std::string> settings = kAveraging;
  settings[0] = std::string("workload.tokens=") + tokens;
  return run(train(settings, {"--local", "--checkpoints", folder / "run", "--resume"}));
}

}  // namespace

TEST_CASE("an altered checkpoint is not used: the run resumes from the one before, and says why") {
  const Folder folder;
  REQUIRE(run(train(kAveraging, {"--local", "--checkpoints", folder / "run"})).status == 0);
  const std::string newest = folder / "run/round-00000002/node-1.safetensors";
  write(newest, altered(content(newest)));
  const Ended ended = resumed(folder, "262144");
  CAPTURE(ended.said);
  CHECK(ended.status == 0);
  CHECK(ended.said.find("tensors were altered after they were written") != std::string::npos);
  CHECK(ended.said.find("resumed after round 1 of 4") != std::string::npos);
}

TEST_CASE("sites that would resume with different weights are refused, even if their files are consistent") {
  const Folder folder;
  REQUIRE(run(train(kAveraging, {"--local", "--checkpoints", folder / "run"})).status == 0);
  const std::string path = folder / "run/round-00000002/node-1.safetensors";
  std::string file = content(path);
  const std::size_t name = file.find("\"checksum\"");
  REQUIRE(name != std::string::npos);
  file.replace(name, 10, "\"no-check\"");  // as a file of an earlier version
  write(path, altered(file));
  const Ended ended = resumed(folder, "262144");
  CAPTURE(ended.said);
  CHECK(ended.status == 1);
  CHECK(ended.said.find("resume with different weights") != std::string::npos);
}
