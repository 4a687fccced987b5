// Tests that headers of checkpoints with impossible shapes are refused by name; the fuzzer gave some of them
// (tests/fuzz).
#include "trainer/io/safetensors.hpp"

#include <filesystem>
#include <string>

#include "platforms/support/atomic_file.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

/// Reads a file with one tensor `a` of this shape, whose data are the bytes from `begin` to `end`.
SafetensorsFile read(const std::string& shape, int begin, int end) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fomoe-shape-" + std::to_string(::getpid()))).string();
  const std::string header = R"({"__metadata__":{},"a":{"dtype":"F32","shape":)" + shape +
                             R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) +
                             R"(]},"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  fomoe::write_file(path, length + header + std::string(16, '\0'));
  struct Removed {
    const std::string& path;
    ~Removed() { std::filesystem::remove(path); }
  } removed{path};
  return read_safetensors(path);
}

}  // namespace

TEST_CASE("a tensor of a checkpoint has whole extents whose product and strides do not overflow") {
  CHECK(read("[2,2]", 0, 16).tensors.at("a").numel() == 4);
  CHECK(read("[0,7]", 0, 0).tensors.at("a").numel() == 0);
  for (const char* shape : {"[2.5]", "[1e300]", "[4,1.0]", "[-4]", "[18446744073709551615]", "[true]",
                            "{\"x\":4}", "4", "[[4]]"}) {
    CAPTURE(shape);
    CHECK_THROWS_AS(read(shape, 0, 16), UnusableFile);
  }
  // No bytes, but LibTorch cannot compute the strides, and would throw an error of its own.
  for (const char* shape :
       {"[0,4611686018427387904,4611686018427387904]", "[4611686018427387904,4611686018427387904,0]"}) {
    CAPTURE(shape);
    CHECK_THROWS_AS(read(shape, 0, 0), UnusableFile);
  }
}
